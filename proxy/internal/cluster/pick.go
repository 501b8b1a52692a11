package cluster

import (
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Pick chooses the host for a request or connection: first a priority by what its hosts can bear, then a host by the cluster's
// balancer. nil means that there is no host to be used, which the caller
// counts (upstream_cx_none_healthy). ctx.W is the worker that this runs on.
func (c *Cluster) Pick(ctx *lb.Context) *host.Host {
	// The local comes first: whoever has one is told of hosts that leave after this table.
	l := c.local(ctx.W)
	if c.dst != nil {
		return c.dst.pick(l, ctx)
	}
	h, outcome := c.table.Load().Pick(&l.lb, ctx)
	if outcome != lb.Normal {
		c.count(ctx.W, outcome)
	}
	return h
}

// count counts what a pick met.
func (c *Cluster) count(w *event.Worker, o lb.Outcome) {
	inc := func(of apistats.CounterIndex) { w.Stats.Inc(c.settings.Stats.Counter(of)) }
	switch o {
	case lb.Panic:
		inc(stats.ClusterLbHealthyPanic)
	case lb.ZoneDirect:
		inc(stats.ClusterLbZoneRoutingAllDirectly)
	case lb.ZoneSampled:
		inc(stats.ClusterLbZoneRoutingSampled)
	case lb.ZoneNoCapacity:
		inc(stats.ClusterLbZoneNoCapacityLeft)
		inc(stats.ClusterLbZoneRoutingCrossZone)
	case lb.ZoneCross:
		inc(stats.ClusterLbZoneRoutingCrossZone)
	case lb.LocalNotOK:
		inc(stats.ClusterLbLocalClusterNotOk)
	}
}

// Next: proxy/internal/pool/pool.go
