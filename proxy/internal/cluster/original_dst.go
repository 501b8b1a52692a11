package cluster

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// MaxOriginalDstHosts bounds the hosts of an ORIGINAL_DST cluster: who connects says which there are. Beyond it there is no host, which
// counts as upstream_cx_pool_overflow.
const MaxOriginalDstHosts = 16384

// DefaultCleanupInterval is cleanup_interval.
const DefaultCleanupInterval = 5 * time.Second

const (
	// dstShards is the number of tables that the hosts are in: a host that comes copies one of them.
	dstShards = 256
	// dstIndices is the number of values of Host.Index. Hosts share them, since who makes a host does not know which are free.
	dstIndices = 4096
	// dstAtOnce is the number of hosts up to which each that comes is shown on pages and in gauges at once.
	dstAtOnce = 64
	// dstPause is the time between two looks at all hosts, for each of them: what a look costs grows with their number.
	dstPause = 10 * time.Microsecond
	// dstLeastCleanup bounds cleanup_interval from below.
	dstLeastCleanup = time.Millisecond
)

// originalDst is what an ORIGINAL_DST cluster has instead of a balancer and a source. A worker that meets an address that has no host
// makes one, uses it, and tells the main loop, which shows it to the others. So one address may have several hosts for a moment; all but
// the first drain.
type originalDst struct {
	c   *Cluster
	d   *Deps
	opt DstOptions
	// header is the id of opt.Header, if it has one.
	header http.ID

	seed   maphash.Seed
	shards [dstShards]atomic.Pointer[map[netip.AddrPort]*dstHost]
	count  atomic.Int64  // hosts, those included that the main loop does not know yet
	next   atomic.Uint32 // the index of the next host

	// What follows belongs to the main loop.
	hosts   []*dstHost // in the order in which they came
	shown   int        // how many of them the table has
	sweeper event.Timer
	shower  event.Timer
	stopped bool
}

// DstOptions say where an ORIGINAL_DST cluster finds the address to connect to: the first of these that there is, in this order.
type DstOptions struct {
	// Namespace and Path find an address in dynamic metadata; an empty Path: not there.
	Namespace string
	Path      []string
	// Header names the header that has the address, in lower case; "": none. At last comes the local address of the client's connection,
	// if a listener filter has restored it.
	Header string
	// Port replaces the port of any address, if HasPort.
	Port    uint16
	HasPort bool
	// Cleanup is the time after which hosts that were not used go.
	Cleanup time.Duration
}

// dstHost is a host and whether it was used since the last look.
type dstHost struct {
	h    *host.Host
	addr netip.AddrPort
	used atomic.Bool
}

func (e *dstHost) use() *host.Host {
	if !e.used.Load() { // most have been used, and a store would take the cache line from other workers
		e.used.Store(true)
	}
	return e.h
}

// pick returns the host of the address that ctx asks for, which may be new; nil: it asks for none. owner: ctx.W.
func (o *originalDst) pick(l *local, ctx *lb.Context) *host.Host {
	a, ok := o.wanted(ctx)
	if !ok {
		return nil
	}
	if o.opt.HasPort {
		a = netip.AddrPortFrom(a.Addr(), o.opt.Port)
	}
	if e := o.find(a); e != nil {
		return e.use()
	}
	if e := l.fresh[a]; e != nil {
		return e.use()
	}
	return o.make(l, ctx.W, a)
}

// wanted finds the address to connect to.
func (o *originalDst) wanted(ctx *lb.Context) (a netip.AddrPort, ok bool) {
	if len(o.opt.Path) > 0 && ctx.Info != nil {
		if a, ok = o.fromMetadata(ctx); ok {
			return a, true
		}
	}
	if o.opt.Header != "" && ctx.Headers != nil {
		if a, ok = o.fromHeader(ctx); ok {
			return a, true
		}
	}
	if ctx.Info == nil || ctx.Info.Conn == nil || !ctx.Info.Conn.Said().LocalRestored {
		return a, false
	}
	a = ctx.Info.Conn.Local.IP
	return a, a.IsValid()
}

func (o *originalDst) fromHeader(ctx *lb.Context) (a netip.AddrPort, ok bool) {
	all := ctx.Headers.All()
	for i := range all {
		if f := &all[i]; f.ID == o.header && (o.header != http.None || f.Name == o.opt.Header) {
			return o.parse(ctx, f.Value) // the first one only
		}
	}
	return a, false
}

// fromMetadata looks at the stream's metadata, then at its connection's. The first of a list counts.
func (o *originalDst) fromMetadata(ctx *lb.Context) (a netip.AddrPort, ok bool) {
	var all [2]*network.Metadata
	if ctx.Info.HasMetadata() {
		all[0] = ctx.Info.Metadata()
	}
	if c := ctx.Info.Conn; c != nil && c.HasMetadata() {
		all[1] = c.Metadata()
	}
	for _, m := range all {
		if m == nil {
			continue
		}
		v, _ := m.Get(o.opt.Namespace, o.opt.Path...)
		if list, is := v.([]any); is && len(list) > 0 {
			v = list[0]
		}
		if s, is := v.(string); is {
			return o.parse(ctx, s)
		}
	}
	return a, false
}

// parse reads an address that a client or a filter gave.
func (o *originalDst) parse(ctx *lb.Context, s string) (netip.AddrPort, bool) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		ctx.W.Stats.Inc(o.c.settings.Stats.Counter(stats.ClusterOriginalDstHostInvalid))
		return a, false
	}
	return network.AddrFrom(a).IP, true
}

