package server

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/anypb"

	aaccesslog "github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tcpproxy"
)

// activeListener is a listener and its sockets.
type activeListener struct {
	name  string
	l     *listener.Listener
	accs  []*listener.Acceptor // by worker
	bound network.Address
}

func (s *Server) hasCluster(name string) bool {
	sl := s.clusters.Lookup(name)
	return sl != nil && sl.Load() != nil
}

// buildListeners makes the static listeners.
func (s *Server) buildListeners() error {
	return s.cfg.Boot.Listeners(func(it config.Item[*listenerv3.Listener]) error {
		l, err := s.listener(it.Message)
		if err != nil {
			return s.located(it.Path, err)
		}
		a := &activeListener{name: it.Message.Name, l: l}
		s.order = append(s.order, a)
		return nil
	})
}

// listener builds one listener.
func (s *Server) listener(p *listenerv3.Listener) (*listener.Listener, error) {
	addr, err := address(p.Address)
	if err != nil {
		return nil, err
	}
	l := &listener.Listener{Name: p.Name, Address: addr}
	l.Spec = event.ListenSpec{Address: addr, Backlog: int(p.GetTcpBacklogSize().GetValue()), Transparent: p.GetTransparent().GetValue(),
		Freebind: p.GetFreebind().GetValue(), ReusePort: p.EnableReusePort == nil || p.EnableReusePort.Value}
	if len(s.workers) == 1 && s.cfg.Options.RestartEpoch == 0 && !addr.IP.IsValid() {
		l.Spec.ReusePort = false
	}
	prefix := p.StatPrefix
	if prefix == "" {
		prefix = addr.String()
	}
	scope := s.store.Root().Scope("listener").Scope(prefix)
	l.Stats = scope.Group(stats.Listener)
	for i := range s.workers {
		l.WorkerStats = append(l.WorkerStats, scope.Scope(fmt.Sprintf("worker_%d", i)).Group(stats.ListenerWorker))
	}
	if len(p.ListenerFilters) > 0 {
		return nil, errors.New("listener_filters is not supported yet")
	}
	limit := 1 << 20
	if p.PerConnectionBufferLimitBytes != nil {
		limit = int(p.PerConnectionBufferLimitBytes.Value)
	}
	var chains []*listener.Chain
	for i, fc := range p.FilterChains {
		ch, err := s.chain(l, fc, scope, limit)
		if err != nil {
			return nil, fmt.Errorf("filter_chains[%d]: %w", i, err)
		}
		chains = append(chains, ch)
	}
	var def *listener.Chain
	if p.DefaultFilterChain != nil {
		if def, err = s.chain(l, p.DefaultFilterChain, scope, limit); err != nil {
			return nil, fmt.Errorf("default_filter_chain: %w", err)
		}
	}
	l.SetChains(listener.NewChains(chains, def))
	return l, nil
}

func chainMatch(p *listenerv3.FilterChainMatch) (listener.Match, error) {
	m := listener.Match{
		DestinationPort: uint16(p.GetDestinationPort().GetValue()), Transport: p.GetTransportProtocol(), ALPN: p.GetApplicationProtocols(),
		SourceType: uint8(p.GetSourceType()),
	}
	for _, n := range p.GetServerNames() {
		n = strings.ToLower(n)
		if strings.Contains(strings.TrimPrefix(n, "*."), "*") {
			return m, errors.New("partial wildcards are not supported in \"server_names\"")
		}
		m.ServerNames = append(m.ServerNames, n)
	}
	for _, x := range p.GetSourcePorts() {
		m.SourcePorts = append(m.SourcePorts, uint16(x))
	}
	for _, l := range []struct {
		from []*corev3.CidrRange
		to   *[]netip.Prefix
	}{{p.GetPrefixRanges(), &m.Destination}, {p.GetDirectSourcePrefixRanges(), &m.DirectSource}, {p.GetSourcePrefixRanges(), &m.Source}} {
		for _, c := range l.from {
			a, err := netip.ParseAddr(c.AddressPrefix)
			if err != nil {
				return m, fmt.Errorf("invalid ip/mask combo '%s/%d' (format is <ip>/<# mask bits>)", c.AddressPrefix, c.GetPrefixLen().GetValue())
			}
			pre, err := a.Prefix(int(c.GetPrefixLen().GetValue()))
			if err != nil {
				return m, fmt.Errorf("invalid ip/mask combo '%s/%d' (format is <ip>/<# mask bits>)", c.AddressPrefix, c.GetPrefixLen().GetValue())
			}
			*l.to = append(*l.to, pre)
		}
	}
	return m, nil
}

func address(a *corev3.Address) (network.Address, error) {
	switch x := a.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		ip, err := netip.ParseAddr(x.SocketAddress.Address)
		if err != nil {
			return network.Address{}, fmt.Errorf("malformed IP address: %s", x.SocketAddress.Address)
		}
		return network.AddrFrom(netip.AddrPortFrom(ip, uint16(x.SocketAddress.GetPortValue()))), nil
	case *corev3.Address_Pipe:
		return network.Address{Path: x.Pipe.Path}, nil
	}
	return network.Address{}, errors.New("address is not supported yet")
}

