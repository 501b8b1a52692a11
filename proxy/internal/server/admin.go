package server

import (
	"fmt"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// buildAdmin makes the handlers, and the listener if the bootstrap has one.
func (s *Server) buildAdmin(p *bootstrapv3.Admin) error {
	s.admin = admin.New(s.adminHandlers()...)
	if p.GetAddress() == nil {
		return nil
	}
	addr, err := address(p.Address)
	if err != nil {
		return s.located("admin.address", err)
	}
	logs, err := s.accessLogs(p.AccessLog)
	if err != nil {
		return s.located("admin.access_log", err)
	}
	scope := s.store.Root().Scope("listener").Scope("admin")
	cfg := &hcm.Config{
		StatPrefix: "admin", Stats: s.store.Root().Scope("http.admin").Group(stats.HCM),
		ListenerStats: scope.Scope("http.admin").Group(stats.ListenerHTTP),
		H1Stats:       s.store.Root().Scope("http1").Group(stats.HTTP1), H2Stats: s.store.Root().Scope("http2").Group(stats.HTTP2),
		ServerName: "envoy", UseRemoteAddress: true, SkipXFFAppend: false, GenerateRequestID: true, RejectFragment: true,
		IdleTimeout: time.Hour, StreamIdleTimeout: 5 * time.Minute, DelayedCloseTimeout: time.Second, DrainTimeout: 5 * time.Second,
		BufferLimit: 1 << 20, Routes: &route.Slot{}, Logs: logs,
		H1: h1.Options{AllowAbsoluteURL: true}, H2: h2.DefaultOptions(),
		Chain: &fm.Chain{Entries: []fm.Entry{{Name: "envoy.filters.http.admin", Factory: &admin.Factory{Admin: s.admin}}}},
	}
	l := &listener.Listener{Name: "admin", Address: addr, Spec: event.ListenSpec{Address: addr}, Stats: scope.Group(stats.Listener)}
	scope.Scope("main_thread").Group(stats.ListenerWorker)
	l.SetChains(listener.NewChains([]*listener.Chain{{Terminal: hcmTerminal{cfg}}}, nil))
	s.adminListener = &activeListener{name: "admin", l: l}
	return nil
}

// openAdmin opens the admin listener on the main loop, before anything else, so that /ready can be asked while the proxy starts.
func (s *Server) openAdmin() error {
	if s.adminListener == nil {
		return nil
	}
	acc, err := listener.Open(s.adminListener.l, s.main, s.cfg.Sockets)
	if err != nil {
		return fmt.Errorf("admin: cannot bind %s: %w", s.adminListener.l.Address, err)
	}
	s.adminListener.accs = []*listener.Acceptor{acc}
	s.adminListener.bound = acc.LocalAddress()
	return acc.Start()
}

func (s *Server) adminHandlers() []*admin.Handler {
	return []*admin.Handler{
		{Path: "/ready", Help: "print server state, return 200 if LIVE, otherwise return 503", Serve: s.serveReady},
		{Path: "/stats", Help: "print server stats", Serve: s.serveStats},
		{Path: "/stats/prometheus", Help: "print server stats in prometheus format", Serve: s.servePrometheus},
		{Path: "/quitquitquit", Help: "exit the server", Mutates: true, Serve: func(_ *admin.Request, done func(*admin.Response)) {
			done(admin.OK("OK\n"))
			s.main.Post(s.Quit)
		}},
		{Path: "/healthcheck/fail", Help: "cause the server to fail health checks", Mutates: true, Serve: func(_ *admin.Request, done func(*admin.Response)) {
			s.failed.Store(true)
			done(admin.OK("OK\n"))
		}},
		{Path: "/healthcheck/ok", Help: "cause the server to pass health checks", Mutates: true, Serve: func(_ *admin.Request, done func(*admin.Response)) {
			s.failed.Store(false)
			done(admin.OK("OK\n"))
		}},
	}
}

func (s *Server) serveReady(_ *admin.Request, done func(*admin.Response)) {
	st := s.State()
	code := 200
	if st != Live {
		code = 503
	}
	done(admin.Fail(code, st.String()+"\n"))
}

// statsQuery reads the parameters that all forms of /stats share.
func statsQuery(r *admin.Request) (q stats.Query, bad *admin.Response) {
	q.UsedOnly = r.Query.Has("usedonly")
	q.Texts = r.Query.Has("text_readouts")
	if f := r.Query.Get("filter"); f != "" {
		re, err := route.CompileRegex(f, false)
		if err != nil {
			return q, admin.Fail(400, "Invalid re2 regex: "+err.Error())
		}
		q.Filter = re
	}
	var ok bool
	if q.Types, ok = stats.ParseTypes(r.Query.Get("type")); !ok {
		return q, admin.Fail(400, "usage: /stats?type=(All|Counters|Gauges|Histograms|TextReadouts)\n\n")
	}
	if q.Buckets, ok = stats.ParseBuckets(r.Query.Get("histogram_buckets")); !ok {
		return q, admin.Fail(400, stats.BucketsUsage)
	}
	return q, nil
}

func (s *Server) serveStats(r *admin.Request, done func(*admin.Response)) {
	q, bad := statsQuery(r)
	if bad != nil {
		done(bad)
		return
	}
	form := r.Query.Get("format")
	switch form {
	case "prometheus":
		s.servePrometheus(r, done)
		return
	case "", "text", "json":
	default:
		done(admin.Fail(400, "usage: /stats?format=(html|active-html|json|prometheus|text)\n\n"))
		return
	}
	s.collect.collect(func() {
		if form == "json" {
			done(&admin.Response{Code: 200, ContentType: admin.JSON, Body: s.store.JSON(q)})
			return
		}
		done(&admin.Response{Code: 200, ContentType: admin.PlainText, Body: s.store.Text(q)})
	})
}

func (s *Server) servePrometheus(r *admin.Request, done func(*admin.Response)) {
	q, bad := statsQuery(r)
	if bad != nil {
		done(bad)
		return
	}
	s.collect.collect(func() {
		page, err := s.store.Prometheus(q, s.tagger)
		if err != nil {
			done(admin.Fail(400, err.Error()+"\n"))
			return
		}
		done(&admin.Response{Code: 200, ContentType: admin.PlainText, Body: page})
	})
}
