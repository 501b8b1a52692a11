package hcm

import (
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// acceptOld lets HTTP/1.0 in, or answers as Envoy's codec does, which has not looked at the head then.
func (s *Stream) acceptOld(head *http.HeaderMap) bool {
	h := s.h
	if h.cfg.AcceptHTTP10 {
		s.inf.Protocol = http.HTTP10
		if !head.Has(http.Authority) && h.cfg.DefaultHTTP10Host != "" {
			head.AddConst(http.Authority, h.cfg.DefaultHTTP10Host)
		}
		return true
	}
	h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxProtocolError))
	s.broken = true
	head.Init(head.Arena())
	h.draining = true
	s.directReply(426, "Upgrade Required", "low_version")
	return false
}

// acceptable checks what HTTP itself demands of a head, and answers the request if it fails.
func (s *Stream) acceptable(head *http.HeaderMap) bool {
	cfg := s.h.cfg
	if cfg.Overloaded != nil && cfg.Overloaded(s.h.w) {
		s.overloaded()
		return false
	}
	if !cfg.Proxy100Continue && head.Has(http.Expect) && http.EqualFold(head.Get(http.Expect), "100-continue") {
		s.send100()
		head.Remove(http.Expect)
	}
	if !head.Has(http.Authority) {
		s.directReply(400, "", "missing_host_header")
		return false
	}
	method := head.Get(http.Method)
	s.connect = method == "CONNECT"
	if !s.checkPath(head, method) {
		return false
	}
	s.normalizeHost(head)
	return true
}

func (s *Stream) overloaded() {
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqOverloadClose))
	r := &filter.LocalReply{Code: 503, Body: "envoy overloaded", Details: "overload", GRPCStatus: -1}
	if s.h.cfg.LocalOverload {
		r.Modify = func(h *http.HeaderMap) { h.AddConst(http.EnvoyLocalOverloaded, "true") }
	}
	s.reply1(r)
}

// table is the route table for a request as the client has sent it, nil if there is none.
func (c *Config) table(h *http.HeaderMap) *route.Table {
	if c.Scopes != nil {
		return c.Scopes.Table(h)
	}
	return c.Routes.Load()
}

// lookup finds the request's route and applies what it says about the stream's timeouts.
func (s *Stream) lookup() {
	if s.h.cfg.RecordRoutes {
		began := s.h.w.Clock().Mono()
		defer func() {
			s.lookups++
			s.lookupTime += s.h.w.Clock().Mono() - began
		}()
	}
	s.routed = true
	s.route = nil
	t := s.table
	if t == nil {
		t = s.h.cfg.table(&s.req)
	}
	if t == nil || s.noProto {
		return
	}
	m := &s.h.l.match
	m.Headers, m.Info, m.Random, m.Runtime = &s.req, &s.inf, s.random, s.h.cfg.Runtime
	e := t.Match(m)
	*m = route.Request{}
	s.route = e
	if e == nil {
		return
	}
	s.inf.RouteName, s.inf.VirtualHost = e.RouteName, e.VHost
	s.inf.ClusterName, s.inf.ClusterNameRaw = "", ""
	if e.Slot != nil {
		if c := e.Slot.Load(); c != nil {
			s.inf.ClusterName, s.inf.ClusterNameRaw = c.ObservabilityName(), c.Name()
		}
	}
	if e.HasIdleTimeout {
		s.idleTimeout = int64(e.IdleTimeout)
		if s.idleTimeout == 0 {
			s.h.w.Disarm(&s.idle)
		} else {
			s.touch()
		}
	}
	if e.HasMaxStreamDuration || e.HasGRPCTimeoutMax {
		s.duration(e)
	}
}

// duration applies a route's max_stream_duration: the route's bound, or the one that a gRPC client asks for by grpc-timeout, in place
// of the connection manager's. The whole life of the stream counts.
func (s *Stream) duration(e *route.Entry) {
	w := s.h.w
	limit, off := s.h.cfg.MaxStreamDuration, s.h.cfg.MaxStreamDuration == 0
	d, asked := route.GRPCTimeout(s.req.Get(http.GRPCTimeout))
	switch {
	case asked && e.HasGRPCTimeoutMax && e.NewTimeouts:
		limit, off = d, false
		if m := e.GRPCTimeoutMax; m > 0 && limit > m {
			limit = m
		}
		if o := e.GRPCTimeoutOffset; o > 0 && limit > 0 {
			limit = max(limit-o, 0)
		}
	case e.HasMaxStreamDuration:
		limit, off = e.MaxStreamDuration, e.MaxStreamDuration == 0
	}
	if e.NewTimeouts && s.grpc {
		if off {
			if asked {
				s.req.Remove(http.GRPCTimeout)
			}
		} else {
			s.req.SetConst(http.GRPCTimeout, route.FormatGRPCTimeout(&s.arena, limit))
		}
	}
	if off {
		w.Disarm(s.maxDuration)
		return
	}
	left := limit - time.Duration(w.Now()-s.inf.Start)
	s.arm(&s.maxDuration, (*Stream).onMaxDuration, max(left, 1))
}

// mayUpgrade tells whether a request for another protocol may have it, and which filters it gets. Without a route it goes on to be
// answered with 404.
func (s *Stream) mayUpgrade(head *http.HeaderMap) (ok bool, chain *fm.Chain) {
	cfg := s.h.cfg
	name := "connect"
	if s.upgrade {
		name = strings.ToLower(head.Get(http.Upgrade))
	} else if p := head.Get(http.Protocol); p != "" {
		name = strings.ToLower(p)
	}
	u := cfg.Upgrades[name]
	allowed := u.Enabled
	if s.route != nil {
		if v, set := s.route.Upgrades[name]; set {
			allowed = v
		}
	}
	if !allowed {
		return s.route == nil, cfg.Chain
	}
	s.upgraded = true
	st := s.h.w.Stats
	st.Inc(cfg.Stats.Counter(stats.HCMDownstreamCxUpgradesTotal))
	st.GaugeAdd(cfg.Stats.Gauge(stats.HCMDownstreamCxUpgradesActive), 1)
	if u.Chain != nil {
		return true, u.Chain
	}
	return true, cfg.Chain
}

// StaticMetadata gives access to the metadata of the configuration that the stream runs under.
func (s *Stream) StaticMetadata(kind stream.MetadataKind, namespace string) map[string]any {
	switch kind {
	case stream.RouteMetadata:
		if s.route != nil {
			return s.route.Metadata(namespace)
		}
	case stream.VirtualHostMetadata:
		if s.route != nil {
			return s.route.HostMetadata(namespace)
		}
	case stream.ListenerMetadata:
		return s.h.cfg.Listener[namespace]
	case stream.ClusterMetadata, stream.HostMetadata:
		if m := s.inf.Upstream.Static; m != nil {
			return m.StaticMetadata(kind, namespace)
		}
	}
	return nil
}
