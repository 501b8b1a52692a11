package stats

import "strings"

// A name in a template is plain if it has at most maxPlainTokens tokens and nothing that a default tag looks for. What is taken out
// of a whole name then depends on the group's prefix and on the number of tokens alone, and the same extraction serves for
// all plain names of a group.
const maxPlainTokens = 3

var stands = [maxPlainTokens]string{"x", "x.x", "x.x.x"}

// tagWords are the tokens that default tags look for behind the first one.
var tagWords = map[string]bool{
	"allowed": true, "callsite": true, "capacity": true, "certificate": true, "ciphers": true, "clientssl": true, "cmd": true,
	"collection": true, "curves": true, "denied": true, "error": true, "ext_authz": true, "fault": true, "grpc": true,
	"health_check": true, "http": true, "http_local_rate_limit": true, "name": true, "operation": true, "policy": true, "query": true,
	"rbac": true, "rds": true, "route": true, "scoped_rds": true, "shadow_allowed": true, "shadow_denied": true, "sigalgs": true,
	"ssl": true, "table": true, "user_agent": true, "vcluster": true, "versions": true,
}

// plainTokens returns the number of tokens of a plain name, 0 for one that is not plain.
func (t *Tagger) plainTokens(name string) int {
	var n tokens
	if t.custom || !n.split(name) || n.count > maxPlainTokens {
		return 0
	}
	if _, _, ok := findCode(&n); ok {
		return 0
	}
	if _, _, ok := findCodeClass(&n); ok {
		return 0
	}
	for i := range n.count {
		s := n.at(i)
		if !all(s, isWord) || tagWords[s] || isDigit(s[0]) || strings.HasPrefix(s, "worker_") || strings.HasPrefix(s, "TLSv") ||
			strings.HasPrefix(s, "dynamodb") || len(s) == 2 && s[0] == 'v' {
			return 0
		}
	}
	return n.count
}

// findPlain is find for all plain names with so many tokens under a prefix. It is not ok if a tag would be taken out of the names
// themselves.
func (e *extractor) findPlain(prefix string, width int, tags []Tag) (cuts []span, out []Tag, ok bool) {
	if !strings.HasSuffix(prefix, ".") {
		return nil, tags, false // the names' own first token would decide
	}
	cuts, tags = e.find(prefix+stands[width-1], tags)
	for _, c := range cuts {
		if c.to > len(prefix) {
			return nil, tags, false
		}
	}
	return cuts, tags, true
}
