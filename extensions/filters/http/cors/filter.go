package cors

import (
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// policy is what one level of a route says. What it leaves open, a less specific level may say. It is immutable.
type policy struct {
	origins                          []ext.StringMatcher
	methods, headers, expose, maxAge string
	credentials, private, forward    choice
	enabled, shadow                  *fraction
}

// choice is a truth value that may be left open.
type choice uint8

const (
	unset choice = iota
	no
	yes
)

// fraction is a share of requests that a runtime key may change.
type fraction struct {
	key                    string
	numerator, denominator uint64
}

type factory struct {
	stats   stats.GroupBase
	runtime ext.Runtime
}

// New returns the filter of one stream.
func (f *factory) New(network.Dispatcher) filter.Filter { return &checker{f: f} }

// Sides says that the filter looks at requests and responses.
func (f *factory) Sides() filter.Sides { return filter.Both }

// checker is one stream's.
type checker struct {
	filter.PassThrough
	f      *factory
	levels []any // of *policy, the most specific one first
	room   [4]any
	origin string // of a request that is allowed
}

// DecodeHeaders checks the origin, and answers preflights (fetch.spec.whatwg.org, "CORS-preflight request").
func (c *checker) DecodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	if c.levels = c.CB.RouteConfigs(c.room[:0]); len(c.levels) == 0 {
		// Only a route without a policy for the filter may have one in its older fields.
		if r := c.CB.Route(); r != nil {
			c.levels = r.FilterConfigs(c.room[:0], route.CORS)
		}
	}
	if len(c.levels) == 0 {
		return filter.HeadersContinue
	}
	enabled := c.share(func(p *policy) *fraction { return p.enabled }, true)
	if !enabled && !c.share(func(p *policy) *fraction { return p.shadow }, false) {
		return filter.HeadersContinue
	}
	origin := h.Get(http.Origin)
	if origin == "" {
		return filter.HeadersContinue
	}
	preflight := h.Get(http.Method) == "OPTIONS" && h.Get(http.AccessControlRequestMethod) != ""
	if !c.allowed(origin) {
		c.CB.Stats().Inc(c.f.stats.Counter(originInvalid))
		if enabled && preflight && c.choose(func(p *policy) choice { return p.forward }, yes) == no {
			c.reply(func(*http.HeaderMap) {})
			return filter.HeadersStopIteration
		}
		return filter.HeadersContinue
	}
	c.CB.Stats().Inc(c.f.stats.Counter(originValid))
	if !enabled {
		return filter.HeadersContinue
	}
	c.origin = origin
	if !preflight {
		return filter.HeadersContinue
	}
	private := c.choose(func(p *policy) choice { return p.private }, no) == yes
	private = private && h.Get(http.AccessControlRequestPrivateNetwork) == "true"
	c.reply(func(r *http.HeaderMap) {
		put(r, http.AccessControlAllowMethods, c.text(func(p *policy) string { return p.methods }))
		put(r, http.AccessControlAllowHeaders, c.text(func(p *policy) string { return p.headers }))
		put(r, http.AccessControlMaxAge, c.text(func(p *policy) string { return p.maxAge }))
		if private {
			r.AddConst(http.AccessControlAllowPrivateNetwork, "true")
		}
	})
	return filter.HeadersStopIteration
}

func put(h *http.HeaderMap, id http.ID, v string) {
	if v != "" {
		h.SetConst(id, v)
	}
}

// reply answers a preflight. It comes through EncodeHeaders like any other response.
func (c *checker) reply(modify func(h *http.HeaderMap)) {
	c.CB.SendLocalReply(&filter.LocalReply{Code: 200, Details: "cors_response", GRPCStatus: -1, Modify: modify})
}

// EncodeHeaders says who may read the response.
func (c *checker) EncodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	if c.origin == "" {
		return filter.HeadersContinue
	}
	h.SetConst(http.AccessControlAllowOrigin, c.origin)
	if c.choose(func(p *policy) choice { return p.credentials }, no) == yes {
		h.SetConst(http.AccessControlAllowCredentials, "true")
	}
	put(h, http.AccessControlExposeHeaders, c.text(func(p *policy) string { return p.expose }))
	return filter.HeadersContinue
}

// allowed asks the most specific level that names origins.
func (c *checker) allowed(origin string) bool {
	for _, l := range c.levels {
		p := l.(*policy)
		if len(p.origins) == 0 {
			continue
		}
		for _, m := range p.origins {
			if m.Match(origin) {
				return true
			}
		}
		return false
	}
	return false
}

// text, choose and share take the most specific level that says something.
func (c *checker) text(get func(p *policy) string) string {
	for _, l := range c.levels {
		if v := get(l.(*policy)); v != "" {
			return v
		}
	}
	return ""
}

func (c *checker) choose(get func(p *policy) choice, def choice) choice {
	for _, l := range c.levels {
		if v := get(l.(*policy)); v != unset {
			return v
		}
	}
	return def
}

func (c *checker) share(get func(p *policy) *fraction, def bool) bool {
	for _, l := range c.levels {
		if f := get(l.(*policy)); f != nil {
			return c.f.runtime.Enabled(f.key, f.numerator, c.CB.Random(), f.denominator)
		}
	}
	return def
}