func (s *Server) chain(l *listener.Listener, fc *listenerv3.FilterChain, scope astats.Scope, limit int) (*listener.Chain, error) {
	ch := &listener.Chain{Name: fc.Name, ConnectTimeout: fc.GetTransportSocketConnectTimeout().AsDuration()}
	var err error
	if ch.Transport, err = s.downstreamTransport(fc.TransportSocket, scope); err != nil {
		return nil, err
	}
	if ch.Match, err = chainMatch(fc.FilterChainMatch); err != nil {
		return nil, err
	}
	if len(fc.Filters) != 1 {
		return nil, errors.New("filters: exactly one network filter is supported yet")
	}
	f := fc.Filters[0]
	m, _, err := config.Unpack(f.GetTypedConfig(), nil)
	if err != nil {
		return nil, err
	}
	switch p := m.(type) {
	case *hcmv3.HttpConnectionManager:
		cfg, err := hcm.New(p, s.hcmDeps(l, p, scope, limit))
		if err != nil {
			return nil, err
		}
		ch.Terminal = hcmTerminal{cfg}
	case *tcpv3.TcpProxy:
		cfg, err := tcpproxy.New(p, &tcpproxy.Deps{Root: s.store.Root(), Slot: s.clusters.Slot, Lookup: s.clusters.Lookup,
			AccessLogs: s.accessLogs, BufferLimit: limit})
		if err != nil {
			return nil, err
		}
		ch.Terminal = cfg
	default:
		return nil, unknownExtension(f.Name, f.GetTypedConfig())
	}
	return ch, nil
}

type hcmTerminal struct{ cfg *hcm.Config }

func (t hcmTerminal) NewHandler(c *conn.Conn) conn.Handler { return hcm.NewConn(t.cfg, c) }

func (s *Server) hcmDeps(l *listener.Listener, p *hcmv3.HttpConnectionManager, scope astats.Scope, limit int) hcm.Deps {
	filterScope := s.store.Root().Scope("http." + p.StatPrefix)
	return hcm.Deps{
		Root: s.store.Root(), Listener: scope, Format: s.format, LocalAddress: s.cfg.Options.LocalAddress, BufferLimit: limit,
		Draining: l.Draining,
		Filter: func(name string, a *anypb.Any) (filter.Factory, bool, error) {
			return s.ext.httpFilter(filterScope, name, a)
		},
		Inline: func(p *hcmv3.HttpConnectionManager) (*route.Slot, error) {
			return s.inlineRoutes(p.GetRouteConfig(), true)
		},
		RDS: s.subscribeRDS,
		AccessLogs: func(p *hcmv3.HttpConnectionManager) (aaccesslog.Loggers, error) {
			return s.accessLogs(p.AccessLog)
		},
		LogFilter: s.mapperFilter,
	}
}

func (s *Server) inlineRoutes(rc *routev3.RouteConfiguration, static bool) (*route.Slot, error) {
	t, err := route.Compile(rc, s.routeDeps(static))
	if err != nil {
		return nil, err
	}
	sl := &route.Slot{Name: rc.Name}
	sl.Store(t)
	return sl, nil
}

// startListeners opens all sockets, then lets all of them accept, so that a failure leaves nothing half open. done is called on the
// main loop. Sockets are opened on their workers, one after the other.
func (s *Server) startListeners(done func(error)) { s.openAll(s.order, done) }

// openAll opens the sockets of some listeners and lets them accept.
func (s *Server) openAll(list []*activeListener, done func(error)) {
	type job struct {
		a *activeListener
		w *event.Worker
	}
	var jobs []job
	for _, a := range list {
		for _, w := range s.workers {
			jobs = append(jobs, job{a, w})
		}
	}
	var next func()
	next = func() {
		if len(jobs) == 0 {
			for _, a := range list {
				a.start(s)
			}
			done(nil)
			return
		}
		j := jobs[0]
		jobs = jobs[1:]
		j.a.open(s, j.w, func(err error) {
			if err != nil {
				done(fmt.Errorf("listener %q: cannot bind %s: %w", j.a.name, j.a.l.Address, err))
				return
			}
			next()
		})
	}
	next()
}

// open opens the listener's socket on w. done is called on the main loop.
func (a *activeListener) open(s *Server, w *event.Worker, done func(error)) {
	w.Post(func() {
		acc, err := listener.Open(a.l, w, s.cfg.Sockets)
		var bound network.Address
		if err == nil {
			bound = acc.LocalAddress()
		}
		s.main.Post(func() {
			if err != nil {
				done(err)
				return
			}
			if len(a.accs) == 0 {
				a.bound = bound
				if a.l.Spec.Address.IP.IsValid() && a.l.Spec.Address.IP.Port() == 0 {
					a.l.Spec.Address = bound // the other workers share the port that the kernel gave
				}
			}
			a.accs = append(a.accs, acc)
			done(nil)
		})
	})
}

// start lets the listener accept on all workers.
func (a *activeListener) start(s *Server) {
	for i, acc := range a.accs {
		s.workers[i].Post(func() { _ = acc.Start() })
	}
}

// closeOn closes what a worker has of the listeners. owner: w.
func (s *Server) closeOn(w *event.Worker) {
	for _, a := range s.order {
		if w.Index < len(a.accs) {
			a.accs[w.Index].Close()
		}
	}
}

var _ = strings.TrimPrefix
