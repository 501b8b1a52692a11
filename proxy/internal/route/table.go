// Package route turns a request into a route: virtual host by domain, route by first match, and what the route says to do.
//
// A Table is compiled once on the main loop, immutable, and shared by all workers; a Slot is what a listener's configuration
// points at, so that a new table reaches new requests at once. Nothing here reads a protobuf while serving.
package route

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// Request is what matching looks at.
type Request struct {
	Headers *http.HeaderMap
	Info    *stream.Info
	// Random is one random number for the whole request, so that all fractions of a request agree.
	Random uint64
	// Runtime answers runtime fractions and percentages; nil: defaults.
	Runtime RuntimeReader
	// SetCookies are the cookies that hash policies have made for the client.
	SetCookies []string

	data match.Data // of the tree that is being evaluated
}

// RuntimeReader is the runtime as matching sees it.
type RuntimeReader interface {
	// Uint returns a runtime key as a number, def if it is not set.
	Uint(key string, def uint64) uint64
	// Fraction returns a runtime key as a fraction, the given one if it is not set. A whole number is a percentage.
	Fraction(key string, numerator, denominator uint64) (n, d uint64)
	// Bool returns a runtime key as a truth value, def if it is not set.
	Bool(key string, def bool) bool
}

// Slot holds the current table of one route configuration. Load it once per request.
type Slot struct {
	p    atomic.Pointer[Table]
	Name string
}

// Load returns the current table, nil before the first.
func (s *Slot) Load() *Table { return s.p.Load() }

// Store makes t current, and releases the table before it; nil leaves none. owner: main loop.
func (s *Slot) Store(t *Table) {
	if old := s.p.Swap(t); old != nil && old != t {
		old.Release()
	}
}

// Table is a compiled route configuration.
type Table struct {
	Name string
	// Version is the version_info that it came with.
	Version string

	exact    map[string]*VirtualHost   // nil if there is nothing but "*"
	suffixes *match.Trie[*VirtualHost] // "*.example.com", from its end
	prefixes *match.Trie[*VirtualHost] // "example.*"
	star     *VirtualHost
	// HostHeader has the name that virtual hosts are chosen by; "": the authority.
	HostHeader string
	// IgnorePort matches the host without its port.
	IgnorePort bool

	// IgnoreParams matches paths without what comes after a semicolon.
	IgnoreParams bool

	// InternalOnly are request headers that clients outside may not send.
	InternalOnly []string
	// MaxDirectBody is max_direct_response_body_size_bytes.
	MaxDirectBody int

	held []astats.Scope // whose statistics t has

	rest uint64 // the hash of all but the virtual hosts
}

// VirtualHost is a list of routes for some domains.
type VirtualHost struct {
	Name string
	// toTLS answers requests without TLS; nil if they are welcome. externalOnly: only those from outside are not.
	toTLS        *Entry
	externalOnly bool
	ignoreParams bool
	routes       []*Entry
	// tree chooses the routes in place of routes, if it is set.
	tree *match.Tree[[]*Entry]
	// index finds the first candidate by path without trying every route; see compileIndex.
	index *pathIndex
	hash  uint64         // of the configuration, 0: unknown
	held  []astats.Scope // whose statistics its routes count in
}

// Match returns the route of a request, nil if there is none.
func (t *Table) Match(r *Request) *Entry {
	name := r.Headers.Get(http.Authority)
	if t.HostHeader != "" {
		var ok bool
		if name, ok = r.Headers.GetName(t.HostHeader); !ok && t.exact != nil {
			return nil
		}
	}
	vh := t.Host(name)
	if vh == nil {
		return nil
	}
	return vh.Match(r)
}

// Host returns the virtual host of an authority: exact, then the longest suffix, then the longest prefix, then "*".
func (t *Table) Host(authority string) *VirtualHost {
	if t.exact == nil || authority == "" {
		return t.star
	}
	if t.IgnorePort {
		authority = withoutPort(authority)
	}
	var scratch [256]byte
	host := lower(authority, scratch[:0])
	if vh, ok := t.exact[string(host)]; ok {
		return vh
	}
	// A wildcard stands for one byte at least.
	if t.suffixes != nil {
		var back [256]byte
		if vh, ok := t.suffixes.Longest(view(backwards(host, back[:0])), len(host)-1); ok {
			return vh
		}
	}
	if vh, ok := t.prefixes.Longest(view(host), len(host)-1); ok {
		return vh
	}
	return t.star
}

// view is b as a string for as long as b is not changed.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// backwards appends s to dst, its last byte first.
func backwards[S string | []byte](s S, dst []byte) []byte {
	for i := len(s) - 1; i >= 0; i-- {
		dst = append(dst, s[i])
	}
	return dst
}

// lower appends s in lower case to dst.
func lower(s string, dst []byte) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// withoutPort cuts what is behind the last colon, a number or not.
func withoutPort(host string) string {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.IndexByte(host[i:], ']') >= 0 {
		return host
	}
	return host[:i]
}

// Match returns the first route of v that matches.
func (v *VirtualHost) Match(r *Request) *Entry {
	if v.toTLS != nil && schemeOf(r.Headers) != "https" && (!v.externalOnly || r.Headers.Get(http.EnvoyInternal) != "true") {
		return v.toTLS
	}
	path := r.Headers.Get(http.Path)
	pathOnly, query := path, ""
	if i := strings.IndexByte(path, '?'); i >= 0 {
		pathOnly, query = path[:i], path[i+1:]
	}
	if v.ignoreParams && strings.IndexByte(pathOnly, ';') >= 0 {
		pathOnly = withoutParams(pathOnly)
	}
	if v.index != nil {
		return v.index.match(v, r, pathOnly, query)
	}
	routes := v.routes
	if v.tree != nil {
		routes = r.choose(v.tree)
	}
	for _, e := range routes {
		if e.match.path.matches(pathOnly) && e.match.rest(r, query) {
			return e.resolve(r)
		}
	}
	return nil
}

// choose evaluates a matcher tree.
func (r *Request) choose(t *match.Tree[[]*Entry]) []*Entry {
	r.data = match.Data{Request: r.Headers, Info: r.Info, Runtime: r.Runtime}
	routes, _ := t.Match(&r.data)
	r.data = match.Data{}
	return routes
}

// withoutParams returns path without what its segments have after a semicolon.
func withoutParams(path string) string {
	b := make([]byte, 0, len(path))
	skip := false
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case ';':
			skip = true
		case '/':
			skip = false
		}
		if !skip {
			b = append(b, path[i])
		}
	}
	return string(b)
}

func pathOf(h *http.HeaderMap) string { return h.Get(http.Path) }

// schemeOf is the scheme that the client used, as far as we are told.
func schemeOf(h *http.HeaderMap) string {
	if p := h.Get(http.XForwardedProto); p == "http" || p == "https" {
		return p
	}
	return h.Get(http.Scheme)
}

// Next: proxy/internal/router/router.go
