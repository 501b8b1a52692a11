package hcm

import (
	"net/netip"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// The sets of headers that the rules below take away.
var (
	// hopByHop are request headers that end at this hop; upgrade requests keep connection and upgrade.
	hopByHop        = http.MakeSet(http.Connection, http.Upgrade, http.KeepAlive, http.ProxyConnection, http.TransferEncoding, http.EnvoyInternal)
	hopByHopUpgrade = http.MakeSet(http.KeepAlive, http.ProxyConnection, http.TransferEncoding, http.EnvoyInternal)
	// notExternal are headers that only internal clients may send.
	notExternal = http.MakeSet(http.EnvoyRetriableStatusCodes, http.EnvoyRetriableHeaderNames, http.EnvoyRetryOn, http.EnvoyRetryGrpcOn,
		http.EnvoyMaxRetries, http.EnvoyUpstreamAltStatName, http.EnvoyUpstreamRqTimeoutMs, http.EnvoyUpstreamRqPerTryTimeoutMs,
		http.EnvoyUpstreamRqTimeoutAltResponse, http.EnvoyExpectedRqTimeoutMs, http.EnvoyForceTrace, http.EnvoyIPTags,
		http.EnvoyOriginalURL, http.EnvoyHedgeOnPerTryTimeout)
	// notEdge are headers that clients at the edge may not send.
	notEdge = http.MakeSet(http.EnvoyDecoratorOperation, http.EnvoyDownstreamServiceCluster, http.EnvoyDownstreamServiceNode,
		http.EnvoyOriginalPath, http.EnvoyOriginalHost)
	// rare are headers with rules of their own that most requests do not have.
	rare = http.MakeSet(http.TE, http.Referer, http.XForwardedClientCert)
)

// mutate applies the header rules: what ends at this hop, who the client is, what it may say. false: the request was answered.
func (s *Stream) mutate(head *http.HeaderMap) bool {
	cfg := s.h.cfg
	for _, m := range cfg.EarlyMutations {
		m.Apply(s.h.w, head, &s.inf)
	}
	s.upgrade = isUpgrade(head)
	if s.upgrade {
		head.RemoveSet(&hopByHopUpgrade)
	} else {
		head.RemoveSet(&hopByHop)
	}
	final, trusted, ok := s.client(head)
	if !ok {
		return false
	}
	s.scheme(head)
	s.internal = trusted && (inAny(cfg.Internal, final.IP.Addr()) || cfg.InternalUnix && final.IsUnix())
	edge := cfg.UseRemoteAddress && !s.internal
	if s.internal {
		head.AddConst(http.EnvoyInternal, "true")
	} else {
		s.clean(head, edge)
	}
	if cfg.UserAgent != "" {
		s.userAgent(head)
	}
	if cfg.Via != "" {
		appendList(head, http.Via, ", ", cfg.Via)
	}
	if edge && final.IP.IsValid() {
		if s.inf.Remote.Valid() {
			head.Set(http.EnvoyExternalAddress, final.IP.Addr().String())
		} else {
			head.SetConst(http.EnvoyExternalAddress, s.h.remote())
		}
	}
	s.requestID(head, edge)
	if head.HasAny(&rare) || cfg.ClientCert.Mode > SanitizeCert || cfg.CertMatcher != nil {
		s.rareHeaders(head)
	}
	return true
}

// client finds out who sent the request, and notes it in x-forwarded-for and its like. trusted: nobody before us says so, or
// nobody who could lie. ok is false if the request was answered.
func (s *Stream) client(head *http.HeaderMap) (final network.Address, trusted, ok bool) {
	cfg := s.h.cfg
	info := &s.h.c.Info
	if !cfg.UseRemoteAddress {
		final, trusted, ok = s.detect(head)
		if !ok {
			return final, false, false
		}
	} else {
		trusted = !head.Has(http.XForwardedFor)
		final = info.Remote
		if cfg.XFFTrustedHops > 0 {
			if a, _, found := fromXFF(head.Get(http.XForwardedFor), cfg.XFFTrustedHops-1); found {
				final = network.AddrFrom(netip.AddrPortFrom(a, 0))
				s.inf.Remote = final
			}
		}
		if !cfg.SkipXFFAppend {
			s.appendXFF(head)
		}
	}
	distrust := cfg.UseRemoteAddress && cfg.XFFTrustedHops == 0
	if f := head.Find(http.XForwardedProto); distrust || f == nil {
		head.SetConst(http.XForwardedProto, s.h.forwardedProto())
	} else if f.Value == "" {
		s.noProto = true
	}
	if cfg.AppendXForwardedPort && (distrust || !head.Has(http.XForwardedPort)) && info.Local.IP.IsValid() {
		head.Set(http.XForwardedPort, portOf(info.Local))
	}
	return final, trusted, true
}

// scheme makes sure that there is one: what the configuration says, the client's, or what x-forwarded-proto says.
func (s *Stream) scheme(head *http.HeaderMap) {
	cfg := s.h.cfg
	s.inf.SchemeUpstream = cfg.SchemeUpstream
	if cfg.SchemeOverwrite != "" {
		head.SetConst(http.Scheme, cfg.SchemeOverwrite)
		head.SetConst(http.XForwardedProto, cfg.SchemeOverwrite)
		return
	}
	if f := head.Find(http.Scheme); f != nil {
		switch f.Value {
		case "http", "https":
			return
		}
		if http.EqualFold(f.Value, "http") || http.EqualFold(f.Value, "https") {
			head.Replace(f, s.arena.Copy(lower(nil, f.Value)))
			return
		}
		head.Replace(f, schemeOf(head.Get(http.XForwardedProto), s.h.scheme())) // no request of ours
		return
	}
	head.AddConst(http.Scheme, schemeOf(head.Get(http.XForwardedProto), s.h.scheme()))
}

// forwardedProto is what x-forwarded-proto says of the connection: by its destination port, if a PROXY header has told that, or by TLS.
func (h *Conn) forwardedProto() string {
	if h.cfg.ProtoPorts != nil && h.c.Info.Said().LocalRestored {
		if p, ok := h.cfg.ProtoPorts[h.c.Info.Local.IP.Port()]; ok {
			return p
		}
	}
	return h.scheme()
}

// scheme is that of the connection.
func (h *Conn) scheme() string {
	if h.c.Info.TLS != nil {
		return "https"
	}
	return "http"
}

// clean takes away what clients outside may not say.
func (s *Stream) clean(head *http.HeaderMap, edge bool) {
	if edge {
		head.RemoveSet(&notEdge)
	}
	head.RemoveSet(&notExternal)
	if t := s.table; t != nil {
		for _, n := range t.InternalOnly {
			head.RemoveName(n)
		}
	}
}

// userAgent is add_user_agent: who we are.
func (s *Stream) userAgent(head *http.HeaderMap) {
	cfg := s.h.cfg
	head.SetConst(http.EnvoyDownstreamServiceCluster, cfg.UserAgent)
	if head.Get(http.UserAgent) == "" {
		head.SetConst(http.UserAgent, cfg.UserAgent)
	}
	if cfg.Node != "" {
		head.SetConst(http.EnvoyDownstreamServiceNode, cfg.Node)
	}
}

func (s *Stream) rareHeaders(head *http.HeaderMap) {
	if !s.upgrade && head.Has(http.TE) {
		sanitizeTE(head)
	}
	if head.Has(http.Referer) && !validReferer(head.Get(http.Referer)) {
		head.Remove(http.Referer)
	}
	s.clientCert(head)
}

func (s *Stream) appendXFF(head *http.HeaderMap) {
	me := s.h.remote()
	if a := s.h.c.Info.Remote.IP.Addr(); a.IsValid() {
		switch {
		case isLoopback(a) && s.h.cfg.LocalAddress.IsValid():
			me = s.h.l.localText(s.h.cfg.LocalAddress)
		case s.h.cfg.MapIPv4 && a.Is4():
			me = s.arena.String(netip.AddrFrom16(a.As16()).String())
		}
	}
	if me == "" {
		return
	}
	appendList(head, http.XForwardedFor, ",", me)
}

// isLoopback: as in Envoy the rest of 127.0.0.0/8 does not count.
func isLoopback(a netip.Addr) bool {
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback()
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
		if old.Value != "" {
			v = head.Arena().Concat(old.Value, sep, v)
		}
		head.Replace(old, v)
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
		if edge {
			s.setReason(head, notTraced) // who is outside does not say what is traced
		}
		return
	}
	b := s.arena.Bytes(36)
	s.h.w.Rand.AppendUUID(b[:0])
	if old != nil {
		head.Replace(old, http.View(b))
		return
	}
	head.AddConst(http.XRequestID, http.View(b))
}

