// Package host is an upstream endpoint: its address, its health and what is counted about it.
//
// A Host belongs to a cluster and keeps its identity across updates: the same address is the same *Host, with its counters, its
// health and its ejection. What an update may change and what many threads count is atomic; all else is set before the first
// worker sees the Host and never changes. Health and weight are written by the main loop only. The package knows no cluster and
// opens no connection.
package host

import (
	"net/netip"
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// Host is one endpoint. It is laid out in cache lines: what requests only read is apart from what they count.
type Host struct {
	// Address is where to connect to, and what the host is known by. See Current.
	Address network.Address
	// Hostname is the name that the endpoint was given or resolved from, "" if there is none.
	Hostname string
	// Monitor is told how requests fared (outlier detection); nil mostly.
	Monitor Monitor

	locality atomic.Pointer[Locality]
	metadata atomic.Pointer[Metadata]
	logical  atomic.Pointer[network.Address]
	// Extra is what few hosts have; nil mostly.
	Extra *Extra
	// Index is a small number that the hosts of a cluster do not share for long: a hint for tables of workers.
	Index    uint32
	flags    atomic.Uint32
	weight   atomic.Uint32
	priority atomic.Uint32

	// Stats is a cache line of its own.
	Stats
}

// Extra is what few hosts have.
type Extra struct {
	// HealthCheck is the address for active health checks if it is another one, HealthCheckPort the port if that is another one (else 0),
	// and HealthCheckName the host header for them.
	HealthCheck     network.Address
	HealthCheckPort uint16
	HealthCheckName string
	// Addresses are all addresses of an endpoint with more than one, in the order in which they are tried (happy eyeballs).
	Addresses []network.Address
	// NoHealthCheck turns active checks off for this endpoint.
	NoHealthCheck bool
	// LocalityMetadata is the metadata that the endpoints of one place have in common.
	LocalityMetadata *Metadata
}

// Stats is what /clusters prints of a host. All workers count; everything is exact.
type Stats struct {
	CxActive      atomic.Int32
	RqPending     atomic.Int32
	CxTotal       atomic.Uint64
	CxConnectFail atomic.Uint64
	RqActive      atomic.Int64
	RqTotal       atomic.Uint64
	RqSuccess     atomic.Uint64
	RqError       atomic.Uint64
	RqTimeout     atomic.Uint64
}

// Locality says where a host stands. Values are shared by the hosts of one place.
type Locality struct{ Region, Zone, SubZone string }

// Empty tells whether nothing is known of the place.
func (l *Locality) Empty() bool { return l == nil || *l == Locality{} }

// Metadata is an endpoint's metadata: per filter namespace a tree of plain values, as api/stream.Metadata has them. It is
// immutable and shared.
type Metadata struct {
	Spaces map[string]map[string]any
	// Canary is envoy.lb: canary.
	Canary bool
}

// Get follows path below a namespace.
func (m *Metadata) Get(namespace string, path ...string) (v any, ok bool) {
	if m == nil {
		return nil, false
	}
	s, ok := m.Spaces[namespace]
	if !ok {
		return nil, false
	}
	return network.Follow(s, path...)
}

// New returns a Host of weight 1 and priority 0 that is healthy.
func New(a network.Address, hostname string) *Host {
	h := &Host{Address: a, Hostname: hostname}
	h.weight.Store(1)
	return h
}

// Current returns where to connect to now: Address, or what the name of a LOGICAL_DNS cluster stands for by now.
func (h *Host) Current() network.Address {
	if a := h.logical.Load(); a != nil {
		return *a
	}
	return h.Address
}

// HealthAddress returns where to connect to for active health checks.
func (h *Host) HealthAddress() network.Address {
	a, x := h.Current(), h.Extra
	if x == nil {
		return a
	}
	if x.HealthCheck.Valid() {
		a = x.HealthCheck
	}
	if x.HealthCheckPort != 0 && a.IP.IsValid() {
		a.IP = netip.AddrPortFrom(a.IP.Addr(), x.HealthCheckPort)
	}
	return a
}

// Addresses returns where to connect to if there are several places, nil otherwise: Current.
func (h *Host) Addresses() []network.Address {
	if h.Extra == nil {
		return nil
	}
	return h.Extra.Addresses
}

// SetCurrent changes what new connections connect to. owner: main loop.
func (h *Host) SetCurrent(a network.Address) { h.logical.Store(&a) }

// Locality returns the host's place; nil if nothing is known of it.
func (h *Host) Locality() *Locality { return h.locality.Load() }

// SetLocality sets the host's place. owner: main loop.
func (h *Host) SetLocality(l *Locality) { h.locality.Store(l) }

// Metadata returns the host's metadata; nil if there is none.
func (h *Host) Metadata() *Metadata { return h.metadata.Load() }

// SetMetadata replaces the metadata. owner: main loop.
func (h *Host) SetMetadata(m *Metadata) { h.metadata.Store(m) }

// Canary tells whether the metadata says so.
func (h *Host) Canary() bool {
	m := h.metadata.Load()
	return m != nil && m.Canary
}

// Weight returns the load balancing weight, at least 1.
func (h *Host) Weight() uint32 { return h.weight.Load() }

// SetWeight sets the weight; 0 means 1. owner: main loop.
func (h *Host) SetWeight(n uint32) { h.weight.Store(max(n, 1)) }

// Priority returns the host's priority, 0 is the highest.
func (h *Host) Priority() uint32 { return h.priority.Load() }

// SetPriority sets the priority. owner: main loop.
func (h *Host) SetPriority(p uint32) { h.priority.Store(p) }

// Name returns what %UPSTREAM_HOST_NAME% prints: the hostname, or the address if there is none.
func (h *Host) Name() string {
	if h.Hostname != "" {
		return h.Hostname
	}
	return h.Address.String()
}
