package server

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

var deterministic = proto.MarshalOptions{Deterministic: true}

// Defaults of listeners.
const (
	defaultBufferLimit    = 1 << 20
	defaultFiltersTimeout = 15 * time.Second
)

// listenerBuild makes a listener of its configuration, or the new chains of one that goes on. owner: main loop.
type listenerBuild struct {
	path  string // where the bootstrap has it; "" for one of LDS
	s     *Server
	p     *listenerv3.Listener
	l     *listener.Listener // the one that will serve
	scope astats.Scope
	limit int
	set   *listener.Chains
	// wanted are the addresses as configured: the kernel may have given ports.
	wanted []network.Address
	// fixed is the hash of everything but the chains, whole that of all; byHash finds the chains that may live on.
	fixed, whole uint64
	byHash       map[uint64]*chainUse
	// targets are what must have come before the listener serves, by the names that /init_dump has for them; warm runs when there are none.
	targets []*string
	sealed  bool
	warm    func()

	version string // that pages show
	api     bool   // it came by the API
	// keepConnections: a chain that differs from an old one in its routes only is that chain, with other routes. LDS drains it.
	keepConnections bool
	bare            map[uint64]*chainUse // the old ones by the hash of what they are without routes
	swaps           []func()             // put the routes of such chains in place
	// settled is called when the listener serves, or cannot; nil: nobody waits.
	settled func(error)
}

func (b *listenerBuild) settle(err error) {
	if f := b.settled; f != nil {
		b.settled = nil
		f(err)
	}
}

func (b *listenerBuild) swapRoutes() {
	for _, f := range b.swaps {
		f()
	}
	b.swaps = nil
}

// chainUse is a filter chain and what goes with it in the end.
type chainUse struct {
	ch      *listener.Chain
	release []func()
	inline  []*inlineRoutes
}

func (c *chainUse) close() {
	for _, f := range c.release {
		f()
	}
	c.release = nil
}

// newListenerBuild hashes the configuration and builds nothing yet.
func (s *Server) newListenerBuild(p *listenerv3.Listener) (*listenerBuild, error) {
	b := &listenerBuild{s: s, p: p, limit: defaultBufferLimit, byHash: map[uint64]*chainUse{}}
	if n := p.GetPerConnectionBufferLimitBytes(); n != nil {
		b.limit = int(n.GetValue())
	}
	raw, err := deterministic.Marshal(p)
	if err != nil {
		return nil, err
	}
	b.whole = xxhash.Sum64(raw)
	rest := proto.CloneOf(p)
	rest.FilterChains, rest.DefaultFilterChain, rest.FilterChainMatcher = nil, nil, nil
	if raw, err = deterministic.Marshal(rest); err != nil {
		return nil, err
	}
	b.fixed = xxhash.Sum64(raw)
	return b, nil
}

// build makes a new listener.
func (b *listenerBuild) build() error {
	s, p := b.s, b.p
	var errs config.Errors
	addr, err := listenerAddress(p)
	errs.Collect("address", err)
	errs.Collect("", config.Refuse(listenerGaps, p, ""))
	errs.Collect("", sameSockets(p))
	l := &listener.Listener{Name: p.GetName(), Address: addr, Limit: s.connectionLimit(p.GetName()),
		FiltersTimeout: defaultFiltersTimeout, ContinueOnTimeout: p.GetContinueOnListenerFiltersTimeout(),
		MaxAccept: int(p.GetMaxConnectionsToAcceptPerSocketEvent().GetValue())}
	b.l = l
	l.OnAcceptError = func(e syscall.Errno) {
		s.main.Post(func() {
			s.logger("conn_handler").Error("listener '" + p.GetName() + "' cannot accept connections on " + addr.String() + ": " + e.Error() +
				" (they wait in the backlog; is the limit of open files too low?)")
		})
	}
	// The overload manager's limit does not hold for a listener that bypasses it; the runtime's does. It has no actions yet.
	if !p.GetIgnoreGlobalConnLimit() && !(p.GetBypassOverloadManager() && s.overload.Monitored()) {
		l.Admit = s.overload
	}
	if t := p.GetListenerFiltersTimeout(); t != nil {
		l.FiltersTimeout = t.AsDuration()
	}
	if p.GetUseOriginalDst().GetValue() { //nolint:staticcheck // deprecated in favour of the filter, which does not hand over
		l.Redirect = &s.redirects
	}
	if p.GetConnectionBalanceConfig().GetExactBalance() != nil {
		l.Balance = listener.NewBalance(s.workers)
	}
	errs.Collect("", b.sockets(addr))
	b.stats(addr)
	l.Logs, err = s.accessLogs(p.GetAccessLog())
	errs.Collect("access_log", err)
	errs.Collect("", b.filters())
	errs.Collect("", b.chains(addr, nil))
	if err := errs.Err(); err != nil {
		return err
	}
	l.SetChains(b.set)
	return nil
}

