package stats

import "strings"

type defaultTag struct {
	prefix string
	tagRule
}

// defaultTags are Envoy's default tags in the order in which they are tried (use_all_default_tags): those whose first token can be
// anything, then by first token; what Envoy has as regexes before what it has as token patterns.
var defaultTags = []defaultTag{
	{"", rule("envoy.response_code", findCode)},
	{"", rule("envoy.response_code_class", findCodeClass)},
	{"", rule("envoy.ssl_curve", findSSL("curves", 1, isCipher))},
	{"", rule("envoy.ssl_sigalg", findSSL("sigalgs", 1, isCipher))},
	{"", rule("envoy.ssl_version", findSSLVersion)},
	{"", rule("envoy.worker_id", findWorker)},
	{"", rule("envoy.tls_certificate", findCertificate)},
	{"", rule("envoy.local_http_ratelimit_prefix", pattern("$.http_local_rate_limit.**"))},
	{"", rule("envoy.rbac_prefix", pattern("$.rbac.**"))},

	{"http", rule("envoy.dynamo_partition_id", findDynamoPartition)},
	{"http", rule("envoy.dynamo_operation", findDynamoOperation)},
	{"http", rule("envoy.dynamo_table", findDynamoTable)},
	{"http", rule("envoy.rds_route_config", findRouteConfig("rds", isRouteName))},
	{"http", rule("envoy.scoped_rds_config", findRouteConfig("scoped_rds", isScopedRouteName))},
	{"http", rule("envoy.rbac_policy_name", findRBACPolicy)},
	{"http", rule("envoy.rbac_http_prefix", findRBACPrefix)},
	{"http", rule("envoy.http_user_agent", pattern("http.*.user_agent.$.**"))},
	{"http", rule("envoy.fault_downstream_cluster", pattern("http.*.fault.$.**"))},
	{"http", rule("envoy.ext_authz_prefix", pattern("http.*.ext_authz.$.**"))},
	{"http", rule("envoy.http_conn_manager_prefix", pattern("http.$.**"))},

	{"cluster", rule("cipher_suite", findClusterCipher)},
	{"cluster", rule("envoy.health_check_name", findHealthCheck)},
	{"cluster", rule("envoy.grpc_bridge_method", pattern("cluster.*.grpc.*.$.**"))},
	{"cluster", rule("envoy.grpc_bridge_service", pattern("cluster.*.grpc.$.**"))},
	{"cluster", rule("envoy.cluster_name", pattern("cluster.$.**"))},
	{"cluster", rule("envoy.ext_authz_prefix", pattern("cluster.*.ext_authz.$.**"))},

	{"listener", rule("envoy.ssl_cipher", findSSL("ciphers", 1, isCipher))},
	{"listener", rule("envoy.http_conn_manager_prefix", findListenerHTTP)},
	{"listener", rule("envoy.listener_address", findListener)},

	{"vhost", rule("envoy.virtual_cluster", pattern("vhost.*.vcluster.$.**"))},
	{"vhost", rule("envoy.virtual_host", pattern("vhost.$.**"))},
	{"vhost", rule("envoy.route", pattern("vhost.*.route.$.**"))},

	{"mongo", rule("envoy.mongo_callsite", pattern("mongo.*.collection.*.callsite.$.query.**"))},
	{"mongo", rule("envoy.mongo_collection", pattern("mongo.*.collection.$.**.query.*"))},
	{"mongo", rule("envoy.mongo_cmd", pattern("mongo.*.cmd.$.**"))},
	{"mongo", rule("envoy.mongo_prefix", pattern("mongo.$.**"))},

	{"tcp", rule("envoy.tcp_prefix", pattern("tcp.$.**"))},
	{"udp", rule("envoy.udp_prefix", pattern("udp.$.**"))},
	{"auth", rule("envoy.clientssl_prefix", pattern("auth.clientssl.$.**"))},
	{"ratelimit", rule("envoy.ratelimit_prefix", pattern("ratelimit.$.**"))},
	{"thrift", rule("envoy.thrift_prefix", pattern("thrift.$.**"))},
	{"redis", rule("envoy.redis_prefix", pattern("redis.$.**"))},
	{"local_rate_limit", rule("envoy.local_network_ratelimit_prefix", pattern("local_rate_limit.$.**"))},
	{"listener_local_ratelimit", rule("envoy.local_listener_ratelimit_prefix", pattern("listener_local_ratelimit.$.**"))},
	{"dns_filter", rule("envoy.dns_filter_prefix", pattern("dns_filter.$.**"))},
	{"connection_limit", rule("envoy.connection_limit_prefix", pattern("connection_limit.$.**"))},
	{"grpc", rule("envoy.google_grpc_client_prefix", pattern("grpc.$.**"))},

	{"proxy_proto", rule("envoy.proxy_protocol_prefix", findProxyProtoPrefix)},
	{"proxy_proto", rule("envoy.proxy_protocol_version", findProxyProtoVersion)},
	{"sds", rule("envoy.xds_resource_name", findSecret)},
}

