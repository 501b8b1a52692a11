package router

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// alsoState is where a request counts besides its cluster: the virtual cluster that it is of, its route's stat_prefix, and the name that
// it brings itself (x-envoy-upstream-alt-stat-name). None is usual; on says whether there is one.
type alsoState struct {
	on     bool
	alt    bool
	groups [2]astats.GroupBase // the zero value counts into nothing
	name   string              // if alt
}

// begin finds out where a request counts. Its headers are still the client's.
func (s *alsoState) begin(r *Router, h *http.HeaderMap) {
	if h.Has(http.EnvoyUpstreamAltStatName) {
		s.name = h.Get(http.EnvoyUpstreamAltStatName)
		h.Remove(http.EnvoyUpstreamAltStatName)
		s.alt = r.cfg.Clusters != nil
		s.on = s.alt
	}
	if !r.rt.HasCounters() {
		return
	}
	s.on = true
	if v := r.rt.VirtualCluster(h); v != nil {
		s.groups[0] = v.Group
		r.info.VirtualCluster = v.Name // "" of what is in none that was configured
	}
	if c := r.rt.RouteCounters; c != nil {
		s.groups[1] = c.Group
	}
}

// alsoInc counts in the request's virtual cluster and in its route.
func (r *Router) alsoInc(i astats.CounterIndex) {
	if !r.also.on {
		return
	}
	for _, g := range r.also.groups {
		r.w.Stats.Inc(g.Counter(i))
	}
}

// alsoCode counts the code of a response.
func (r *Router) alsoCode(code int, canary bool) {
	if !r.also.on {
		return
	}
	if r.also.alt {
		r.cfg.Clusters.CountAlt(r.w, r.cluster, r.also.name, cluster.AltCount{Code: code, Internal: r.internal, Canary: canary})
	}
	for _, g := range r.also.groups {
		r.w.Stats.Inc(g.Counter(stats.VirtualClusterUpstreamRqCompleted))
		r.w.Stats.IncCode(g.Codes(stats.VirtualClusterUpstreamRqCodes), code)
	}
}

// alsoTime records how long a response took.
func (r *Router) alsoTime(ms uint64, canary bool) {
	if !r.also.on {
		return
	}
	if r.also.alt {
		r.cfg.Clusters.CountAlt(r.w, r.cluster, r.also.name, cluster.AltCount{Time: true, Ms: ms, Internal: r.internal, Canary: canary})
	}
	for _, g := range r.also.groups {
		r.w.Stats.Record(g.Histogram(stats.VirtualClusterUpstreamRqTime), ms)
	}
}
