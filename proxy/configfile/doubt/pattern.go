package doubt

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// literally says of a match which of its fields looks like a pattern and is compared as it stands, and what was meant; "" if none does.
func literally(m *configfile.Value) (key string, x config.Error) {
	for _, key := range []string{"prefix", "path", "path_separated_prefix"} {
		text := m.Str(key)
		if !strings.HasPrefix(text, "/") || m.Get(key) == nil {
			continue
		}
		if id, ok := braced(text); ok {
			return key, config.Error{Msg: "'" + id + "' stands for nothing but itself here", Advice: "templates are matched by a path_match_policy of " +
				"envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig, as path_template: " + text}
		}
		star := strings.IndexByte(text, '*')
		if star < 0 {
			continue
		}
		x := config.Error{Msg: "'*' is no wildcard here: only paths fit that have a '*' themselves"}
		if rest := text[star:]; strings.Trim(rest, "*") == "" && text[star-1] == '/' {
			x.Suggestion, x.Advice = "prefix: "+text[:star], "it fits all that begins so"
		} else {
			x.Suggestion = "safe_regex: {regex: \"" + strings.NewReplacer("**", ".*", "*", "[^/]*", ".", "\\\\.").Replace(text) + "\"}"
		}
		return key, x
	}
	if regex := m.Get("safe_regex").Str("regex"); strings.HasSuffix(regex, "/*") && !strings.ContainsAny(strings.TrimSuffix(regex, "*"), `*+?[](){}|\.`) {
		return "safe_regex", config.Error{Msg: "'/*' of a regular expression fits slashes only", Suggestion: strings.TrimSuffix(regex, "*") + ".*"}
	}
	return "", config.Error{}
}

// braced is the first name in braces that is a segment of a path.
func braced(path string) (string, bool) {
	for s := range strings.SplitSeq(path, "/") {
		if len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' {
			return s, true
		}
	}
	return "", false
}

// ports looks at the domains of an HTTP connection manager that takes ports off before it looks for a virtual host.
func (w *walker) ports(v *configfile.Value) {
	routes, by := v.Get("route_config"), "ignore_port_in_host_matching"
	if v.Str("strip_any_host_port") == "true" {
		by = "strip_any_host_port"
	} else if routes.Str(by) != "true" {
		return
	}
	for i, h := range routes.List("virtual_hosts") {
		domains := map[string]bool{}
		for _, d := range h.List("domains") {
			domains[d.Text] = true
		}
		for j, d := range h.List("domains") {
			if host, ok := withPort(d.Text); ok && !domains[host] && !domains["*"] {
				w.add(sure, config.Error{Msg: "no request comes here by the domain '" + d.Text + "': " + by + " takes the port off first", Suggestion: host},
					"route_config", "virtual_hosts", i, "domains", j)
			}
		}
	}
}

// withPort cuts the port off a domain that has one.
func withPort(domain string) (host string, ok bool) {
	i := strings.LastIndexByte(domain, ':')
	if i <= 0 || i == len(domain)-1 || strings.Trim(domain[i+1:], "0123456789") != "" || strings.IndexByte(domain, ':') != i && domain[i-1] != ']' {
		return "", false
	}
	return domain[:i], true
}