func rule(tag string, find func(n *tokens) (cut, value span, ok bool)) tagRule {
	return tagRule{tag: tag, find: find}
}

// pattern matches a name token by token: '*' is one token, '$' the one that is the tag, '**' at the end one or more, in the middle any
// number.
func pattern(p string) func(n *tokens) (cut, value span, ok bool) {
	parts := strings.Split(p, ".")
	return func(n *tokens) (cut, value span, ok bool) {
		tag := -1
		if !matchParts(parts, n, 0, &tag) || tag < 0 {
			return span{}, span{}, false
		}
		return n.token(tag), n.value(tag), true
	}
}

func matchParts(parts []string, n *tokens, i int, tag *int) bool {
	for k, part := range parts {
		if i >= n.count {
			return false
		}
		switch part {
		case "**":
			if k == len(parts)-1 {
				return true
			}
			for ; i < n.count; i++ {
				if matchParts(parts[k+1:], n, i, tag) {
					return true
				}
			}
			return false
		case "$":
			*tag = i
		case "*":
		default:
			if n.at(i) != part {
				return false
			}
		}
		i++
	}
	return i == n.count
}

// findCode is *_rq(_<three digits>).
func findCode(n *tokens) (cut, value span, ok bool) {
	s, e := n.name, len(n.name)
	if e < 7 || s[e-7:e-3] != "_rq_" || !isDigit(s[e-3]) || !isDigit(s[e-2]) || !isDigit(s[e-1]) {
		return span{}, span{}, false
	}
	return span{e - 4, e}, span{e - 3, e}, true
}

// findCodeClass is *_rq_(<digit>)xx.
func findCodeClass(n *tokens) (cut, value span, ok bool) {
	s, e := n.name, len(n.name)
	if e < 7 || s[e-7:e-3] != "_rq_" || !isDigit(s[e-3]) || s[e-2:] != "xx" {
		return span{}, span{}, false
	}
	return span{e - 3, e - 2}, span{e - 3, e - 2}, true
}

func isTransport(n *tokens) bool { t := n.at(0); return t == "listener" || t == "cluster" }

// findSSL is listener.*.ssl.<kind>(.<name>), or cluster. in its place where the prefix of the rule allows it.
func findSSL(kind string, width int, ok func(c byte) bool) func(n *tokens) (span, span, bool) {
	return func(n *tokens) (span, span, bool) {
		i := n.count - width
		if i < 4 || n.at(i-1) != kind || n.at(i-2) != "ssl" || !isTransport(n) || !all(n.at(i), ok) {
			return span{}, span{}, false
		}
		return span{n.start(i) - 1, len(n.name)}, span{n.start(i), len(n.name)}, true
	}
}

// findSSLVersion is the same for versions, "TLSv1.3": its dot makes it two tokens.
func findSSLVersion(n *tokens) (cut, value span, ok bool) {
	i := n.count - 2
	if i < 4 || n.at(i-1) != "versions" || n.at(i-2) != "ssl" || !isTransport(n) {
		return span{}, span{}, false
	}
	major, minor := n.at(i), n.at(i+1)
	if len(major) != 5 || major[:4] != "TLSv" || !isDigit(major[4]) || len(minor) != 1 || !isDigit(minor[0]) {
		return span{}, span{}, false
	}
	return span{n.start(i) - 1, len(n.name)}, span{n.start(i), len(n.name)}, true
}