func (o *originalDst) shard(a netip.AddrPort) *atomic.Pointer[map[netip.AddrPort]*dstHost] {
	var b [18]byte
	ip := a.Addr().As16()
	copy(b[:], ip[:])
	b[16], b[17] = byte(a.Port()), byte(a.Port()>>8)
	return &o.shards[maphash.Bytes(o.seed, b[:])%dstShards]
}

// find returns the host of an address that the main loop has shown. Safe from any thread.
func (o *originalDst) find(a netip.AddrPort) *dstHost {
	m := o.shard(a).Load()
	if m == nil {
		return nil
	}
	return (*m)[a]
}

// make makes the host of an address. owner: w.
func (o *originalDst) make(l *local, w *event.Worker, a netip.AddrPort) *host.Host {
	if o.count.Add(1) > MaxOriginalDstHosts {
		o.count.Add(-1)
		w.Stats.Inc(o.c.settings.Stats.Counter(stats.ClusterUpstreamCxPoolOverflow))
		return nil
	}
	at := network.AddrFrom(a)
	e := &dstHost{h: host.New(at, o.c.name+at.String()), addr: a}
	e.h.Index = (o.next.Add(1) - 1) % dstIndices
	e.used.Store(true)
	if l.fresh == nil {
		l.fresh = make(map[netip.AddrPort]*dstHost)
	}
	l.fresh[a] = e
	o.d.Main.Post(func() { o.add(l, w, e) })
	return e.h
}

// add shows a host that w has made, unless another worker was faster. owner: main loop.
func (o *originalDst) add(l *local, w *event.Worker, e *dstHost) {
	if o.stopped {
		return // it serves the worker's last streams
	}
	twice := o.find(e.addr)
	if twice == nil {
		o.store(e)
		o.hosts = append(o.hosts, e)
		o.c.matched(o.d, endpoint{})
		switch {
		case len(o.hosts) <= dstAtOnce:
			o.show(nil)
		case !o.shower.Armed():
			o.d.Main.Arm(&o.shower, time.Duration(len(o.hosts))*dstPause)
		}
	} else {
		twice.use()
		e.h.SetFlag(host.Removed, true)
		o.count.Add(-1)
	}
	w.Post(func() {
		delete(l.fresh, e.addr)
		if twice != nil {
			l.drainHosts(map[*host.Host]bool{e.h: true})
		}
	})
}

// store puts a host into its shard.
func (o *originalDst) store(e *dstHost) {
	p := o.shard(e.addr)
	m := map[netip.AddrPort]*dstHost{e.addr: e}
	if old := p.Load(); old != nil {
		for a, x := range *old {
			m[a] = x
		}
	}
	p.Store(&m)
}

// show brings the cluster's table up to date, without those that are gone: pages, gauges and health checks go by it.
func (o *originalDst) show(gone map[*host.Host]bool) {
	hosts := make([]*host.Host, len(o.hosts))
	for i, e := range o.hosts {
		hosts[i] = e.h
	}
	if n := len(hosts) - o.shown; n > 0 {
		o.d.Store.Main().Add(o.c.settings.Stats.Counter(stats.ClusterMembershipChange), uint64(n))
	}
	o.shown = len(hosts)
	o.c.publish(o.d, []lb.HostSet{lb.NewHostSet(hosts)})
	o.c.checks.sync(gone)
}

// start implements source.
func (o *originalDst) start(ready func()) {
	o.d.Main.Arm(&o.sweeper, o.opt.Cleanup)
	ready()
}

// stop implements source. Streams that hold the cluster may still make hosts, as many as there may be.
func (o *originalDst) stop() {
	o.stopped = true
	o.d.Main.Remove(&o.sweeper)
	o.d.Main.Remove(&o.shower)
}

// primary implements source.
func (o *originalDst) primary() bool { return true }

// sweep lets the hosts go that were not used since it was here before, and to which there is no connection.
func (o *originalDst) sweep() {
	defer o.d.Main.Arm(&o.sweeper, max(o.opt.Cleanup, dstLeastCleanup, time.Duration(len(o.hosts))*dstPause))
	var gone map[*host.Host]bool
	var kept []*dstHost
	for i, e := range o.hosts {
		if e.used.Swap(false) || e.busy() {
			if gone != nil {
				kept = append(kept, e)
			}
			continue
		}
		if gone == nil {
			gone = make(map[*host.Host]bool)
			kept = append(kept, o.hosts[:i]...)
		}
		gone[e.h] = true
		e.h.SetFlag(host.Removed, true)
	}
	if len(gone) == 0 {
		return
	}
	for i := range o.shards {
		o.thin(&o.shards[i], gone)
	}
	o.hosts = kept
	o.count.Add(-int64(len(gone)))
	o.d.Main.Remove(&o.shower)
	o.d.Store.Main().Inc(o.c.settings.Stats.Counter(stats.ClusterMembershipChange))
	o.show(gone)
	o.c.eachLocal(o.d, func(_ *event.Worker, l *local) { l.drainHosts(gone) })
}

func (e *dstHost) busy() bool {
	return e.h.CxActive.Load() > 0 || e.h.RqActive.Load() > 0 || e.h.RqPending.Load() > 0
}

// thin takes hosts out of a shard.
func (o *originalDst) thin(p *atomic.Pointer[map[netip.AddrPort]*dstHost], gone map[*host.Host]bool) {
	old := p.Load()
	if old == nil {
		return
	}
	stay := make(map[netip.AddrPort]*dstHost)
	for a, e := range *old {
		if !gone[e.h] {
			stay[a] = e
		}
	}
	switch {
	case len(stay) == 0:
		p.Store(nil)
	case len(stay) < len(*old):
		p.Store(&stay)
	}
}
