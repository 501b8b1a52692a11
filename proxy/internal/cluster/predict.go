package cluster

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// maxPredicted bounds the connections that one stream opens at the hosts that are picked next.
const maxPredicted = 3

// predict opens connections at the hosts that are picked next, before a stream begins, as long as the pools that w has of the cluster have
// room for less than predictive_preconnect_ratio times its streams. It looks at all of these pools: clusters without the ratio have no
// use for a sum.
func (c *Cluster) predict(w *event.Worker, prio int, downstream http.Proto, names pool.Names) {
	l, ratio := c.local(w), c.settings.Predict
	for range maxPredicted {
		waiting, active, capacity := l.load()
		if !pool.Short(waiting, active, capacity, ratio) {
			return
		}
		h := c.table.Load().Peek(&l.lb, &lb.Context{W: w})
		if h == nil || !c.poolFor(w, h, prio, downstream, names).Ahead(ratio) {
			return
		}
	}
}

// load is what is on all pools.
func (l *local) load() (waiting, active, capacity int) {
	l.each(func(p *pool.Pool) {
		w, a, c := p.Load()
		waiting, active, capacity = waiting+w, active+a, capacity+c
	})
	return waiting, active, capacity
}