// findClusterCipher is cluster.<one token>.ssl.ciphers(.<cipher>).
func findClusterCipher(n *tokens) (cut, value span, ok bool) {
	if n.count != 5 || n.at(2) != "ssl" || n.at(3) != "ciphers" || n.at(1) == "" || !all(n.at(4), isCipher) {
		return span{}, span{}, false
	}
	return span{n.start(4) - 1, len(n.name)}, n.value(4), true
}

// findHealthCheck is cluster.<one token>.health_check(.name.<name>).*
func findHealthCheck(n *tokens) (cut, value span, ok bool) {
	if n.count < 6 || n.at(2) != "health_check" || n.at(3) != "name" || n.at(1) == "" || n.at(4) == "" ||
		n.ends[4]+1 == len(n.name) {
		return span{}, span{}, false
	}
	return span{n.start(3) - 1, n.ends[4]}, n.value(4), true
}

// findCertificate is (listener|cluster).*.ssl.certificate.(<name>.)*
func findCertificate(n *tokens) (cut, value span, ok bool) {
	if !isTransport(n) {
		return span{}, span{}, false
	}
	for i := 2; i+3 < n.count; i++ {
		if n.at(i) == "ssl" && n.at(i+1) == "certificate" && n.at(i+2) != "" {
			return n.cutToken(i + 2)
		}
	}
	return span{}, span{}, false
}

// findWorker is (listener.<address>|server|listener_manager|thread_local_cluster_manager).worker_(<number>.)
func findWorker(n *tokens) (cut, value span, ok bool) {
	i := 1
	switch n.at(0) {
	case "server", "listener_manager", "thread_local_cluster_manager":
	case "listener":
		if i = addressEnd(n); i == 0 || !isWorker(n, i) {
			if i = 2; n.at(1) == "" {
				return span{}, span{}, false
			}
		}
	default:
		return span{}, span{}, false
	}
	if !isWorker(n, i) {
		return span{}, span{}, false
	}
	from := n.start(i) + len("worker_")
	return span{from, n.ends[i] + 1}, span{from, n.ends[i]}, true
}

func isWorker(n *tokens, i int) bool {
	number, ok := strings.CutPrefix(n.at(i), "worker_")
	return ok && i+1 < n.count && all(number, isDigit)
}

// addressEnd returns the token after an address with port that begins at token 1, 0 if there is none.
func addressEnd(n *tokens) int {
	if isIPv6Port(n.at(1)) {
		return 2
	}
	for i := 1; i <= 3; i++ {
		if s := n.at(i); len(s) > 3 || !all(s, isDigit) {
			return 0
		}
	}
	last, port, ok := strings.Cut(n.at(4), "_")
	if !ok || len(last) > 3 || !all(last, isDigit) || !all(port, isDigit) {
		return 0
	}
	return 5
}

func isIPv6Port(s string) bool {
	rest, ok := strings.CutPrefix(s, "[")
	if !ok {
		return false
	}
	host, port, ok := strings.Cut(rest, "]_")
	return ok && all(host, isIPv6) && all(port, isDigit)
}

func isIPv6(c byte) bool {
	return isDigit(c) || c == '_' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isCipher(c byte) bool          { return isWord(c) || c == '-' }
func isScopedRouteName(c byte) bool { return isWord(c) || c == '-' || c == '.' }
func isRouteName(c byte) bool       { return isScopedRouteName(c) || c == '/' }

// findListener is listener.(<address or one token>.)*, but not listener.admin.
func findListener(n *tokens) (cut, value span, ok bool) {
	if i := addressEnd(n); i > 0 && i < n.count {
		return span{n.start(1), n.ends[i-1] + 1}, span{n.start(1), n.ends[i-1]}, true
	}
	if n.at(1) == "admin" {
		return span{}, span{}, false
	}
	return n.cutToken(1)
}

// findListenerHTTP is listener.*.http.(<prefix>.)*
func findListenerHTTP(n *tokens) (cut, value span, ok bool) {
	for i := 2; i+2 < n.count; i++ {
		if n.at(i) == "http" && n.at(i+1) != "" {
			return n.cutToken(i + 1)
		}
	}
	return span{}, span{}, false
}
