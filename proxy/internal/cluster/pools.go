package cluster

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// local is what a worker keeps of a cluster that it has used. owner: worker.
type local struct {
	lb lb.Local
	// pools finds the pools of a host by Host.Index; hosts that share an index, priorities and protocols are chained.
	pools []*pool.Pool
	// tcp are connections of tcp_proxy, of clusters with close_connections_on_host_health_failure only.
	tcp map[*pool.TCPConn]struct{}
	// fresh are hosts of an ORIGINAL_DST cluster that were made here and that the main loop has not shown yet.
	fresh map[netip.AddrPort]*dstHost
}

// local returns w's part of c, made on first use. The main loop sees that it exists, no more.
func (c *Cluster) local(w *event.Worker) *local {
	if all := c.locals.Load(); all != nil {
		if l := (*all)[w.Index+1].Load(); l != nil {
			return l
		}
	}
	return c.makeLocal(w)
}

func (c *Cluster) makeLocal(w *event.Worker) *local {
	all := c.locals.Load()
	if all == nil {
		fresh := make([]atomic.Pointer[local], c.workers+1)
		if !c.locals.CompareAndSwap(nil, &fresh) {
			all = c.locals.Load()
		} else {
			all = &fresh
		}
	}
	l := &local{}
	(*all)[w.Index+1].Store(l)
	return l
}

// Pool returns w's pool for a host and a priority (0: default, 1: high). downstream is what the client speaks. nil, which
// fails every request: there may be no further pool (max_connection_pools). The pool is to be used at once.
func (c *Cluster) Pool(w *event.Worker, h *host.Host, prio int, downstream http.Proto) *pool.Pool {
	return c.PoolFor(w, h, prio, downstream, pool.Names{})
}

// PoolFor is Pool for connections of these names.
func (c *Cluster) PoolFor(w *event.Worker, h *host.Host, prio int, downstream http.Proto, names pool.Names) *pool.Pool {
	if c.settings.Predict > 1 {
		c.predict(w, prio, downstream, names)
	}
	return c.poolFor(w, h, prio, downstream, names)
}

func (c *Cluster) poolFor(w *event.Worker, h *host.Host, prio int, downstream http.Proto, names pool.Names) *pool.Pool {
	proto := c.settings.Protocol
	if proto == pool.Downstream {
		proto = pool.HTTP1
		if downstream >= http.HTTP2 {
			proto = pool.HTTP2
		}
	}
	l := c.local(w)
	if int(h.Index) < len(l.pools) {
		for p := l.pools[h.Index]; p != nil; p = p.Next {
			if p.Host() == h && p.Is(pool.Priority(prio), proto) && p.Names == names {
				return p
			}
		}
	}
	return c.makePool(w, l, h, pool.Priority(prio), proto, names)
}

func (c *Cluster) makePool(w *event.Worker, l *local, h *host.Host, prio pool.Priority, proto pool.Protocol, names pool.Names) *pool.Pool {
	b := c.settings.Breakers(prio)
	if !b.Pools.TryAcquire() {
		w.Stats.Inc(c.settings.Stats.Counter(stats.ClusterUpstreamCxPoolOverflow))
		return nil
	}
	p := pool.New(w, &c.settings, h, prio, proto)
	p.Names = pool.Names{SNI: strings.Clone(names.SNI), SAN: strings.Clone(names.SAN)} // the caller's may be views of a stream's memory
	p.Owner = l
	l.link(p)
	return p
}

// OnEmpty forgets a pool that has nothing left.
func (l *local) OnEmpty(p *pool.Pool) {
	if l.unlink(p) {
		p.Breakers().Pools.Release()
	}
}

func (l *local) link(p *pool.Pool) {
	i := int(p.Host().Index)
	if i >= len(l.pools) {
		l.pools = append(l.pools, make([]*pool.Pool, i+1-len(l.pools))...)
	}
	p.Next = l.pools[i]
	l.pools[i] = p
}

func (l *local) unlink(p *pool.Pool) bool {
	for at := &l.pools[p.Host().Index]; *at != nil; at = &(*at).Next {
		if *at == p {
			*at, p.Next = p.Next, nil
			return true
		}
	}
	return false
}

// each calls f for all pools; f may unlink its own.
func (l *local) each(f func(p *pool.Pool)) {
	for i := range l.pools {
		for p := l.pools[i]; p != nil; {
			next := p.Next
			f(p)
			p = next
		}
	}
}

// drainHosts closes what leads to hosts that are gone: idle connections now, others after their last stream.
func (l *local) drainHosts(gone map[*host.Host]bool) {
	l.each(func(p *pool.Pool) {
		if gone[p.Host()] {
			p.Drain()
		}
	})
}

// drainAll is drainHosts for all hosts.
func (l *local) drainAll() { l.each(func(p *pool.Pool) { p.Drain() }) }

// failed is for hosts that have failed their health checks: what comes may do better on a new connection, another path. With closing,
// connections that tcp_proxy has are closed, too.
func (l *local) failed(hosts map[*host.Host]bool, closing bool) {
	l.each(func(p *pool.Pool) {
		if hosts[p.Host()] {
			p.DrainExisting()
		}
	})
	if !closing {
		return
	}
	var list []*pool.TCPConn
	for t := range l.tcp {
		if hosts[t.Host()] {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *pool.TCPConn) int { return cmp.Compare(a.Info().ID, b.Info().ID) })
	for _, t := range list {
		t.NetConn().Close(network.NoFlush, "")
	}
}
