package router

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// alsoState is where a request counts besides its cluster: the virtual cluster that it is of, and its route's stat_prefix. Neither is
// usual; on says whether there is one.
type alsoState struct {
	on     bool
	groups [2]astats.GroupBase // the zero value counts into nothing
}

// begin finds out where a request counts. Its headers are still the client's.
func (s *alsoState) begin(r *Router, h *http.HeaderMap) {
	if !r.rt.HasCounters() {
		return
	}
	s.on = true
	if v := r.rt.VirtualCluster(h); v != nil {
		s.groups[0] = v.Group
		r.info.VirtualCluster = v.Name
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
func (r *Router) alsoCode(code int) {
	if !r.also.on {
		return
	}
	for _, g := range r.also.groups {
		r.w.Stats.Inc(g.Counter(stats.VirtualClusterUpstreamRqCompleted))
		r.w.Stats.IncCode(g.Codes(stats.VirtualClusterUpstreamRqCodes), code)
	}
}

// alsoTime records how long a response took.
func (r *Router) alsoTime(ms uint64) {
	if !r.also.on {
		return
	}
	for _, g := range r.also.groups {
		r.w.Stats.Record(g.Histogram(stats.VirtualClusterUpstreamRqTime), ms)
	}
}
