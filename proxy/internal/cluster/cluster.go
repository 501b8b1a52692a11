// Package cluster holds the upstream clusters: their slots, their hosts, and how these are found (static, DNS, EDS).
//
// The Manager belongs to the main loop. A Cluster is shared: what workers see of it is immutable or atomic, and what a worker
// needs for itself (pools, the balancer's memory) is made on its first use there and belongs to that worker. An update swaps one
// pointer: a new host table in a Cluster, or a new Cluster in its Slot. Streams hold on to the Cluster they began with; when the
// last one is gone, so is the Cluster. Only the config files of this package know protobufs.
package cluster

import (
	"sync/atomic"
	"time"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Breakers limit what a cluster may use at a time, see pool.Breakers.
type Breakers = pool.Breakers

// Cluster is one configuration of a cluster and its hosts.
type Cluster struct {
	settings pool.Settings
	name     string
	// observability is the name for stats and logs, "" if it is name.
	observability string
	opts          *Options
	table         atomic.Pointer[lb.Table]
	locals        atomic.Pointer[[]atomic.Pointer[local]]
	// maintenance is the share of requests in 1/10000 that are refused (upstream.maintenance_mode); refused adds it up.
	maintenance, refused atomic.Uint32
	workers              int32
	// source finds the hosts; nil if they are fixed. owner: main loop.
	source  source
	weights []placeWeight // of places that have one; nil mostly. owner: main loop.
	// meta is the cluster's metadata, nil if there is none.
	meta map[string]map[string]any
	// prev is what the cluster is to replace, until then. owner: main loop.
	prev *Cluster
	// checks are the active health checks; nil: there are none. owner: main loop.
	checks *checks
	// dst finds hosts in place of the table; nil mostly.
	dst *originalDst
	// Up to 176 bytes it would lie in the size class of routes, of which each change makes thousands: see TestHeldStreamsLieApart.
	_ [8]byte
}

// Options are a cluster's plain settings. They are immutable and shared by clusters that are configured alike.
type Options struct {
	Type Type
	LB   lb.Options
	DNS  DNSOptions
	// MergeWindow is the time within which small changes of hosts may be put together.
	MergeWindow time.Duration
	// DrainOnChange closes all connections whenever a host comes or goes.
	DrainOnChange         bool
	CloseOnHealthFailure  bool
	IgnoreHealthOnRemoval bool
	// ExcludeUnchecked does not count hosts that wait for their first health check when availability is computed.
	ExcludeUnchecked bool
	// Eyeballs orders the addresses of endpoints that have several.
	Eyeballs Eyeballs
	// NoWarm lets traffic go to a cluster that waits for its first hosts.
	NoWarm bool
}

// Type says where a cluster's hosts come from.
type Type uint8

// The types, in the order of Envoy's enum.
const (
	Static Type = iota
	StrictDNS
	LogicalDNS
	EDS
	OriginalDST

	noType // that the configuration asks for, or that there is: what depends on it is not looked at
)

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// ObservabilityName returns the name under which stats and logs know the cluster: alt_stat_name, or the name.
func (c *Cluster) ObservabilityName() string {
	if c.observability != "" {
		return c.observability
	}
	return c.name
}

// AltStatName returns alt_stat_name, "" if there is none.
func (c *Cluster) AltStatName() string { return c.observability }

// Metadata returns the cluster's metadata by namespace; nil if there is none. It must not be changed.
func (c *Cluster) Metadata() map[string]map[string]any { return c.meta }

// Options returns the plain settings.
func (c *Cluster) Options() *Options { return c.opts }

// Stats is where the cluster's stats begin (stats.Cluster).
func (c *Cluster) Stats() apistats.GroupBase { return c.settings.Stats }

// Resources returns the breakers of a priority (0: default, 1: high).
func (c *Cluster) Resources(prio int) *Breakers { return c.settings.Breakers(pool.Priority(prio)) }

// ConnectTimeout is how long a connection may take to be established.
func (c *Cluster) ConnectTimeout() time.Duration { return c.settings.ConnectTimeout }

// PerConnectionBufferLimit is the soft limit of buffers in bytes, 0: none.
func (c *Cluster) PerConnectionBufferLimit() int { return int(c.settings.BufferLimit) }

// MaxRequestsPerConnection is how many requests a connection carries, 0: any number.
func (c *Cluster) MaxRequestsPerConnection() int { return int(c.settings.MaxRequests) }

// IdleTimeout is how long a connection is kept without requests, 0: for ever.
func (c *Cluster) IdleTimeout() time.Duration { return c.settings.IdleTimeout }

// Protocol says what the cluster's HTTP connections speak.
func (c *Cluster) Protocol() pool.Protocol { return c.settings.Protocol }

// Pools are the settings that pools have.
func (c *Cluster) Pools() *pool.Settings { return &c.settings }

// MaintenanceMode decides for one request whether the cluster is in maintenance.
func (c *Cluster) MaintenanceMode() bool {
	share := c.maintenance.Load()
	return share != 0 && c.refused.Add(share)%10000 < share
}

// SetMaintenance sets the share of requests in 1/10000 that are refused. Safe from any thread.
func (c *Cluster) SetMaintenance(share uint32) { c.maintenance.Store(share) }

// Table returns the hosts as they are now.
func (c *Cluster) Table() *lb.Table { return c.table.Load() }
