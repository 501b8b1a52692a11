package router

import (
	"net/netip"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// rewrite changes the request as its route says, in Envoy's order: header rules first see the original, then come host and path.
func (r *Router) rewrite(h *http.HeaderMap) {
	rt := r.rt
	if rt.ClusterHeaders != nil {
		rt.ClusterHeaders.Apply(r.w, h, r.info)
	}
	if rt.ClusterHost != "" {
		h.SetConst(http.Authority, rt.ClusterHost)
	}
	if rt.RequestHeaders != nil {
		rt.RequestHeaders.Apply(r.w, h, r.info)
	}
	path := h.Get(http.Path)
	switch {
	case rt.HostRewrite != "":
		r.setHost(h, h.Get(http.Authority), rt.HostRewrite)
	case rt.HostRewriteHeader != "":
		if v, ok := h.GetName(rt.HostRewriteHeader); ok && v != "" {
			r.setHost(h, h.Get(http.Authority), v)
		}
	case rt.HostFormat != nil:
		if v := h.Arena().Copy(route.Evaluate(r.w, rt.HostFormat, r.info)); v != "" {
			r.setHost(h, h.Get(http.Authority), v)
		}
	case rt.HostRewritePath != nil:
		p := path
		if i := strings.IndexByte(p, '?'); i >= 0 {
			p = p[:i]
		}
		r.setHost(h, h.Get(http.Authority), rt.HostRewritePath.Replace(p))
	}
	n, ok := "", false
	if rt.PathFormat != nil {
		n = h.Arena().Copy(route.Evaluate(r.w, rt.PathFormat, r.info))
		if ok = n != ""; ok {
			if i := strings.IndexByte(path, '?'); i >= 0 {
				n = h.Arena().Concat(n, path[i:])
			}
		}
	} else {
		n, ok = rt.RewritePath(path, h.Arena())
	}
	if ok {
		if !r.cfg.SuppressEnvoyHeaders {
			h.SetConst(http.EnvoyOriginalPath, path)
		}
		h.SetConst(http.Path, n)
	}
}

func (r *Router) setHost(h *http.HeaderMap, old, host string) {
	if !r.cfg.SuppressEnvoyHeaders {
		h.SetConst(http.EnvoyOriginalHost, old)
	}
	if r.rt.AppendXFH {
		if v := h.Find(http.XForwardedHost); v != nil {
			if last := v.Value[strings.LastIndexByte(v.Value, ',')+1:]; last != old {
				h.Replace(v, h.Arena().Concat(v.Value, ",", old))
			}
		} else {
			h.AddConst(http.XForwardedHost, old)
		}
	}
	h.SetConst(http.Authority, host)
}

// name finds out for which server name the connection must be: that of the request as it came.
func (r *Router) name(h *http.HeaderMap, o *pool.Options) {
	host := h.Get(http.Authority)
	if o.SNIHeader != "" {
		if v, ok := h.GetName(o.SNIHeader); ok && v != "" {
			host = v
		}
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	if o.AutoSNI {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
			r.names.SNI = host
		}
	}
	if o.AutoSAN {
		r.names.SAN = host
	}
}

// direct answers with the route's own response, or with the place to go to.
func (r *Router) direct(h *http.HeaderMap) {
	rt := r.rt
	r.done = true
	reply := &r.more().answer
	*reply = filter.LocalReply{Code: rt.DirectCode, Body: rt.DirectBody, Details: "direct_response", GRPCStatus: -1}
	if to := rt.RedirectTo; to != nil {
		formatted := ""
		if to.Format != nil {
			formatted = h.Arena().Copy(route.Evaluate(r.w, to.Format, r.info))
		}
		location := to.Location(h, h.Arena(), formatted)
		if p, ok := to.Rewritten(h, h.Arena()); ok {
			// Access logs show the path that the client is sent to, and the original beside it.
			if !r.cfg.SuppressEnvoyHeaders {
				h.SetConst(http.EnvoyOriginalPath, h.Get(http.Path))
			}
			h.SetConst(http.Path, p)
		}
		reply.Code = to.Code
		reply.Modify = func(head *http.HeaderMap) { head.AddConst(http.Location, location) }
	} else if rt.DirectCode == 201 || rt.DirectCode/100 == 3 {
		// RFC 9110, section 10.2.2; Envoy names the resource itself.
		location := h.Arena().Concat(h.Get(http.Scheme), "://", h.Get(http.Authority), h.Get(http.Path))
		reply.Modify = func(head *http.HeaderMap) { head.AddConst(http.Location, location) }
	}
	if rt.DirectFormat != nil {
		r.info.LocalReplyBody = rt.DirectBody
		reply.Body = h.Arena().Copy(route.Evaluate(r.w, rt.DirectFormat, r.info))
		r.info.LocalReplyBody = ""
	}
	if modify := reply.Modify; rt.DirectType != "" {
		reply.Modify = func(head *http.HeaderMap) {
			head.SetConst(http.ContentType, rt.DirectType)
			if modify != nil {
				modify(head)
			}
		}
	}
	r.cb.SendLocalReply(reply)
}

// strict checks strict_check_headers. false: the request was answered.
func (r *Router) strict(h *http.HeaderMap) bool {
	for _, n := range r.cfg.StrictHeaders {
		v, ok := h.GetName(n)
		if !ok || validEnvoyHeader(n, v) {
			continue
		}
		r.info.Flags.Set(stream.InvalidEnvoyRequestHeaders)
		r.cluster = nil // nothing is charged to it
		r.reply(400, "invalid header '"+n+"' with value '"+v+"'", "request_headers_failed_strict_check{"+n+"}")
		return false
	}
	return true
}

// validEnvoyHeader tells whether an x-envoy-* header has a value of the kind that it should have.
func validEnvoyHeader(name, value string) bool {
	switch name {
	case "x-envoy-upstream-rq-timeout-ms", "x-envoy-upstream-rq-per-try-timeout-ms", "x-envoy-max-retries":
		_, ok := atoi(value)
		return ok
	case "x-envoy-retry-on":
		return allConditions(value, route.ParseRetryOn)
	case "x-envoy-retry-grpc-on":
		return allConditions(value, route.ParseRetryGRPCOn)
	}
	return true
}

func allConditions(list string, parse func(string) route.RetryOn) bool {
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" && parse(w) == 0 {
			return false
		}
	}
	return true
}
