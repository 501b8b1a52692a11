package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	filelogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/api/log"
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
	s.admin.OnRefused = func(path, method string) {
		s.logger("admin").Error("admin path \"" + path + "\" mutates state, method=" + method + " rather than POST")
	}
	if err := s.allowPaths(p.GetAllowPaths()); err != nil {
		return s.located("admin.allow_paths", err)
	}
	logs, err := s.accessLogs(adminLogs(p)) // without an address, too
	if err != nil {
		return s.located("admin.access_log", err)
	}
	if p.GetAddress() == nil {
		return nil
	}
	addr, err := address(p.Address)
	if err != nil {
		return s.located("admin.address", err)
	}
	scope := s.store.Root().Scope("listener").Scope("admin")
	cfg := &hcm.Config{
		StatPrefix: "admin", Stats: s.store.Root().Scope("http.admin").Group(stats.HCM),
		ListenerStats: scope.Scope("http.admin").Group(stats.ListenerHTTP),
		H1Stats:       s.store.Root().Scope("http1").Group(stats.HTTP1), H2Stats: s.store.Root().Scope("http2").Group(stats.HTTP2),
		ServerName: "envoy", UseRemoteAddress: true, SkipXFFAppend: false, GenerateRequestID: true,
		IdleTimeout: time.Hour, StreamIdleTimeout: 5 * time.Minute, DelayedCloseTimeout: time.Second, DrainTimeout: 5 * time.Second,
		BufferLimit: 1 << 20, Routes: &route.Slot{}, Logs: logs,
		H1: h1.Options{AllowAbsoluteURL: true}, H2: h2.DefaultOptions(),
		Chain: &fm.Chain{Entries: []fm.Entry{{Name: "envoy.filters.http.admin", Factory: &admin.Factory{Admin: s.admin}}}},
	}
	l := &listener.Listener{Name: "admin", Address: addr, Spec: event.ListenSpec{Address: addr}, Stats: scope.Group(stats.Listener)}
	scope.Scope("main_thread").Group(stats.ListenerWorker)
	l.SetChains(listener.OneChain(&listener.Chain{Terminal: hcmTerminal{cfg}}))
	s.adminListener = &activeListener{name: "admin", l: l}
	return nil
}

// adminLogs are the admin interface's access logs; the old field names a file.
func adminLogs(p *bootstrapv3.Admin) []*accesslogv3.AccessLog {
	path := p.GetAccessLogPath() //nolint:staticcheck // deprecated, still read by Envoy
	if path == "" {
		return p.GetAccessLog()
	}
	a, err := anypb.New(&filelogv3.FileAccessLog{Path: path})
	if err != nil {
		return p.GetAccessLog() // a message with one string can always be encoded
	}
	return append(slices.Clone(p.GetAccessLog()), &accesslogv3.AccessLog{Name: "envoy.access_loggers.file",
		ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: a}})
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
	if err := s.writeAdminAddress(s.adminListener.bound.String()); err != nil {
		return err
	}
	s.logger("main").Info("Starting admin HTTP server at " + s.adminListener.bound.String())
	s.logger("admin").Info("admin address: " + s.adminListener.bound.String())
	return acc.Start()
}

// writeAdminAddress writes --admin-address-path.
func (s *Server) writeAdminAddress(address string) error {
	path := s.cfg.Options.CommandLine.AdminAddressPath
	if path == "" {
		return nil
	}
	if err := os.WriteFile(path, []byte(address), 0o644); err != nil { //nolint:gosec // others are to read it
		s.logger("admin").Log(context.Background(), log.Critical, "cannot open admin address output file "+path+" for writing.")
	}
	return nil
}

// allowPaths restricts the interface to some paths; none: all of them.
func (s *Server) allowPaths(list []*matcherv3.StringMatcher) error {
	if len(list) == 0 {
		return nil
	}
	match, err := anyOf(&matcherv3.ListStringMatcher{Patterns: list})
	if err != nil {
		return err
	}
	s.admin.Allow = func(path string) bool { return match([]byte(path)) }
	return nil
}

// AdminHandler is the interface for programs that serve it themselves. Safe from any goroutine, while Run runs.
func (s *Server) AdminHandler() http.Handler { return s.admin.Handler(s.main.Post) }
