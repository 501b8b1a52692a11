package health_check //nolint:revive // Envoy's name

import (
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// factory is the configured filter, shared by all workers.
type factory struct {
	ctx          ext.FactoryContext
	headers      []ext.HeaderMatcher
	passThrough  bool
	localCluster string
	cache        *cache // nil: none
	clusters     []cluster
}

// cluster is one that must have a share of its hosts.
type cluster struct {
	name       string
	minPercent uint64
}

// cache keeps the last answer of an upstream. Time is cut into pieces; in each piece one check goes through, and the others get what
// it, or one before it, was answered.
type cache struct {
	every, start int64 // ns
	piece        atomic.Int64
	answer       atomic.Uint32 // code, and degraded
}

const degraded = 1 << 16

// use tells whether a check at a time is answered from the cache.
func (c *cache) use(now int64) bool {
	p := (now-c.start)/c.every + 1
	return c.piece.Swap(p) == p
}

// New returns the filter of one stream.
func (f *factory) New(network.Dispatcher) filter.Filter { return &checker{f: f} }

// Sides says that the filter looks at requests and responses.
func (f *factory) Sides() filter.Sides { return filter.Both }

// checker is one stream's.
type checker struct {
	filter.PassThrough
	f       *factory
	check   bool // the request is a health check
	handled bool // and we answer it
}

// DecodeHeaders finds out whether the request is a check, and for whom.
func (c *checker) DecodeHeaders(h *http.HeaderMap, end bool) filter.HeadersStatus {
	for _, m := range c.f.headers {
		if !m.Match(h) {
			return filter.HeadersContinue
		}
	}
	c.check = true
	c.CB.Info().HealthCheck = true
	c.handled = !c.f.passThrough || c.f.ctx.HealthFailed() || c.f.cache != nil && c.f.cache.use(c.CB.Now())
	if !c.handled {
		return filter.HeadersContinue
	}
	if end {
		c.answer()
	}
	return filter.HeadersStopIteration
}

// DecodeData drops the body of a check.
func (c *checker) DecodeData(_ *buffer.Buffer, end bool) filter.DataStatus {
	if !c.handled {
		return filter.DataContinue
	}
	if end {
		c.answer()
	}
	return filter.DataStopIterationNoBuffer
}

// DecodeTrailers ends a check.
func (c *checker) DecodeTrailers(*http.HeaderMap) filter.TrailersStatus {
	if !c.handled {
		return filter.TrailersContinue
	}
	c.answer()
	return filter.TrailersStopIteration
}

// EncodeHeaders notes what an upstream answered to a check, and marks answers.
func (c *checker) EncodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	if c.check {
		if c.f.cache != nil {
			v := uint32(h.StatusCode())
			if h.Has(http.EnvoyDegraded) {
				v |= degraded
			}
			c.f.cache.answer.Store(v)
		}
		h.SetName("x-envoy-upstream-healthchecked-cluster", c.f.localCluster)
	}
	if c.f.ctx.HealthFailed() {
		h.SetConst(http.EnvoyImmediateHealthCheckFail, "true")
	}
	return filter.HeadersContinue
}

// answer replies to a check.
func (c *checker) answer() {
	code, details, isDegraded := 200, "health_check_ok", false
	switch {
	case c.f.ctx.HealthFailed():
		code, details = 503, "health_check_failed"
	case c.f.cache != nil:
		v := c.f.cache.answer.Load()
		code, details, isDegraded = int(v&^degraded), "health_check_cached", v&degraded != 0
		if code == 0 {
			code = 200 // nobody has answered yet
		}
	case len(c.f.clusters) > 0:
		code, details = c.f.judge()
	}
	if code < 200 || code > 299 {
		c.CB.Info().Flags.Set(stream.FailedLocalHealthCheck)
	}
	c.CB.SendLocalReply(&filter.LocalReply{Code: code, Details: details, GRPCStatus: -1, Modify: func(h *http.HeaderMap) {
		if isDegraded {
			h.AddConst(http.EnvoyDegraded, "")
		}
	}})
}

// judge looks at the clusters that must have hosts.
func (f *factory) judge() (code int, details string) {
	for _, k := range f.clusters {
		usable, all, ok := f.ctx.ClusterHosts(k.name)
		switch {
		case !ok:
			return 503, "health_check_failed_no_cluster_found"
		case all == 0 && k.minPercent == 0:
		case all == 0:
			return 503, "health_check_failed_cluster_empty"
		case 100*uint64(usable) < uint64(all)*k.minPercent:
			return 503, "health_check_failed_cluster_unhealthy"
		}
	}
	return 200, "health_check_ok_cluster_healthy"
}
