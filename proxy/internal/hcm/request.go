package hcm

import (
	"net/netip"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// acceptable checks what HTTP itself demands of a head, and answers the request if it fails.
func (s *Stream) acceptable(head *http.HeaderMap) bool {
	cfg := s.h.cfg
	if s.inf.Protocol == http.HTTP10 {
		if !cfg.AcceptHTTP10 {
			s.h.w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamCxProtocolError))
			s.inf.Flags.Set(stream.DownstreamProtocolError)
			s.inf.Protocol = http.HTTP11
			s.closeAfter = true
			s.directReply(426, "Upgrade Required", "low_version")
			return false
		}
		if !head.Has(http.Authority) && cfg.DefaultHTTP10Host != "" {
			head.AddConst(http.Authority, cfg.DefaultHTTP10Host)
		}
	}
	if head.Get(http.Authority) == "" {
		s.closeAfter = true
		s.directReply(400, "", "missing_host_header")
		return false
	}
	path := head.Get(http.Path)
	connect := head.Get(http.Method) == "CONNECT"
	if path == "" && !connect {
		s.closeAfter = true
		s.directReply(404, "", "missing_path_rejected")
		return false
	}
	if !connect && path[0] != '/' {
		s.h.w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqNonRelativePath))
		s.directReply(404, "", "absolute_path_rejected")
		return false
	}
	if cfg.RejectFragment && strings.IndexByte(path, '#') >= 0 {
		s.h.w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqFailedPathNormalization))
		s.closeAfter = true
		s.directReply(400, "", "path_normalization_failed")
		return false
	}
	if !s.normalizePath(head, path, connect) {
		return false
	}
	s.normalizeHost(head)
	return true
}

func (s *Stream) normalizeHost(head *http.HeaderMap) {
	cfg := s.h.cfg
	if !cfg.StripAnyPort && !cfg.StripMatchingPort && !cfg.StripTrailingDot {
		return
	}
	host := head.Get(http.Authority)
	name, port := splitPort(host)
	if port != "" && (cfg.StripAnyPort || cfg.StripMatchingPort && port == portOf(s.h.c.Info.Local)) && head.Get(http.Method) != "CONNECT" {
		host, port = name, ""
	}
	if cfg.StripTrailingDot {
		if n, p := splitPort(host); strings.HasSuffix(n, ".") {
			host = n[:len(n)-1]
			if p != "" {
				host = s.arena.Concat(host, ":", p)
			}
		}
	}
	if len(host) != len(head.Get(http.Authority)) {
		head.SetConst(http.Authority, host)
	}
}

func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.IndexByte(host[i:], ']') >= 0 {
		return host, ""
	}
	return host[:i], host[i+1:]
}

// mutate applies the header rules: what ends at this hop, who the client is, what it may say.
func (s *Stream) mutate(head *http.HeaderMap) {
	cfg := s.h.cfg
	s.upgrade = isUpgrade(head)
	if s.upgrade {
		head.RemoveSet(&hopByHopUpgrade)
	} else {
		head.RemoveSet(&hopByHop)
	}
	if head.Has(http.TE) {
		sanitizeTE(head)
	}
	tls := s.h.c.Info.TLS != nil
	proto := "http"
	if tls {
		proto = "https"
	}
	final := s.h.c.Info.Remote.IP.Addr()
	singleXFF := !head.Has(http.XForwardedFor)
	if cfg.UseRemoteAddress {
		if cfg.XFFTrustedHops > 0 {
			if a, ok := fromXFF(head.Get(http.XForwardedFor), cfg.XFFTrustedHops-1); ok {
				final = a
			}
		}
		if !cfg.SkipXFFAppend {
			s.appendXFF(head)
		}
		if cfg.XFFTrustedHops == 0 || !head.Has(http.XForwardedProto) {
			head.SetConst(http.XForwardedProto, proto)
		}
		if cfg.AppendXForwardedPort && (cfg.XFFTrustedHops == 0 || !head.Has(http.XForwardedPort)) {
			head.Set(http.XForwardedPort, portOf(s.h.c.Info.Local))
		}
	} else {
		xff := head.Get(http.XForwardedFor)
		if a, ok := fromXFF(xff, cfg.XFFTrustedHops); ok {
			final = a
			singleXFF = strings.IndexByte(xff, ',') < 0
		} else {
			singleXFF = false
		}
		if !head.Has(http.XForwardedProto) {
			head.AddConst(http.XForwardedProto, proto)
		}
	}
	if cfg.SchemeOverwrite != "" {
		head.SetConst(http.Scheme, cfg.SchemeOverwrite)
		head.SetConst(http.XForwardedProto, cfg.SchemeOverwrite)
	} else if !head.Has(http.Scheme) {
		head.AddConst(http.Scheme, schemeOf(head.Get(http.XForwardedProto), proto))
	}
	s.internal = singleXFF && inAny(cfg.Internal, final)
	edge := cfg.UseRemoteAddress && !s.internal
	if s.internal {
		head.AddConst(http.EnvoyInternal, "true")
	} else {
		if edge {
			head.RemoveSet(&notEdge)
			if final == s.h.c.Info.Remote.IP.Addr() {
				head.Set(http.EnvoyExternalAddress, s.h.remote())
			} else {
				head.Set(http.EnvoyExternalAddress, final.String())
			}
		}
		head.RemoveSet(&notExternal)
		if s.h.cfg.Routes != nil {
			if t := cfg.Routes.Load(); t != nil {
				for _, n := range t.InternalOnly {
					head.RemoveName(n)
				}
			}
		}
	}
	s.requestID(head, edge)
	if cfg.Via != "" {
		appendList(head, http.Via, ", ", cfg.Via)
	}
	// forward_client_cert_details is SANITIZE.
	head.Remove(http.XForwardedClientCert)
}