func (b *listenerBuild) stats(addr network.Address) {
	b.scope = b.s.listenerScope(b.p, addr)
	b.l.Stats = b.scope.Group(stats.Listener)
	b.l.ConfigStats = b.scope.Group(stats.ListenerConfig)
	for i := range b.s.workers {
		b.l.WorkerStats = append(b.l.WorkerStats, b.scope.Scope(fmt.Sprintf("worker_%d", i)).Group(stats.ListenerWorker))
	}
}

func (s *Server) listenerScope(p *listenerv3.Listener, addr network.Address) astats.Scope {
	name := p.GetStatPrefix()
	if name == "" {
		name = addr.String()
	}
	return s.store.Root().Scope("listener").Scope(name)
}

// releaseStats gives the groups of a listener that is gone back.
func (b *listenerBuild) releaseStats() {
	b.scope.Release(stats.Listener)
	b.scope.Release(stats.ListenerConfig)
	for i := range b.l.WorkerStats {
		b.scope.Scope(fmt.Sprintf("worker_%d", i)).Release(stats.ListenerWorker)
	}
}

// Numbers of Linux's socket options.
const (
	solSocket, soKeepAlive                            = 1, 9
	ipprotoTCP, tcpKeepIdle, tcpKeepIntvl, tcpKeepCnt = 6, 4, 5, 6
	tcpFastOpen                                       = 23
)

// sockets describes the sockets to open.
func (b *listenerBuild) sockets(addr network.Address) error {
	p := b.p
	spec := event.ListenSpec{Address: addr, Backlog: int(p.GetTcpBacklogSize().GetValue()), Transparent: p.GetTransparent().GetValue(),
		Freebind: p.GetFreebind().GetValue(), ReusePort: p.GetEnableReusePort() == nil || p.GetEnableReusePort().GetValue(),
		Mode: p.GetAddress().GetPipe().GetMode()}
	if len(b.s.workers) == 1 && b.s.cfg.Options.RestartEpoch == 0 && !addr.IP.IsValid() {
		spec.ReusePort = false
	}
	if addr.IP.IsValid() && addr.IP.Addr().Is6() {
		spec.V6Only = !p.GetAddress().GetSocketAddress().GetIpv4Compat()
	}
	spec.Options = socketOptions(p.GetSocketOptions())
	if n := p.GetTcpFastOpenQueueLength(); n != nil {
		spec.Options = append(spec.Options, event.SocketOption{Level: ipprotoTCP, Name: tcpFastOpen, Int: int(n.GetValue()), State: event.StateListening})
	}
	spec.Options = append(spec.Options, keepalive(p.GetTcpKeepalive())...)
	b.l.Spec = spec
	b.l.Spec.Name = p.GetName()
	var errs config.Errors
	for i, x := range p.GetAdditionalAddresses() {
		more := spec
		var err error
		if more.Address, err = address(x.GetAddress()); x.GetAddress() == nil {
			err = noAddress(p)
		}
		errs.Collect(fmt.Sprintf("additional_addresses[%d].address", i), err)
		if o := x.GetSocketOptions(); o != nil {
			more.Options = socketOptions(o.GetSocketOptions())
		}
		more.Mode = x.GetAddress().GetPipe().GetMode()
		b.l.More = append(b.l.More, more)
	}
	for _, x := range specs(b.l) {
		b.wanted = append(b.wanted, x.Address)
	}
	return errs.Err()
}

func keepalive(k *corev3.TcpKeepalive) (list []event.SocketOption) {
	if k == nil {
		return nil
	}
	set := func(level, name, v int) {
		list = append(list, event.SocketOption{Level: level, Name: name, Int: v, State: event.StatePrebind})
	}
	set(solSocket, soKeepAlive, 1)
	if n := k.GetKeepaliveProbes(); n != nil {
		set(ipprotoTCP, tcpKeepCnt, int(n.GetValue()))
	}
	if n := k.GetKeepaliveTime(); n != nil {
		set(ipprotoTCP, tcpKeepIdle, int(n.GetValue()))
	}
	if n := k.GetKeepaliveInterval(); n != nil {
		set(ipprotoTCP, tcpKeepIntvl, int(n.GetValue()))
	}
	return list
}

