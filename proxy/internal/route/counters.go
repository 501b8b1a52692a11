package route

import (
	"errors"
	"fmt"

	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Counters are the statistics (stats.VirtualCluster) of a virtual cluster, or of a route with a stat_prefix. Name is "" for the virtual
// cluster "other".
type Counters struct {
	Name  string
	Group astats.GroupBase
}

// virtualCluster is one of virtual_clusters. The last one of a virtual host, "other", matches everything.
type virtualCluster struct {
	headers []HeaderMatch
	Counters
}

// VirtualCluster returns the first virtual cluster that a request is of, nil if the virtual host has none.
func (e *Entry) VirtualCluster(h *http.HeaderMap) *Counters {
	for i := range e.virtualClusters {
		v := &e.virtualClusters[i]
		if v.match(h) {
			return &v.Counters
		}
	}
	return nil
}

// HasCounters tells whether requests of e count anywhere besides their cluster.
func (e *Entry) HasCounters() bool { return len(e.virtualClusters) > 0 || e.RouteCounters != nil }

func (v *virtualCluster) match(h *http.HeaderMap) bool {
	for _, m := range v.headers {
		if !m.Match(h) {
			return false
		}
	}
	return true
}

// virtualClusters compiles those of a virtual host.
func (h *hostBuilder) virtualClusters() ([]virtualCluster, error) {
	vh := h.vh
	var out []virtualCluster
	var errs config.Errors
	for i, x := range vh.VirtualClusters {
		path := fmt.Sprintf("[%d]", i)
		if len(x.Headers) == 0 {
			errs.Collect(path, errors.New("virtual clusters must define 'headers'"))
			continue
		}
		list, err := HeaderMatchers(x.Headers)
		if errs.Collect(path+".headers", err) {
			out = append(out, virtualCluster{list, h.counters("vcluster", x.Name)})
		}
	}
	if len(out) > 0 {
		other := h.counters("vcluster", "other")
		other.Name = "" // as in Envoy, nobody is told of it
		out = append(out, virtualCluster{nil, other})
	}
	return out, errs.Err()
}

// counters registers a group of statistics, which is held until it is released.
func (h *hostBuilder) counters(kind, name string) Counters {
	out := Counters{Name: name}
	if h.c.Scope != nil {
		scope := h.c.Scope.Scope("vhost").Scope(h.vh.Name).Scope(kind).Scope(name)
		out.Group = scope.Group(stats.VirtualCluster)
		h.held = append(h.held, scope)
	}
	return out
}

// hold takes the statistics of v once more, for another table.
func (v *VirtualHost) hold() {
	for _, s := range v.held {
		s.Group(stats.VirtualCluster)
	}
}

// Release gives up the statistics of t. New requests must not find it any more. owner: main loop.
func (t *Table) Release() {
	release(t.held)
	t.held = nil
}

func release(held []astats.Scope) {
	for _, s := range held {
		s.Release(stats.VirtualCluster)
	}
}