func schemeOf(xfp, def string) string {
	switch {
	case http.EqualFold(xfp, "http"):
		return "http"
	case http.EqualFold(xfp, "https"):
		return "https"
	}
	return def
}

// lower appends s to dst in lower case.
func lower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// sanitizeTE keeps "trailers" only (RFC 9110, section 10.1.4: the field is for one hop). As in Envoy the case counts, and an empty field
// stays.
func sanitizeTE(head *http.HeaderMap) {
	v := head.Get(http.TE)
	if v == "" {
		return
	}
	for v != "" {
		word, rest, _ := strings.Cut(v, ",")
		v = rest
		if strings.TrimSpace(word) == "trailers" {
			head.SetConst(http.TE, "trailers")
			return
		}
	}
	head.Remove(http.TE)
}

// isUpgrade tells whether a head asks for, or grants, another protocol on this connection (RFC 9110, section 7.8).
func isUpgrade(head *http.HeaderMap) bool {
	if !head.Has(http.Upgrade) || !head.Has(http.Connection) {
		return false
	}
	for c := head.Get(http.Connection); c != ""; {
		word, rest, _ := strings.Cut(c, ",")
		c = rest
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

// rejected answers a request whose client could not be found out.
func (s *Stream) rejected(code int) {
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqRejectedViaIpDetection))
	s.directReply(code, "", "rejecting_because_detection_failed")
}