func socketOptions(list []*corev3.SocketOption) (out []event.SocketOption) {
	for _, o := range list {
		so := event.SocketOption{Level: int(o.GetLevel()), Name: int(o.GetName()), Int: int(o.GetIntValue()), State: uint8(o.GetState())}
		if v, ok := o.GetValue().(*corev3.SocketOption_BufValue); ok {
			so.Buf = v.BufValue
		}
		out = append(out, so)
	}
	return out
}

// listenerAddress is the address of a listener. What listens to no socket of its own needs none, and is refused elsewhere.
func listenerAddress(p *listenerv3.Listener) (network.Address, error) {
	switch {
	case p.GetAddress() != nil:
		return address(p.GetAddress())
	case p.GetApiListener() != nil, p.GetInternalListener() != nil:
		return network.Address{}, nil
	}
	return network.Address{}, noAddress(p)
}

func noAddress(p *listenerv3.Listener) error {
	return errors.New("error adding listener named '" + p.GetName() + "': address is necessary")
}

func address(a *corev3.Address) (network.Address, error) {
	switch x := a.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		if err := resolver(x.SocketAddress); err != nil {
			return network.Address{}, at("socket_address", err)
		}
		ip, err := netip.ParseAddr(x.SocketAddress.GetAddress())
		if err != nil {
			return network.Address{}, at("socket_address.address", config.BadAddress(x.SocketAddress.GetAddress()))
		}
		return network.AddrFrom(netip.AddrPortFrom(ip, uint16(x.SocketAddress.GetPortValue()))), nil
	case *corev3.Address_Pipe:
		return network.Address{Path: x.Pipe.GetPath()}, at("pipe", config.CheckPipe(x.Pipe.GetPath(), x.Pipe.GetMode()))
	case *corev3.Address_EnvoyInternalAddress:
		return network.Address{}, &config.Error{Path: "envoy_internal_address", Msg: "not supported yet", Kind: config.Unsupported}
	}
	return network.Address{}, errors.New("address is necessary")
}

// resolver checks that an address is read by the resolver that there is, which reads IP addresses.
func resolver(a *corev3.SocketAddress) error {
	switch name := a.GetResolverName(); {
	case name == "envoy.resolvers.reverse_connection":
		return &config.Error{Path: "resolver_name", Msg: name + ": not supported yet", Kind: config.Unsupported, Extension: name}
	case name != "" && name != "envoy.ip":
		return &config.Error{Path: "resolver_name", Msg: "Unknown address resolver: " + name}
	case a.GetNamedPort() != "":
		return &config.Error{Path: "named_port", Msg: "IP resolver can't handle port specifier type 4"}
	}
	return nil
}

func isUDP(a *corev3.Address) bool {
	return a.GetSocketAddress().GetProtocol() == corev3.SocketAddress_UDP
}

// sameSockets checks what the addresses of a listener ask of their sockets.
func sameSockets(p *listenerv3.Listener) error {
	var errs config.Errors
	errs.Collect("address", compat(p.GetAddress()))
	for i, x := range p.GetAdditionalAddresses() {
		path := fmt.Sprintf("additional_addresses[%d].address", i)
		errs.Collect(path, compat(x.GetAddress()))
		if isUDP(x.GetAddress()) != isUDP(p.GetAddress()) {
			errs.Collect(path, errors.New("listener "+p.GetName()+": has different socket type. The listener only support same socket type for all the addresses."))
		}
	}
	return errs.Err()
}

// compat checks that an address that is to take IPv4 connections, too, is one of IPv6 that can.
func compat(a *corev3.Address) error {
	s := a.GetSocketAddress()
	ip, err := netip.ParseAddr(s.GetAddress())
	if err != nil || !s.GetIpv4Compat() || ip.Is4In6() || ip == netip.IPv6Unspecified() {
		return nil
	}
	return at("socket_address.ipv4_compat", fmt.Errorf("Only IPv6 address '::' or valid IPv4-mapped IPv6 address can set ipv4_compat: %s", //nolint:staticcheck // Envoy's text
		netip.AddrPortFrom(ip, uint16(s.GetPortValue()))))
}

// connectionLimit reads the limit of a listener's connections from the runtime.
func (s *Server) connectionLimit(name string) func() int64 {
	if s.runtime == nil || name == "" {
		return nil
	}
	key := "envoy.resource_limits.listener." + name + ".connection_limit"
	const unlimited = 1<<63 - 1
	return func() int64 { return int64(s.runtime.Uint(key, unlimited)) }
}

// at gives an error its place below the message that is being read.
func at(path string, err error) error { return config.At(path, err) }
