package cluster

import (
	"net/netip"
	"slices"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// DefaultDNSRefresh is dns_refresh_rate.
const DefaultDNSRefresh = 5 * time.Second

// DNSOptions say how names are resolved.
type DNSOptions struct {
	Family     dns.Family
	Refresh    time.Duration
	Jitter     time.Duration
	RespectTTL bool
	// MinRefresh is the shortest time that RespectTTL gives.
	MinRefresh time.Duration
	// FailureBase and FailureMax bound the time to the next try after a failure, which grows exponentially. Both are Refresh if
	// nothing else is configured: then it does not grow.
	FailureBase, FailureMax time.Duration
}

// dnsSource resolves the endpoints of a STRICT_DNS or LOGICAL_DNS cluster again and again. owner: main loop.
type dnsSource struct {
	c        *Cluster
	d        *Deps
	resolver dns.Resolver
	a        *assignment // as configured
	names    []*resolved
	ready    func()
}

// resolved is one name and what it stands for now.
type resolved struct {
	s         *dnsSource
	locality  int
	endpoint  endpoint
	addresses []network.Address
	query     dns.Query
	timer     event.Timer
	failures  int
}

func newDNSSource(c *Cluster, d *Deps, a *assignment) *dnsSource {
	s := &dnsSource{c: c, d: d, a: a}
	for i := range a.localities {
		for _, e := range a.localities[i].endpoints {
			r := &resolved{s: s, locality: i, endpoint: e}
			if r.endpoint.hostname == "" {
				r.endpoint.hostname = e.name
			}
			r.timer.Fn = r.resolve
			s.names = append(s.names, r)
		}
	}
	return s
}

func (s *dnsSource) primary() bool { return true }

func (s *dnsSource) start(ready func()) {
	s.ready = ready
	if len(s.names) == 0 {
		s.isReady()
		return
	}
	for _, r := range s.names {
		r.resolve()
	}
}

func (s *dnsSource) stop() {
	for _, r := range s.names {
		s.d.Main.Remove(&r.timer)
		if r.query != nil {
			r.query.Cancel()
			r.query = nil
		}
	}
	s.ready = nil
}

// isReady: the first answer to any of the names lets traffic in, as in Envoy.
func (s *dnsSource) isReady() {
	if f := s.ready; f != nil {
		s.ready = nil
		f()
	}
}

func (s *dnsSource) count(i apistats.CounterIndex) {
	s.d.Store.Main().Inc(s.c.settings.Stats.Counter(i))
}

func (r *resolved) resolve() {
	s := r.s
	s.count(stats.ClusterUpdateAttempt)
	if a := r.endpoint.address; a.Valid() {
		s.count(stats.ClusterUpdateSuccess)
		r.set([]network.Address{a})
		s.isReady()
		return
	}
	r.query = s.resolver.Resolve(r.endpoint.name, s.c.opts.DNS.Family, r.answered)
}

func (r *resolved) answered(res dns.Result) {
	s := r.s
	r.query = nil
	if res.Err != nil && res.Err != dns.ErrNotFound {
		s.count(stats.ClusterUpdateFailure)
		r.failures++
		s.d.Main.Arm(&r.timer, s.retryIn(r.failures))
		s.isReady()
		return
	}
	r.failures = 0
	s.count(stats.ClusterUpdateSuccess)
	list := make([]network.Address, len(res.Addresses))
	next, life := s.c.opts.DNS.Refresh, time.Duration(0)
	for i, a := range res.Addresses {
		list[i] = network.AddrFrom(netip.AddrPortFrom(a.IP, r.endpoint.port))
		if i == 0 || a.TTL < life {
			life = a.TTL
		}
	}
	if s.c.opts.DNS.RespectTTL && life > 0 {
		next = max(life, s.c.opts.DNS.MinRefresh)
	}
	r.set(list)
	if j := s.c.opts.DNS.Jitter; j > 0 {
		next += time.Duration(s.d.Main.Rand.Uint64() % uint64(j))
	}
	s.d.Main.Arm(&r.timer, next)
	s.isReady()
}

// retryIn is the time until a name is asked for again after n failures.
func (s *dnsSource) retryIn(n int) time.Duration {
	o := &s.c.opts.DNS
	if o.FailureBase == o.Refresh && o.FailureMax == o.Refresh {
		return o.Refresh
	}
	top := min(o.FailureBase<<min(n-1, 20), o.FailureMax)
	return max(time.Duration(s.d.Main.Rand.Uint64()%uint64(max(top, 1))), time.Millisecond)
}

// set takes the addresses that a name stands for now.
func (r *resolved) set(list []network.Address) {
	s := r.s
	n := len(list)
	if s.c.opts.Type == LogicalDNS {
		n = min(n, 1)
	}
	for range n {
		s.c.matched(s.d, r.endpoint)
	}
	if slices.Equal(list, r.addresses) {
		s.count(stats.ClusterUpdateNoRebuild)
		return
	}
	if s.c.opts.Type == LogicalDNS {
		s.setLogical(r, list)
		return
	}
	r.addresses = list
	if !s.c.apply(s.d, s.merged()) {
		s.count(stats.ClusterUpdateNoRebuild)
	}
}

// setLogical gives the one host of a LOGICAL_DNS cluster the first address. The host stays the same, and so do its connections.
func (s *dnsSource) setLogical(r *resolved, list []network.Address) {
	if len(list) == 0 {
		return
	}
	first := r.addresses == nil
	r.addresses = list
	if !first {
		s.c.table.Load().Sets[0].Hosts[0].SetCurrent(list[0])
		return
	}
	r.addresses = list[:1]
	s.c.apply(s.d, s.merged())
	r.addresses = list
}

// merged is the configured assignment with addresses in place of names.
func (s *dnsSource) merged() *assignment {
	a := *s.a
	a.localities = make([]locality, len(s.a.localities))
	for i, l := range s.a.localities {
		l.endpoints = nil
		a.localities[i] = l
	}
	for _, r := range s.names {
		l := &a.localities[r.locality]
		for _, addr := range r.addresses {
			e := r.endpoint
			e.address = addr
			l.endpoints = append(l.endpoints, e)
		}
	}
	return &a
}
