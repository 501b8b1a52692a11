package stats

import "strings"

// findRouteConfig is http.<one token>.<kind>.(<name>.)<one token>; the name may have dots.
func findRouteConfig(kind string, isName func(c byte) bool) func(n *tokens) (span, span, bool) {
	return func(n *tokens) (span, span, bool) {
		last := n.count - 1
		if last < 4 || n.at(2) != kind || n.at(1) == "" || !all(n.at(last), isWord) {
			return span{}, span{}, false
		}
		name := span{n.start(3), n.ends[last-1]}
		if !all(n.name[name.from:name.to], isName) {
			return span{}, span{}, false
		}
		return span{name.from, name.to + 1}, name, true
	}
}

// findRBACPolicy is http.<one token>.rbac.[<one token>.]policy.(<policy>.)<result>
func findRBACPolicy(n *tokens) (cut, value span, ok bool) {
	i := n.count - 2
	if n.at(2) != "rbac" || n.at(1) == "" || i != 4 && i != 5 || n.at(i-1) != "policy" || i == 5 && n.at(3) == "" {
		return span{}, span{}, false
	}
	switch n.at(i + 1) {
	case "allowed", "shadow_allowed", "denied", "shadow_denied":
		return n.cutToken(i)
	}
	return span{}, span{}, false
}

// findRBACPrefix is http.<one token>.rbac.(<prefix>.)*, but not rbac.policy.
func findRBACPrefix(n *tokens) (cut, value span, ok bool) {
	if n.count < 5 || n.at(2) != "rbac" || n.at(1) == "" || n.at(3) == "policy" {
		return span{}, span{}, false
	}
	return n.cutToken(3)
}

// dynamo returns where what follows "http.<one token>.dynamodb" and one more character begins: Envoy's regexes let that
// character be any.
func dynamo(n *tokens) (rest string, at int, ok bool) {
	if n.count < 3 || n.at(1) == "" {
		return "", 0, false
	}
	at = n.start(2)
	rest, ok = strings.CutPrefix(n.name[at:], "dynamodb")
	if !ok || rest == "" {
		return "", 0, false
	}
	return rest[1:], at + len("dynamodb") + 1, true
}

// findDynamoPartition is http.<one token>.dynamodb.table.<table>.capacity.<operation>(.__partition_id=<seven characters>)
func findDynamoPartition(n *tokens) (cut, value span, ok bool) {
	const mark = "__partition_id="
	id, ok := strings.CutPrefix(n.at(7), mark)
	if !ok || n.count != 8 || n.at(2) != "dynamodb" || n.at(3) != "table" || n.at(5) != "capacity" || len(id) != 7 ||
		!all(id, isWord) || n.at(1) == "" || n.at(4) == "" || n.at(6) == "" {
		return span{}, span{}, false
	}
	return span{n.start(7) - 1, len(n.name)}, span{n.start(7) + len(mark), len(n.name)}, true
}

// findDynamoOperation is http.<one token>.dynamodb.operation(.<operation>) or .table.<table>.capacity(.<operation>)
func findDynamoOperation(n *tokens) (cut, value span, ok bool) {
	rest, at, ok := dynamo(n)
	if !ok {
		return span{}, span{}, false
	}
	if after, isOperation := strings.CutPrefix(rest, "operation."); isOperation {
		at += len(rest) - len(after)
	} else {
		after, isTable := strings.CutPrefix(rest, "table.")
		table, tail, _ := strings.Cut(after, ".")
		tail, isCapacity := strings.CutPrefix(tail, "capacity.")
		if !isTable || table == "" || !isCapacity {
			return span{}, span{}, false
		}
		at += len(rest) - len(tail)
	}
	end := len(n.name)
	if dot := strings.IndexByte(n.name[at:], '.'); dot >= 0 {
		end = at + dot
	}
	if end == at {
		return span{}, span{}, false
	}
	return span{at - 1, end}, span{at, end}, true
}

// findDynamoTable is http.<one token>.dynamodb.(table|error).(<table>.)*
func findDynamoTable(n *tokens) (cut, value span, ok bool) {
	rest, at, ok := dynamo(n)
	if !ok {
		return span{}, span{}, false
	}
	after, found := strings.CutPrefix(rest, "table.")
	if !found {
		if after, found = strings.CutPrefix(rest, "error."); !found {
			return span{}, span{}, false
		}
	}
	at += len(rest) - len(after)
	dot := strings.IndexByte(after, '.')
	if dot <= 0 {
		return span{}, span{}, false
	}
	return span{at, at + dot + 1}, span{at, at + dot}, true
}

// findProxyProtoPrefix is proxy_proto.(<prefix>.)*, but not proxy_proto.versions.
func findProxyProtoPrefix(n *tokens) (cut, value span, ok bool) {
	if n.at(1) == "versions" || n.count < 3 || n.ends[1]+1 == len(n.name) {
		return span{}, span{}, false
	}
	return n.cutToken(1)
}

// findProxyProtoVersion is proxy_proto.([<prefix>.]versions.v<digit>.)<one token>
func findProxyProtoVersion(n *tokens) (cut, value span, ok bool) {
	i := n.count - 2
	if i != 2 && i != 3 || n.at(i-1) != "versions" || i == 3 && n.at(1) == "" || !all(n.at(i+1), isWord) {
		return span{}, span{}, false
	}
	v := n.at(i)
	if len(v) != 2 || v[0] != 'v' || !isDigit(v[1]) {
		return span{}, span{}, false
	}
	return span{n.start(1), n.ends[i] + 1}, span{n.ends[i] - 1, n.ends[i]}, true
}

// findSecret is sds.(<name>.)*
func findSecret(n *tokens) (cut, value span, ok bool) {
	if n.count < 3 || n.ends[1]+1 == len(n.name) {
		return span{}, span{}, false
	}
	return n.cutToken(1)
}