func (s *Stream) appendXFF(head *http.HeaderMap) {
	me := s.h.remote()
	if a := s.h.c.Info.Remote.IP.Addr(); a.IsValid() && a.IsLoopback() && s.h.cfg.LocalAddress.IsValid() {
		me = s.h.l.localText(s.h.cfg.LocalAddress)
	}
	if me == "" {
		return
	}
	if !head.Has(http.XForwardedFor) {
		head.AddConst(http.XForwardedFor, me)
		return
	}
	appendList(head, http.XForwardedFor, ",", me)
}

// localText returns a as text, kept for the next time.
func (l *local) localText(a netip.Addr) string {
	if l.localAddr != a {
		l.localAddr, l.localStr = a, a.String()
	}
	return l.localStr
}

func appendList(head *http.HeaderMap, id http.ID, sep, v string) {
	if old := head.Find(id); old != nil {
		head.SetConst(id, head.Arena().Concat(old.Value, sep, v))
		return
	}
	head.AddConst(id, v)
}

func (s *Stream) requestID(head *http.HeaderMap, edge bool) {
	cfg := s.h.cfg
	if !cfg.GenerateRequestID {
		return
	}
	old := head.Find(http.XRequestID)
	if old != nil && (!edge || cfg.PreserveRequestID) && old.Value != "" {
		return
	}
	b := s.arena.Bytes(36)
	s.h.w.Rand.AppendUUID(b[:0])
	if old != nil {
		old.Value = http.View(b)
		return
	}
	head.AddConst(http.XRequestID, http.View(b))
}

// fromXFF returns the address hops places before the last one of a x-forwarded-for header.
func fromXFF(xff string, hops int) (netip.Addr, bool) {
	for ; hops >= 0 && xff != ""; hops-- {
		i := strings.LastIndexByte(xff, ',')
		item := xff[i+1:]
		if hops == 0 {
			item = strings.TrimSpace(item)
			a, err := netip.ParseAddr(item)
			if err != nil {
				if ap, err := netip.ParseAddrPort(item); err == nil {
					return ap.Addr(), true
				}
				return netip.Addr{}, false
			}
			return a, true
		}
		if i < 0 {
			return netip.Addr{}, false
		}
		xff = xff[:i]
	}
	return netip.Addr{}, false
}

func schemeOf(xfp, def string) string {
	if xfp == "http" || xfp == "https" {
		return xfp
	}
	return def
}

func inAny(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// sanitizeTE keeps "trailers" only (RFC 9110, section 10.1.4: the field is for one hop).
func sanitizeTE(head *http.HeaderMap) {
	v := head.Get(http.TE)
	for v != "" {
		word := v
		if i := strings.IndexByte(v, ','); i >= 0 {
			word, v = v[:i], v[i+1:]
		} else {
			v = ""
		}
		if i := strings.IndexByte(word, ';'); i >= 0 {
			word = word[:i]
		}
		if http.EqualFold(strings.TrimSpace(word), "trailers") {
			head.SetConst(http.TE, "trailers")
			return
		}
	}
	head.Remove(http.TE)
}

// isUpgrade tells whether a head asks for another protocol on this connection (RFC 9110, section 7.8).
func isUpgrade(head *http.HeaderMap) bool {
	if !head.Has(http.Upgrade) || !head.Has(http.Connection) {
		return false
	}
	c := head.Get(http.Connection)
	for c != "" {
		word := c
		if i := strings.IndexByte(c, ','); i >= 0 {
			word, c = c[:i], c[i+1:]
		} else {
			c = ""
		}
		if http.EqualFold(strings.TrimSpace(word), "upgrade") {
			return true
		}
	}
	return false
}

func isGRPC(contentType string) bool {
	const g = "application/grpc"
	return len(contentType) >= len(g) && contentType[:len(g)] == g && (len(contentType) == len(g) || contentType[len(g)] == '+')
}

func (s *Stream) lookup() {
	s.routed = true
	s.route = nil
	if s.table == nil {
		return
	}
	s.match = route.Request{Headers: &s.req, Info: &s.inf, Random: s.random, Runtime: s.h.cfg.Runtime}
	s.route = s.table.Match(&s.match)
	if s.route == nil {
		return
	}
	s.inf.RouteName, s.inf.VirtualHost = s.route.RouteName, s.route.VHost
	if s.route.HasIdleTimeout {
		s.idleTimeout = int64(s.route.IdleTimeout)
		if s.idleTimeout == 0 {
			s.h.w.Disarm(&s.idle)
		} else {
			s.touch()
		}
	}
}

// checkRoute applies what must be known before filters run: upgrades that nobody allowed.
func (s *Stream) checkRoute(head *http.HeaderMap) bool {
	connect := head.Get(http.Method) == "CONNECT"
	s.connect = connect
	if !s.upgrade && !connect {
		return true
	}
	name := "connect"
	if s.upgrade {
		name = strings.ToLower(head.Get(http.Upgrade))
	} else if p := head.Get(http.Protocol); p != "" {
		name = strings.ToLower(p)
	}
	allowed := s.h.cfg.Upgrades[name]
	if s.route != nil {
		if v, ok := s.route.Upgrades[name]; ok {
			allowed = v
		}
	} else if connect {
		return true // no route: 404
	}
	if allowed {
		s.upgrade = true
		return true
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqWsOnNonWsRoute))
	s.closeAfter = s.closeAfter || connect && !s.h.isH2
	s.directReply(403, "", "upgrade_failed")
	return false
}
