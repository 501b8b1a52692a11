package route

import (
	"regexp"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// RegexRewrite replaces what a regular expression matches.
type RegexRewrite struct {
	re   *regexp.Regexp
	with string // Go's syntax
}

// Replace returns s with all matches replaced.
func (x *RegexRewrite) Replace(s string) string { return x.re.ReplaceAllString(s, x.with) }

// RewritePath returns the path that the upstream gets; ok is false if the route does not change it.
func (e *Entry) RewritePath(path string, a *http.Arena) (string, bool) {
	switch {
	case e.HasPrefixRewrite:
		return e.rewritePrefix(path, e.PrefixRewrite, a), true
	case e.RegexRewrite != nil:
		p, q := cutQuery(path)
		return a.Concat(e.RegexRewrite.Replace(p), q), true
	case e.TemplateRewrite != nil:
		p, q := cutQuery(path)
		return a.Concat(e.TemplateRewrite.apply(p), q), true
	}
	return path, false
}

func cutQuery(path string) (p, query string) {
	if i := strings.IndexByte(path, '?'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// rewritePrefix replaces what the route matched: the prefix, or the whole path of an exact or regex route.
func (e *Entry) rewritePrefix(path, with string, a *http.Arena) string {
	p, q := cutQuery(path)
	switch e.match.path.kind {
	case pathPrefix, pathSeparated:
		n := min(len(e.match.path.text), len(p))
		return a.Concat(with, p[n:], q)
	}
	return a.Concat(with, q)
}

// RedirectAction makes the place that a redirect points to.
type RedirectAction struct {
	Code                   int
	HTTPS                  bool
	Scheme, Host, PathText string
	HasPath                bool
	Prefix                 string
	HasPrefix              bool
	Regex                  *RegexRewrite
	Port                   string
	StripQuery             bool
	// Format makes the path anew; what it makes is for Location.
	Format *format.Format
	// Plain changes nothing but the scheme (require_tls).
	Plain bool
	entry *Entry
}

// Path returns the path part (with query) of the redirect; ok is false if it is the request's own. formatted is what Format makes.
func (d *RedirectAction) Path(h *http.HeaderMap, a *http.Arena, formatted string) (string, bool) {
	path := h.Get(http.Path)
	p, q := cutQuery(path)
	out, changed := p, false
	switch {
	case d.HasPath:
		out, changed = d.PathText, true
		if strings.IndexByte(out, '?') >= 0 {
			return out, true // the configured path brings its own query
		}
	case d.HasPrefix:
		out, changed = d.entry.rewritePrefix(p, d.Prefix, a), true
	case d.Regex != nil:
		out, changed = d.Regex.Replace(p), true
	case formatted != "":
		out, changed = formatted, true
		if strings.IndexByte(out, '?') >= 0 {
			return out, true
		}
	}
	if d.StripQuery {
		return out, changed || q != ""
	}
	return a.Concat(out, q), changed
}

// Rewritten returns the request's own path after the redirect's rewrite; ok is false if it has none.
func (d *RedirectAction) Rewritten(h *http.HeaderMap, a *http.Arena) (path string, ok bool) {
	if !d.HasPrefix && d.Regex == nil {
		return "", false
	}
	path, ok = d.Path(h, a, "")
	if d.StripQuery {
		if i := strings.IndexByte(h.Get(http.Path), '?'); i >= 0 { // only the client's copy goes without it
			path = a.Concat(path, h.Get(http.Path)[i:])
		}
	}
	return path, ok
}

// Location returns the value of the location header.
func (d *RedirectAction) Location(h *http.HeaderMap, a *http.Arena, formatted string) string {
	if d.Plain {
		return a.Concat("https://", h.Get(http.Authority), h.Get(http.Path))
	}
	scheme := h.Get(http.Scheme)
	if scheme == "" {
		scheme = "http"
	}
	old := scheme
	switch {
	case d.HTTPS:
		scheme = "https"
	case d.Scheme != "":
		scheme = d.Scheme
	}
	host := h.Get(http.Authority)
	if d.Host != "" {
		host = d.Host
	} else if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		// A port that was the default of the old scheme would be wrong with the new one.
		if d.Port != "" || scheme != old && (old == "http" && host[i:] == ":80" || old == "https" && host[i:] == ":443") {
			host = host[:i]
		}
	}
	if d.Port != "" {
		host = a.Concat(host, ":", d.Port)
	}
	path, _ := d.Path(h, a, formatted)
	return a.Concat(scheme, "://", host, path)
}
