package fault

import (
	"maps"
	"strings"
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// MaxDownstreamClusters bounds the downstream clusters that have stats of their own: their names come with requests. What faults
// happen to requests of others is only counted in all.
const MaxDownstreamClusters = 1000

// callers are the stats by downstream cluster. Groups are made on the main loop when a cluster is first met; workers see them through
// a map that is replaced, never changed.
type callers struct {
	ctx   ext.FactoryContext
	scope stats.Scope
	known atomic.Pointer[map[string]stats.GroupBase]
}

// count counts a fault of a request from a cluster, on the worker of d, whose recorder is r.
func (c *callers) count(d network.Dispatcher, r stats.Recorder, cluster string, i stats.CounterIndex) {
	var known map[string]stats.GroupBase
	if p := c.known.Load(); p != nil {
		known = *p
	}
	if g, ok := known[cluster]; ok {
		r.Inc(g.Counter(i))
		return
	}
	if len(known) >= MaxDownstreamClusters {
		return
	}
	// The header and the dispatcher die with the stream.
	cluster, worker := strings.Clone(cluster), d.WorkerIndex()
	c.ctx.Post(func() {
		g, ok := c.group(cluster)
		if !ok {
			return
		}
		c.ctx.EachWorker(func(d network.Dispatcher) {
			if d.WorkerIndex() == worker {
				r.Inc(g.Counter(i))
			}
		})
	})
}

// group makes a cluster known. It runs on the main loop.
func (c *callers) group(cluster string) (g stats.GroupBase, ok bool) {
	var known map[string]stats.GroupBase
	if p := c.known.Load(); p != nil {
		known = *p
	}
	if g, ok = known[cluster]; ok {
		return g, true
	}
	if len(known) >= MaxDownstreamClusters {
		return g, false
	}
	g = c.scope.Scope(cluster).Group(callerTemplate)
	next := make(map[string]stats.GroupBase, len(known)+1)
	maps.Copy(next, known)
	next[cluster] = g
	c.known.Store(&next)
	return g, true
}
