package router

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// The functions of this file follow an upstream's redirect instead of passing it on: the request starts anew, as one for the place
// that the redirect names (internal redirects). What cannot be followed goes to the client.

// redirect follows the redirect h if it can. true: the request has begun anew, and this router is done.
func (r *Router) redirect(a *attempt, p *route.InternalRedirect, h *http.HeaderMap, code int) bool {
	body, whole := r.kept()
	if r.ended && whole && h.Has(http.Location) && r.convert(p, body, h, code) {
		if r.cb.RecreateWith(body, h) {
			r.inc(stats.ClusterUpstreamInternalRedirectSucceededTotal)
			r.finish()
			a.drop()
			return true
		}
	}
	r.inc(stats.ClusterUpstreamInternalRedirectFailedTotal)
	return false
}

// kept is the request's body, nil if it has none. whole is false if not all of it is in memory.
func (r *Router) kept() (body *buffer.Buffer, whole bool) {
	switch k := r.keeper; {
	case r.headOnly:
		return nil, true
	case k != nil:
		return &k.mem, k.file == nil && k.first == 0
	}
	return &r.body, r.keepBody
}

// place is what a Location says.
type place struct{ scheme, host, path string }

// parsePlace takes an absolute URL of HTTP or HTTPS apart. The fragment is nobody's business but the client's (RFC 9110, section 10.2.2).
func parsePlace(location string) (p place, ok bool) {
	scheme, rest, found := strings.Cut(location, "://")
	switch {
	case !found:
		return p, false
	case http.EqualFold(scheme, "http"):
		p.scheme = "http"
	case http.EqualFold(scheme, "https"):
		p.scheme = "https"
	default:
		return p, false
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	p.host, p.path = rest[:end], rest[end:]
	if i := strings.LastIndexByte(p.host, '@'); i >= 0 {
		p.host = p.host[i+1:]
	}
	return p, p.host != "" && strings.IndexFunc(location, isSpace) < 0
}

func isSpace(c rune) bool { return c <= ' ' || c == 0x7f }

// convert makes the request one for the place that a redirect names. false: it may not be followed, and the request is as it was.
func (r *Router) convert(p *route.InternalRedirect, body *buffer.Buffer, answer *http.HeaderMap, code int) bool {
	h := r.head
	to, ok := parsePlace(answer.Get(http.Location))
	if !ok {
		r.count(stats.RouterPassthroughInternalRedirectBadLocation)
		return false
	}
	scheme, tls := "http", h.Get(http.Scheme) == "https"
	if tls {
		scheme = "https"
	}
	if !p.CrossScheme && scheme != to.scheme {
		r.count(stats.RouterPassthroughInternalRedirectUnsafeScheme)
		return false
	}
	done := r.info.Redirects
	if done == nil {
		done = &stream.Redirects{}
		r.info.Redirects = done
	}
	if done.N >= p.Max {
		r.count(stats.RouterPassthroughInternalRedirectTooManyRedirects)
		return false
	}
	var saved http.HeaderMap
	saved.Init(h.Arena())
	saved.CopyFrom(h)
	copyHeaders(p.Copy, h, answer)
	h.SetConst(http.Scheme, to.scheme)
	h.Set(http.Authority, to.host)
	if !strings.HasPrefix(to.path, "/") {
		to.path = "/" + to.path
	}
	h.Set(http.Path, to.path)
	from := r.rt
	r.cb.ClearRouteCache()
	next, _ := r.cb.Route().(*route.Entry)
	switch {
	case next == nil:
		r.count(stats.RouterPassthroughInternalRedirectNoRoute)
		r.info.RouteName, r.info.VirtualHost = "", ""
		ok = false
	case !p.Allows(done, from.RouteName, next.RouteName, tls, to.scheme == "https"):
		r.count(stats.RouterPassthroughInternalRedirectPredicate)
		ok = false
	}
	if !ok {
		f := h.Formatter()
		h.CopyFrom(&saved)
		h.SetFormatter(f)
		return false // the access log shows the route that was not taken, as Envoy's does
	}
	if m := h.Get(http.Method); code == 303 && m != "GET" && m != "HEAD" { // RFC 9110, section 15.4.4
		h.SetConst(http.Method, "GET")
		h.Remove(http.ContentLength)
		if body != nil {
			body.Reset()
		}
	}
	done.N++
	h.SetConst(http.EnvoyOriginalURL, h.Arena().Concat(scheme, "://", saved.Get(http.Authority), saved.Get(http.Path)))
	return true
}

// copyHeaders takes over what the next request is to have of the answer.
func copyHeaders(names []string, h, answer *http.HeaderMap) {
	for _, n := range names {
		h.RemoveName(n)
		for _, v := range answer.Values(nil, n) {
			h.AddName(n, v)
		}
	}
}
