package doubt

import (
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// manager is an HTTP connection manager.
func (w *walker) manager(v *configfile.Value) {
	if len(v.List("http_filters")) == 0 {
		w.add(sure, config.Error{Msg: "there are no http_filters, so nothing answers requests, not even direct responses: each of them hangs; " +
			"envoy.filters.http.router is the last one"})
	}
	w.ports(v)
}

// virtualHost is one of a route configuration.
func (w *walker) virtualHost(v *configfile.Value) {
	for i, d := range v.List("domains") {
		switch {
		case strings.Contains(d.Text, "/"):
			w.add(sure, config.Error{Msg: "no host is called '" + d.Text + "': a domain is a host, with its port if it has one, without scheme and path"}, "domains", i)
		case strings.Contains(withoutWildcard(d.Text), "*"):
			w.add(sure, config.Error{Msg: "a '*' is a wildcard at one end of a domain only: this one is taken as it stands, and no host is called '" + d.Text + "'"},
				"domains", i)
		}
	}
	w.retryPolicy(v, nil)
	w.routes(v)
}

// withoutWildcard is a domain without the wildcard that it may have.
func withoutWildcard(domain string) string {
	if rest, ok := strings.CutPrefix(domain, "*"); ok {
		return rest
	}
	return strings.TrimSuffix(domain, "*")
}

// routes looks at a list of them, of a virtual host or a matcher's action.
func (w *walker) routes(v *configfile.Value) {
	var before coverage
	for i, r := range v.List("routes") {
		m := r.Get("match")
		if m == nil {
			continue // of a protocol that is not HTTP
		}
		if _, why := impossible(m); why != "" {
			w.routeAt(r, []any{"routes", i})
			continue
		}
		if j, ok := before.of(m); ok {
			first := v.List("routes")[j]
			w.add(sure, config.Error{Msg: "no request comes to this route: " + describe(j, first) + " is before it and takes all that it could"}, "routes", i)
		}
		before.add(m, i)
		w.routeAt(r, []any{"routes", i})
	}
}

// describe names a route of a list.
func describe(i int, r *configfile.Value) string {
	for _, k := range []string{"prefix", "path_separated_prefix", "path"} {
		if x := r.At("match", k); x != nil {
			return "routes[" + strconv.Itoa(i) + "], " + k + " '" + x.Text + "',"
		}
	}
	return "routes[" + strconv.Itoa(i) + "]"
}

// route is one that stands by itself, as the action of a matcher.
func (w *walker) route(v *configfile.Value) { w.routeAt(v, nil) }

// routeAt looks at one route, which stands at a path below the current place.
func (w *walker) routeAt(r *configfile.Value, at []any) {
	if key, why := impossible(r.Get("match")); why != "" {
		w.add(ofPath, config.Error{Msg: why}, with(at, "match", key)...)
	} else if key, x := literally(r.Get("match")); key != "" {
		w.add(ofPath, x, with(at, "match", key)...)
	}
	w.action(r, at)
	const effect = "requests fail"
	action := r.Get("route")
	w.named(action.Str("cluster"), effect, with(at, "route", "cluster")...)
	for i, c := range action.Get("weighted_clusters").List("clusters") {
		w.named(c.Str("name"), effect, with(at, "route", "weighted_clusters", "clusters", i, "name")...)
	}
	w.retryPolicy(action, with(at, "route"))
}

func with(at []any, more ...any) []any { return append(at[:len(at):len(at)], more...) }

// mirror is a policy that sends copies of requests.
func (w *walker) mirror(v *configfile.Value) {
	w.named(v.Str("cluster"), "no copies are sent", "cluster")
}

// retryPolicy looks at the words of the policy of a route or a virtual host.
func (w *walker) retryPolicy(v *configfile.Value, at []any) {
	for word := range strings.SplitSeq(v.Get("retry_policy").Str("retry_on"), ",") {
		word = strings.TrimSpace(word)
		if word != "" && route.ParseRetryOn(word) == 0 && route.ParseRetryGRPCOn(word) == 0 {
			w.add(sure, config.Error{Msg: "'" + word + "' is no condition of retries: it is ignored", Suggestion: config.Nearest(word, route.RetryWords())},
				with(at, "retry_policy", "retry_on")...)
		}
	}
}

// impossible says of a match which of its fields no path can fit, and why. Paths begin with a slash, or are "*" (of OPTIONS), and are
// compared without query and fragment.
func impossible(m *configfile.Value) (key, why string) {
	for _, key := range []string{"prefix", "path"} {
		switch text := m.Str(key); {
		case text == "":
		case text[0] != '/' && text[0] != '*':
			return key, "no path fits '" + text + "': paths begin with '/'"
		case strings.ContainsAny(text, "?#"):
			return key, "no path fits '" + text + "': paths are compared without the query and the fragment (query_parameters has the former)"
		}
	}
	text := m.Get("safe_regex").Str("regex")
	if text == "" {
		return "", ""
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return "", ""
	}
	first, inner := literals(re)
	switch {
	case first != "" && first[0] != '/' && first[0] != '*':
		return "safe_regex", "no path fits the regular expression '" + text + "', which has to fit all of it: paths begin with '/'"
	case inner:
		return "safe_regex", "no path fits the regular expression '" + text + "': paths are compared without the query and the fragment (query_parameters has the former)"
	}
	return "", ""
}

// literals are the text with which all begins that a regular expression fits, "" if that is not sure, and whether there surely is a
// question mark or a number sign in it.
func literals(re *syntax.Regexp) (first string, query bool) {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		return text, strings.ContainsAny(text, "?#")
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpConcat:
		begun := false
		for _, sub := range re.Sub {
			text, q := literals(sub)
			query = query || q
			if !begun {
				first = text
			}
			begun = begun || sub.Op != syntax.OpBeginText && sub.Op != syntax.OpBeginLine && sub.Op != syntax.OpEmptyMatch
		}
	}
	return first, query
}
