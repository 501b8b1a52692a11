package cluster

import (
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
	h, outcome := c.table.Load().Pick(&l.lb, ctx)
	if outcome == lb.Panic {
		ctx.W.Stats.Inc(c.settings.Stats.Counter(stats.ClusterLbHealthyPanic))
	}
	return h
}

// Next: proxy/internal/pool/pool.go
