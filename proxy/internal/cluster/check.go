package cluster

import (
	"time"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// checks are the active health checks of a cluster: they begin with the search for hosts, hold the cluster back until each host has
// had a result, and then show changes to the workers once a pass. Methods of a nil checks do nothing. owner: main loop.
type checks struct {
	c *Cluster
	d *Deps
	h *health.Checker
	// ready waits for the first round; nil: nobody. waits is how many results are still missing.
	ready func()
	waits int
	// begun: hosts are checked. warm: changes are shown.
	begun, warm bool
	queued      bool // publish comes at the end of the pass
	failed      map[*host.Host]bool

	used   bool // the cluster has had a connection for traffic
	looked int64
}

func newChecks(c *Cluster, d *Deps, o *health.Options, logs []health.Log) *checks {
	k := &checks{c: c, d: d}
	var rt health.Runtime
	if d.Runtime != nil {
		rt = d.Runtime
	}
	if p := c.prev; p != nil {
		k.used = p.used()
	}
	k.h = health.New(health.Config{Worker: d.Main, Options: o, Pools: &c.settings, Cluster: c.name, Logs: logs, Runtime: rt, Used: k.hasTraffic,
		OnResult: k.onResult})
	c.checks = k
	k.h.Stats = c.checkScope(d).Group(stats.HealthCheck)
	return k
}

// checkScope is where the statistics of the checks are.
func (c *Cluster) checkScope(d *Deps) apistats.Scope {
	s := c.scope(d).Scope("health_check")
	if name := c.checks.h.Options.Name; name != "" {
		s = s.Scope("name").Scope(name)
	}
	return s
}

// start begins to look for hosts and to check them; ready is called when traffic may come.
func (c *Cluster) start(ready func()) {
	if k := c.checks; k != nil {
		ready = k.start(ready)
	}
	if c.source == nil {
		ready()
		return
	}
	c.source.start(ready)
}

// stop ends what start began.
func (c *Cluster) stop() {
	if c.source != nil {
		c.source.stop()
	}
	if k := c.checks; k != nil {
		k.begun, k.ready = false, nil
		k.h.Close()
	}
}

func (k *checks) start(ready func()) (found func()) {
	k.begun = true
	k.sync(nil)
	return func() {
		if k.waits = k.h.Fresh(); k.waits > 0 {
			k.ready = ready
			return
		}
		k.firstRound(ready)
	}
}

// firstRound shows what the checks have found so far, and lets traffic in.
func (k *checks) firstRound(ready func()) {
	k.ready, k.warm = nil, true
	k.c.healthChanged(k.d, nil)
	ready()
}

// mark prepares a new host: it is not healthy before its first check.
func (k *checks) mark(h *host.Host) {
	if k == nil || h.Extra != nil && h.Extra.NoHealthCheck {
		return
	}
	h.SetFlag(host.FailedActiveHC, true)
	if k.c.opts.ExcludeUnchecked {
		h.SetFlag(host.PendingActiveHC, true)
	}
}

// sync follows a change of the hosts.
func (k *checks) sync(gone map[*host.Host]bool) {
	if k == nil || !k.begun {
		return
	}
	for h := range gone {
		k.h.Remove(h)
	}
	k.c.eachHost(k.h.Add)
	if k.ready != nil {
		if k.waits = min(k.waits, k.h.Fresh()); k.waits == 0 { // those that were waited for are gone
			k.firstRound(k.ready)
		}
	}
}

// onResult is the checker's call.
func (k *checks) onResult(h *host.Host, r health.Result) {
	if k.ready != nil {
		if k.waits--; k.waits <= 0 {
			k.firstRound(k.ready)
		}
		return
	}
	if !r.Changed || !k.warm {
		return
	}
	if r.Failed {
		if k.failed == nil {
			k.failed = make(map[*host.Host]bool)
		}
		k.failed[h] = true
	}
	if !k.queued {
		k.queued = true
		k.d.Main.AtEnd(k.publish)
	}
}

// publish shows all changes of a pass: a table for each of ten thousand hosts that fail together would be too much.
func (k *checks) publish() {
	failed := k.failed
	k.queued, k.failed = false, nil
	if !k.begun {
		return
	}
	c, d := k.c, k.d
	gone := make(map[*host.Host]bool)
	for h := range failed {
		if h.Has(host.PendingDynamicRemoval) && h.Has(host.FailedActiveHC) {
			gone[h] = true
		}
	}
	c.healthChanged(d, gone)
	if len(gone) > 0 {
		d.Store.Main().Inc(c.settings.Stats.Counter(stats.ClusterMembershipChange))
		for h := range gone {
			h.SetFlag(host.Removed, true)
		}
		k.sync(gone)
	}
	if len(failed) > 0 {
		closing := c.opts.CloseOnHealthFailure
		c.eachLocal(d, func(_ *event.Worker, l *local) { l.failed(failed, closing) })
	}
	if len(gone) > 0 {
		c.eachLocal(d, func(_ *event.Worker, l *local) { l.drainHosts(gone) })
	}
}

// FailNow tells the checks of a host of c that it has asked for no more requests (x-envoy-immediate-health-check-fail). Safe from any
// thread; call it for hosts that are host.Checked.
func (m *Manager) FailNow(c *Cluster, h *host.Host) {
	m.d.Main.Post(func() {
		if k := c.checks; k != nil && k.begun {
			k.h.FailNow(h)
		}
	})
}

// lookAgain is how often a cluster without traffic is looked at for some, at most.
const lookAgain = int64(100 * time.Millisecond)

// hasTraffic tells whether the cluster has had a connection for traffic.
func (k *checks) hasTraffic() bool {
	if now := k.d.Main.Now(); !k.used && (k.looked == 0 || now-k.looked >= lookAgain) {
		k.looked = now
		k.used = k.c.used()
	}
	return k.used
}

// used tells whether a host has had a connection.
func (c *Cluster) used() bool {
	if c.checks != nil && c.checks.used {
		return true
	}
	if c.locals.Load() == nil { // nobody has picked one
		return false
	}
	found := false
	c.eachHost(func(h *host.Host) { found = found || h.CxTotal.Load() > 0 })
	return found
}

// sameCheck tells whether an endpoint is checked as before.
func sameCheck(a, b *host.Extra) bool {
	var x, y host.Extra
	if a != nil {
		x = *a
	}
	if b != nil {
		y = *b
	}
	return x.HealthCheck == y.HealthCheck && x.HealthCheckPort == y.HealthCheckPort && x.HealthCheckName == y.HealthCheckName &&
		x.NoHealthCheck == y.NoHealthCheck
}

// retain keeps hosts that an update does not have any more as long as their checks say that they are healthy, unless the cluster wants
// otherwise (ignore_health_on_host_removal).
func (u *update) retain() {
	if u.c.checks == nil || u.c.opts.IgnoreHealthOnRemoval || len(u.old) == 0 {
		return
	}
	for _, s := range u.c.table.Load().Sets {
		for _, h := range s.Hosts {
			if u.old[h.Address] != h || h.Has(host.FailedActiveHC|host.FailedEDSHealth) || h.Extra != nil && h.Extra.NoHealthCheck {
				continue
			}
			delete(u.old, h.Address)
			if h.SetFlag(host.PendingDynamicRemoval, true) {
				u.changed = true
			}
			u.keep(h)
		}
	}
}

// keep puts a retained host back where it was.
func (u *update) keep(h *host.Host) {
	p := int(h.Priority())
	for p >= len(u.prios) {
		u.prios = append(u.prios, nil)
		u.places = append(u.places, nil)
	}
	list := u.prios[p]
	u.prios[p] = append(list[:len(list):len(list)], h) // the list may be a locality's, too
	if !u.byPlace() {
		return
	}
	for i := range u.places[p] {
		if l := &u.places[p][i]; samePlace(l.Place, h.Locality()) {
			*l = newLocalitySet(l.Place, append(l.Hosts[:len(l.Hosts):len(l.Hosts)], h), l.Weight)
			return
		}
	}
	u.places[p] = append(u.places[p], newLocalitySet(h.Locality(), []*host.Host{h}, 0))
}

func samePlace(a, b *host.Locality) bool {
	return a == b || a != nil && b != nil && *a == *b
}
