package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// buildLimits reads the thresholds of both priorities. The first entry of a priority counts.
func buildLimits(cb *clusterv3.CircuitBreakers) (l [pool.NumPriorities]pool.Limits, err error) {
	var errs config.Errors
	for i, t := range cb.GetPerHostThresholds() {
		errs.Collect(fmt.Sprintf("per_host_thresholds[%d]", i), onlyConnections(t))
	}
	for p := range l {
		l[p] = pool.DefaultLimits
		if i := threshold(cb.GetThresholds(), p); i >= 0 {
			errs.Collect(fmt.Sprintf("thresholds[%d]", i), buildThreshold(cb.GetThresholds()[i], &l[p]))
		}
		if i := threshold(cb.GetPerHostThresholds(), p); i >= 0 {
			l[p].PerHostConnections = number(cb.GetPerHostThresholds()[i].GetMaxConnections(), pool.Unlimited)
		}
	}
	return l, errs.Err()
}

// onlyConnections refuses thresholds of single hosts other than that of connections, in Envoy's words.
func onlyConnections(t *clusterv3.CircuitBreakers_Thresholds) error {
	if t.GetMaxPendingRequests() == nil && t.GetMaxRequests() == nil && t.GetMaxRetries() == nil && t.GetMaxConnectionPools() == nil && t.GetRetryBudget() == nil {
		return nil
	}
	return &config.Error{Kind: config.Invalid, Msg: "Unsupported field in per_host_thresholds", Allowed: "max_connections"}
}

// threshold returns which entry counts for a priority, -1 if there is none.
func threshold(list []*clusterv3.CircuitBreakers_Thresholds, priority int) int {
	return slices.IndexFunc(list, func(t *clusterv3.CircuitBreakers_Thresholds) bool { return int(t.GetPriority()) == priority })
}

// The defaults of a retry budget.
const (
	defaultBudgetPercent = 20
	defaultMinRetries    = 3
)

func buildThreshold(t *clusterv3.CircuitBreakers_Thresholds, l *pool.Limits) error {
	l.MaxConnections = number(t.GetMaxConnections(), l.MaxConnections)
	l.MaxPending = number(t.GetMaxPendingRequests(), l.MaxPending)
	l.MaxRequests = number(t.GetMaxRequests(), l.MaxRequests)
	l.MaxRetries = number(t.GetMaxRetries(), l.MaxRetries)
	l.MaxPools = number(t.GetMaxConnectionPools(), l.MaxPools)
	l.TrackRemaining = t.GetTrackRemaining()
	if b := t.GetRetryBudget(); b != nil {
		l.HasBudget, l.BudgetPercent = true, defaultBudgetPercent
		if b.GetBudgetPercent() != nil {
			l.BudgetPercent = b.GetBudgetPercent().GetValue()
		}
		l.MinRetries = number(b.GetMinRetryConcurrency(), defaultMinRetries)
		l.BudgetInterval = b.GetBudgetInterval().AsDuration().Truncate(time.Millisecond)
	}
	return nil
}

// Numbers of Linux's socket options; drivers that know none ignore them.
const (
	solSocket, soKeepAlive                            = 1, 9
	ipprotoTCP, tcpKeepIdle, tcpKeepIntvl, tcpKeepCnt = 6, 4, 5, 6
)

// buildSockets reads what concerns the sockets of connections.
func buildSockets(cfg *clusterv3.Cluster, d *Deps, o *pool.Options) error {
	if k := cfg.GetUpstreamConnectionOptions().GetTcpKeepalive(); k != nil {
		set := func(level, name int, v int) {
			o.Sockets = append(o.Sockets, event.SocketOption{Level: level, Name: name, Int: v, State: event.StatePrebind})
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
	}
	path, b := "upstream_bind_config.", cfg.GetUpstreamBindConfig()
	if b == nil {
		b = d.BindConfig
	}
	if b == nil {
		return nil
	}
	if err := config.Refuse(bindGaps, b, path); err != nil {
		return err
	}
	for _, s := range b.GetSocketOptions() {
		so := event.SocketOption{Level: int(s.GetLevel()), Name: int(s.GetName()), Int: int(s.GetIntValue()), State: uint8(s.GetState())}
		if v, ok := s.GetValue().(*corev3.SocketOption_BufValue); ok {
			so.Buf = v.BufValue
		}
		o.Sockets = append(o.Sockets, so)
	}
	if a := b.GetSourceAddress(); a != nil {
		ip, err := netip.ParseAddr(a.GetAddress())
		if err != nil {
			return config.At(path+"source_address.address", config.BadAddress(a.GetAddress()))
		}
		o.Source = network.AddrFrom(netip.AddrPortFrom(ip, uint16(a.GetPortValue())))
	}
	return nil
}

// target is an address that may still have to be resolved.
type target struct {
	address network.Address // valid if there is nothing to resolve
	name    string
	port    uint16
}

// buildTarget reads an endpoint's address.
func buildTarget(a *corev3.Address, path string) (t target, err error) {
	switch x := a.GetAddress().(type) {
	case *corev3.Address_Pipe:
		t.address.Path = x.Pipe.GetPath()
		return t, config.At(path+"pipe", config.CheckPipe(x.Pipe.GetPath(), x.Pipe.GetMode()))
	case *corev3.Address_SocketAddress:
		s := x.SocketAddress
		path += "socket_address."
		switch {
		case s.GetProtocol() != corev3.SocketAddress_TCP:
			return t, notYet(path + "protocol")
		case s.GetNamedPort() != "":
			return t, notYet(path + "named_port")
		case s.GetNetworkNamespaceFilepath() != "":
			return t, notYet(path + "network_namespace_filepath")
		}
		t.name, t.port = s.GetAddress(), uint16(s.GetPortValue())
		if ip, err := netip.ParseAddr(t.name); err == nil {
			t.address = network.AddrFrom(netip.AddrPortFrom(ip, t.port))
		}
		if r := s.GetResolverName(); r != "" && r != "envoy.ip" {
			return t, notYet(path + "resolver_name")
		}
		return t, nil
	case *corev3.Address_EnvoyInternalAddress:
		return t, notYet(path + "envoy_internal_address")
	}
	return t, nil // a name to resolve, and it is ""
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
