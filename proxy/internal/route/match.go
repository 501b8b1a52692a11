package route

import (
	"regexp"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// conditions is what a route asks of a request.
type conditions struct {
	path pathMatch
	*demands
}

// demands is what a route asks for beyond the path; most ask for nothing, and have none.
type demands struct {
	headers  []HeaderMatch
	params   []paramMatch
	cookies  []cookieMatch
	fraction *fraction
	grpc     bool
	tls      *tlsMatch
	custom   []func(r *Request) bool // metadata, filter state
}

// pathKind says how a path is matched.
type pathKind uint8

const (
	pathPrefix pathKind = iota
	pathExact
	pathRegex
	pathSeparated
	pathConnect
	pathTemplate
)

type pathMatch struct {
	kind pathKind
	fold bool // case-insensitive
	text string
	re   *regexp.Regexp
	tmpl *template
	// literal is what every path that re or tmpl matches begins with.
	literal string
}

// matches looks at a path without its query.
func (m *pathMatch) matches(path string) bool {
	switch m.kind {
	case pathPrefix:
		if m.fold {
			return len(path) >= len(m.text) && http.EqualFold(path[:len(m.text)], m.text)
		}
		return strings.HasPrefix(path, m.text)
	case pathExact:
		if m.fold {
			return http.EqualFold(path, m.text)
		}
		return path == m.text
	case pathSeparated:
		if len(path) < len(m.text) || len(path) > len(m.text) && path[len(m.text)] != '/' {
			return false
		}
		if m.fold {
			return http.EqualFold(path[:len(m.text)], m.text)
		}
		return path[:len(m.text)] == m.text
	case pathRegex:
		return m.re.MatchString(path)
	case pathTemplate:
		return m.tmpl.match(path)
	}
	return true // pathConnect: decided by rest
}

// pathOnly: nothing but the path is asked.
func (m *conditions) pathOnly() bool {
	return m.path.kind != pathConnect && m.demands == nil
}

// rest looks at everything but the path.
func (m *conditions) rest(r *Request, query string) bool {
	if m.path.kind == pathConnect && r.Headers.Get(http.Method) != "CONNECT" {
		return false
	}
	if m.demands == nil {
		return true
	}
	if m.fraction != nil && !m.fraction.hit(r) {
		return false
	}
	for _, h := range m.headers {
		if !h.Match(r.Headers) {
			return false
		}
	}
	for i := range m.params {
		if !m.params[i].match(query) {
			return false
		}
	}
	for i := range m.cookies {
		if !m.cookies[i].match(r.Headers) {
			return false
		}
	}
	if m.grpc && !isGRPC(r.Headers.Get(http.ContentType)) {
		return false
	}
	if m.tls != nil && !m.tls.match(r) {
		return false
	}
	for _, f := range m.custom {
		if !f(r) {
			return false
		}
	}
	return true
}

func isGRPC(ct string) bool {
	const g = "application/grpc"
	return strings.HasPrefix(ct, g) && (len(ct) == len(g) || ct[len(g)] == '+')
}

// fraction is a runtime fraction: numerator of 100, 10,000 or 1,000,000.
type fraction struct {
	key         string
	numerator   uint64
	denominator uint64
}

func (f *fraction) hit(r *Request) bool {
	n, d := f.numerator, f.denominator
	if f.key != "" && r.Runtime != nil {
		n, d = r.Runtime.Fraction(f.key, n, d)
	}
	return r.Random%d < n
}

// tlsMatch is the tls_context matcher.
type tlsMatch struct{ presented, validated *bool }

func (t *tlsMatch) match(r *Request) bool {
	if r.Info == nil || r.Info.Conn == nil || r.Info.Conn.TLS == nil {
		return false
	}
	c := r.Info.Conn.TLS
	if t.presented != nil && *t.presented != (len(c.Peer) > 0) {
		return false
	}
	return t.validated == nil || *t.validated == c.Verified
}

// paramMatch matches one query parameter.
type paramMatch struct {
	name    string
	present *bool
	value   StringMatch
}

func (p *paramMatch) match(query string) bool {
	for q := query; q != ""; {
		pair := q
		if i := strings.IndexByte(q, '&'); i >= 0 {
			pair, q = q[:i], q[i+1:]
		} else {
			q = ""
		}
		k, v, _ := strings.Cut(pair, "=")
		if k == p.name {
			if p.present != nil {
				return *p.present
			}
			return p.value == nil || p.value.Match(v)
		}
	}
	return p.present != nil && !*p.present
}

// cookieMatch matches one cookie.
type cookieMatch struct {
	name   string
	value  StringMatch
	invert bool
}

func (c *cookieMatch) match(h *http.HeaderMap) bool {
	v, ok := h.Cookie(c.name)
	if !ok {
		return c.invert
	}
	return c.value.Match(v) != c.invert
}

// StringMatch is a string matcher.
type StringMatch = match.String

// headerMatch is envoy.config.route.v3.HeaderMatcher. A header that comes several times is matched value by value
// (match_headers_individually).
type headerMatch struct {
	name    string
	id      http.ID
	invert  bool
	missing bool // treat_missing_header_as_empty
	present *bool
	rng     *[2]int64
	value   StringMatch
}

func (m *headerMatch) Match(h *http.HeaderMap) bool {
	found := false
	all := h.All()
	if m.id == http.None || h.Has(m.id) {
		for i := range all {
			if all[i].ID != m.id || m.id == http.None && all[i].Name != m.name {
				continue
			}
			found = true
			if m.present == nil && m.matchValue(all[i].Value) {
				return !m.invert
			}
		}
	}
	if m.present != nil {
		return (found || m.missing) == *m.present != m.invert
	}
	if !found {
		if m.missing {
			return m.matchValue("") != m.invert
		}
		return false
	}
	return m.invert
}

func (m *headerMatch) matchValue(v string) bool {
	if m.rng != nil {
		n, ok := parseInt(v)
		return ok && n >= m.rng[0] && n < m.rng[1]
	}
	return m.value.Match(v)
}

// parseInt reads a number as Envoy does: with a sign, or without.
func parseInt(s string) (int64, bool) {
	neg := strings.HasPrefix(s, "-")
	if neg || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	n, ok := parseUint(s)
	if !ok || n > 1<<62 {
		return 0, false
	}
	if neg {
		return -int64(n), true
	}
	return int64(n), true
}
