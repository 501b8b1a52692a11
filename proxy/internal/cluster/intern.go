package cluster

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// interned makes clusters that are configured alike share their plain settings. Ten thousand clusters have a handful of
// different ones. owner: main loop.
type interned struct {
	opts   map[Options]*Options
	h1     map[h1Options]*h1.Options
	h2     map[h2Options]*h2.Options
	pools  map[poolKey][]*pool.Options
	limit  map[[pool.NumPriorities]pool.Limits]*[pool.NumPriorities]pool.Limits
	places map[host.Locality]*host.Locality
}

// maxInterned bounds each table: beyond it they are forgotten and begin anew, which costs sharing and nothing else.
const maxInterned = 4096

func share[K comparable, V any](m *map[K]V, k K, mk func() V) V {
	if v, ok := (*m)[k]; ok {
		return v
	}
	if *m == nil || len(*m) >= maxInterned {
		*m = make(map[K]V)
	}
	v := mk()
	(*m)[k] = v
	return v
}

func (s *interned) options(o Options) *Options {
	return share(&s.opts, o, func() *Options { return &o })
}

func (s *interned) limits(l [pool.NumPriorities]pool.Limits) *[pool.NumPriorities]pool.Limits {
	return share(&s.limit, l, func() *[pool.NumPriorities]pool.Limits { return &l })
}

func (s *interned) place(l *host.Locality) *host.Locality {
	if l == nil {
		return nil
	}
	return share(&s.places, *l, func() *host.Locality { return l })
}

// poolKey is what can be compared of pool.Options.
type poolKey struct {
	protocol                 pool.Protocol
	h1                       *h1.Options
	h2                       *h2.Options
	connect, idle, duration  int64
	keepalive                [3]int64
	stream                   int64
	autoSNI, autoSAN         bool
	header                   string
	requests, buffer, jitter uint32
	source                   network.Address
	ahead, predict           float64
	filters, policies        any
}

func (s *interned) pool(o *poolOptions) *pool.Options {
	o.H1 = share(&s.h1, o.h1, o.h1.options)
	o.H2 = share(&s.h2, o.h2, o.h2.options)
	k := poolKey{o.Protocol, o.H1, o.H2, int64(o.ConnectTimeout), int64(o.IdleTimeout), int64(o.MaxDuration),
		[3]int64{int64(o.Keepalive), int64(o.KeepaliveTimeout), int64(o.KeepaliveIdle)}, int64(o.MaxStreamDuration), o.AutoSNI, o.AutoSAN, o.SNIHeader, o.MaxRequests, o.BufferLimit,
		o.KeepaliveJitter, o.Source, o.Preconnect, o.Predict, o.Filters, o.Policies}
	list := share(&s.pools, k, func() []*pool.Options { return nil })
	for _, p := range list {
		if slices.EqualFunc(p.Sockets, o.Sockets, sameOption) {
			return p
		}
	}
	p := o.Options
	s.pools[k] = append(list, &p)
	return &p
}

func sameOption(a, b event.SocketOption) bool {
	return a.Level == b.Level && a.Name == b.Name && a.Int == b.Int && a.State == b.State && slices.Equal(a.Buf, b.Buf)
}
