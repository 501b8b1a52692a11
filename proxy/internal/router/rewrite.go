package router

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// rewrite changes the request as its route says, in Envoy's order: header rules first see the original, then path and host.
func (r *Router) rewrite(h *http.HeaderMap) {
	rt := r.rt
	if rt.RequestHeaders != nil {
		rt.RequestHeaders.Apply(h, r.cb.Info())
	}
	path := h.Get(http.Path)
	if n, ok := rt.RewritePath(path, r.cb.Arena()); ok && n != path {
		if !r.cfg.SuppressEnvoyHeaders {
			h.SetConst(http.EnvoyOriginalPath, path)
		}
		h.SetConst(http.Path, n)
	}
	old := h.Get(http.Authority)
	switch {
	case rt.HostRewrite != "":
		r.setHost(h, old, rt.HostRewrite)
	case rt.HostRewriteHeader != "":
		if v, ok := h.GetName(rt.HostRewriteHeader); ok && v != "" {
			r.setHost(h, old, v)
		}
	case rt.HostRewritePath != nil:
		p := path
		if i := strings.IndexByte(p, '?'); i >= 0 {
			p = p[:i]
		}
		r.setHost(h, old, rt.HostRewritePath.Replace(p))
	}
}

func (r *Router) setHost(h *http.HeaderMap, old, host string) {
	if r.rt.AppendXFH {
		if v := h.Find(http.XForwardedHost); v != nil {
			h.SetConst(http.XForwardedHost, r.cb.Arena().Concat(v.Value, ",", old))
		} else {
			h.AddConst(http.XForwardedHost, old)
		}
	}
	if !r.cfg.SuppressEnvoyHeaders {
		h.SetConst(http.EnvoyOriginalHost, old)
	}
	h.SetConst(http.Authority, host)
}

// direct answers with the route's own response.
func (r *Router) direct() {
	rt := r.rt
	r.done = true
	body := rt.DirectBody
	if rt.DirectFormat != nil {
		body = string(rt.DirectFormat.Evaluate(nil, &format.Context{Info: r.cb.Info(), Now: r.w.Now(), Wall: r.w.Wall()}))
	}
	r.cb.SendLocalReply(&filter.LocalReply{Code: rt.DirectCode, Body: body, Details: "direct_response", GRPCStatus: -1, Modify: func(h *http.HeaderMap) {
		if rt.DirectType != "" {
			h.SetConst(http.ContentType, rt.DirectType)
		}
		if l := h.Get(http.Location); l == "" && rt.RedirectTo != nil {
			h.SetConst(http.Location, rt.RedirectTo.Location(r.head, r.cb.Arena()))
		}
	}})
}

// redirect answers with the place to go to.
func (r *Router) redirect(h *http.HeaderMap) {
	r.done = true
	to := r.rt.RedirectTo.Location(h, r.cb.Arena())
	if p, ok := r.rt.RedirectTo.Path(h, r.cb.Arena()); ok {
		// Access logs show the path that the client is sent to, and the original beside it.
		h.SetConst(http.EnvoyOriginalPath, h.Get(http.Path))
		h.SetConst(http.Path, p)
	}
	r.cb.SendLocalReply(&filter.LocalReply{Code: r.rt.RedirectTo.Code, Details: "direct_response", GRPCStatus: -1, Modify: func(head *http.HeaderMap) {
		head.AddConst(http.Location, to)
	}})
}

var _ = route.Forward
