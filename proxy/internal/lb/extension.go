package lb

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/upstream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// Extension makes a Policy of an extension's.
func Extension(p upstream.Policy) Policy { return &extension{p} }

type extension struct{ p upstream.Policy }

func (e *extension) Build(hosts []*host.Host, state int) Balancer {
	views := make([]upstream.Host, len(hosts))
	for i, h := range hosts {
		views[i] = View(h)
	}
	return &picker{p: e.p.Build(views), hosts: hosts, state: state}
}

type picker struct {
	p     upstream.Picker
	hosts []*host.Host
	state int
}

func (b *picker) Pick(c *Context) *host.Host {
	x := &c.local.pick
	*x = upstream.Pick{Headers: c.Headers, Hash: c.Hash, HasHash: c.HasHash, Rand: c.W.Rand, Local: &c.State(b.state).own}
	i := b.p.Pick(x)
	x.Headers = nil
	if uint(i) >= uint(len(b.hosts)) {
		return nil
	}
	return b.hosts[i]
}

// View returns h as extensions see it. It does not allocate, and equal hosts give equal values.
func View(h *host.Host) upstream.Host { return view{h} }

type view struct{ h *host.Host }

func (v view) Address() network.Address { return v.h.Address }
func (v view) Hostname() string         { return v.h.Hostname }
func (v view) Weight() uint32           { return v.h.Weight() }
func (v view) Priority() uint32         { return v.h.Priority() }
func (v view) Health() upstream.Health  { return upstream.Health(v.h.Health()) }
func (v view) ActiveRequests() int64    { return v.h.RqActive.Load() }

func (v view) Locality() upstream.Locality {
	if l := v.h.Locality(); l != nil {
		return upstream.Locality(*l)
	}
	return upstream.Locality{}
}

func (v view) Metadata(namespace string, path ...string) (any, bool) {
	return v.h.Metadata().Get(namespace, path...)
}
