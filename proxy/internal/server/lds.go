package server

import (
	"fmt"
	"net/netip"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// AddOrUpdateListener takes a listener, as LDS brings them, and returns why it cannot be taken. It serves once what it waits for is
// there. owner: main loop.
func (s *Server) AddOrUpdateListener(p *listenerv3.Listener) error {
	return s.addOrUpdateListener(p, "")
}

// RemoveListener takes a listener of the API away. Its connections drain. owner: main loop.
func (s *Server) RemoveListener(name string) { s.removeListener(name) }

// addOrUpdateListener is AddOrUpdateListener with the version that pages show. A listener that changed in its chains only goes on
// and gets the new chains; another one is replaced, and keeps the sockets of the addresses that it keeps: closing them would reset
// what waits in their accept queues.
func (s *Server) addOrUpdateListener(p *listenerv3.Listener, version string) error {
	old := s.listeners[p.GetName()]
	if old == nil && s.hasStatic(p.GetName()) {
		return nil // as Envoy: what the bootstrap has stays
	}
	b, err := s.newListenerBuild(p)
	if err != nil {
		return err
	}
	b.version, b.api = version, true
	_, err = s.takeListener(old, b)
	return err
}

// takeListener adds a listener, or lets it take over from old in the way that keeps most. changed is false if they are the same.
func (s *Server) takeListener(old *activeListener, b *listenerBuild) (changed bool, err error) {
	switch {
	case old == nil:
		err = s.addListener(b)
	case old.newest().whole == b.whole:
		return false, nil
	case old.build.fixed == b.fixed && s.State() == Live && len(b.p.GetFilterChains()) > 0:
		err = s.updateChains(old, b)
	default:
		err = s.replaceListener(old, b)
	}
	if err != nil {
		b.abandon(s.uses(old))
	}
	return true, err
}

func (s *Server) hasStatic(name string) bool {
	return slices.ContainsFunc(s.order, func(a *activeListener) bool { return a.name == name && !a.api })
}

// newest is the last configuration that was accepted.
func (a *activeListener) newest() *listenerBuild {
	if a.warming != nil {
		return a.warming
	}
	return a.build
}

func (s *Server) uses(a *activeListener) map[uint64]*chainUse {
	if a == nil {
		return nil
	}
	return a.build.byHash
}

// addListener takes a new listener.
func (s *Server) addListener(b *listenerBuild) error {
	if err := b.build(); err != nil {
		return err
	}
	if err := s.hasAddress(b, nil); err != nil {
		b.releaseStats()
		return err
	}
	s.countListener(stats.ListenerManagerListenerAdded, 1)
	a := s.add(b, b.version, b.api)
	if b.api {
		s.listeners[a.name] = a
	}
	if s.State() != Live {
		b.whenWarm(s.wait())
		return nil
	}
	s.warm(a, b, func() { s.openNew(a) })
	return nil
}

// warm runs f when what b waits for is there, unless something newer has come.
func (s *Server) warm(a *activeListener, b *listenerBuild, f func()) {
	if w := a.warming; w != nil {
		w.abandon(a.build.byHash)
	}
	a.warming = b
	s.gaugeWarming()
	b.whenWarm(func() {
		if a.warming == b {
			a.warming = nil
			s.gaugeWarming()
			f()
		}
	})
}

// cold tells whether the listener is new and does not serve yet.
func (a *activeListener) cold() bool { return a.warming != nil && a.warming == a.build }

func (s *Server) gaugeWarming() {
	n, active := uint64(0), uint64(0)
	for _, a := range s.order {
		if a.warming != nil {
			n++
		}
		if !a.cold() {
			active++
		}
	}
	g := s.process.listeners
	s.store.SetGauge(g.Gauge(stats.ListenerManagerTotalListenersWarming), n)
	s.store.SetGauge(g.Gauge(stats.ListenerManagerTotalListenersActive), active)
}

// openNew lets a listener serve.
func (s *Server) openNew(a *activeListener) {
	s.openAll([]*activeListener{a}, func(err error) {
		if err != nil {
			s.countListener(stats.ListenerManagerListenerCreateFailure, 1)
			s.logger("config").Warn("listener failed to listen", "listener", a.name, "error", err)
			if slices.Contains(s.order, a) {
				s.removeActive(a)
			}
		} else {
			s.countListener(stats.ListenerManagerListenerCreateSuccess, len(s.workers))
		}
		a.build.settle(err)
	})
}

// updateChains is the update in place: chains that are gone drain, the others keep their connections.
func (s *Server) updateChains(a *activeListener, b *listenerBuild) error {
	b.l = a.l
	b.scope, b.wanted = a.build.scope, a.build.wanted
	addr, err := address(b.p.GetAddress())
	if err != nil {
		return at("address", err)
	}
	if b.keepConnections {
		b.bare = s.bareChains(a)
	}
	if err := b.chains(addr, a.build.byHash); err != nil {
		return err
	}
	s.countListener(stats.ListenerManagerListenerModified, 1)
	s.warm(a, b, func() {
		s.countListener(stats.ListenerManagerListenerInPlaceUpdated, 1)
		old := a.build
		a.build = b
		s.describe(a, b.p, b.version, b.api)
		a.l.SetChains(b.set)
		b.swapRoutes()
		s.countListener(stats.ListenerManagerListenerCreateSuccess, len(s.workers))
		var gone []*chainUse
		stay := usesOf(b.byHash)
		for _, u := range old.byHash {
			if !stay[u] {
				gone = append(gone, u)
			}
		}
		s.drainChains(gone)
		b.settle(nil)
	})
	return nil
}

// replaceListener lets another listener take over from a.
func (s *Server) replaceListener(a *activeListener, b *listenerBuild) error {
	if err := b.build(); err != nil {
		return err
	}
	if err := s.hasAddress(b, a); err != nil {
		b.releaseStats()
		return err
	}
	s.countListener(stats.ListenerManagerListenerModified, 1)
	if s.State() != Live {
		waiting := a.build.warm
		a.build.abandon(nil)
		a.build.releaseStats()
		a.build, a.l, a.unbound = b, b.l, b.unbound()
		s.describe(a, b.p, b.version, b.api)
		s.route()
		b.whenWarm(s.wait())
		if waiting != nil {
			waiting() // the start waits for b in its place
		}
		return nil
	}
	s.warm(a, b, func() {
		old := *a
		a.build, a.l, a.unbound, a.accs, a.more = b, b.l, b.unbound(), nil, nil
		a.call(b.p.GetName(), s.main.Rand)
		s.describe(a, b.p, b.version, b.api)
		s.takeSockets(&old, a)
		s.route()
		s.drainListener(&old)
	})
	return nil
}

// takeSockets moves the sockets of addresses that stay to the new listener, and opens what is missing. What the old one has beyond
// that is closed when the new ones are open.
func (s *Server) takeSockets(old, a *activeListener) {
	have := map[network.Address][]*listener.Acceptor{}
	for i, x := range old.build.wanted {
		list := old.accs
		if i > 0 && i-1 < len(old.more) {
			list = old.more[i-1]
		}
		have[x] = list
	}
	missing := false
	kept := map[network.Address]bool{}
	for i, x := range a.build.wanted {
		list := have[x]
		if a.unbound || len(list) == 0 {
			missing = missing || !a.unbound
			continue
		}
		kept[x] = true
		a.take(i, list)
		a.serve(i)
	}
	drop := func() {
		for addr, list := range have {
			if kept[addr] {
				continue
			}
			for _, acc := range list {
				acc.Worker().Post(acc.Close)
			}
		}
	}
	if !missing {
		s.countListener(stats.ListenerManagerListenerCreateSuccess, len(s.workers))
		drop()
		a.build.settle(nil)
		return
	}
	s.openMissing(a, func(err error) {
		if err != nil {
			s.countListener(stats.ListenerManagerListenerCreateFailure, 1)
			s.logger("config").Warn("listener failed to listen", "listener", a.name, "error", err)
			s.keepAddresses(old, a, kept)
			a.build.whole, a.build.fixed = 0, 0 // whoever brings the same again has it tried again
		} else {
			s.countListener(stats.ListenerManagerListenerCreateSuccess, len(s.workers))
		}
		drop()
		a.build.settle(err)
	})
}

// keepAddresses lets a serve where old did, in place of those of its addresses that could not be opened on all workers.
func (s *Server) keepAddresses(old, a *activeListener, kept map[network.Address]bool) {
	for i := range a.build.wanted {
		list := a.sockets(i)
		if len(list) == len(s.workers) || i >= len(old.build.wanted) || kept[old.build.wanted[i]] || len(old.sockets(i)) == 0 {
			continue
		}
		for _, acc := range list {
			acc.Worker().Post(acc.Close)
		}
		a.build.wanted[i] = old.build.wanted[i]
		kept[a.build.wanted[i]] = true
		a.take(i, old.sockets(i))
		a.serve(i)
	}
	s.route()
}

// sockets are those of address i, as far as they are open.
func (a *activeListener) sockets(i int) []*listener.Acceptor {
	switch {
	case i == 0:
		return a.accs
	case i-1 < len(a.more):
		return a.more[i-1]
	}
	return nil
}

// serve lets the sockets of address i, which another listener had, accept for a.
func (a *activeListener) serve(i int) {
	for _, acc := range a.sockets(i) {
		acc.Worker().Post(func() { acc.Serve(a.l) })
	}
}

// take makes sockets those of a's address i.
func (a *activeListener) take(i int, list []*listener.Acceptor) {
	at := list[0].LocalAddress()
	if i == 0 {
		a.accs, a.bound, a.l.Spec.Address = list, at, at
		return
	}
	for len(a.more) < i {
		a.more = append(a.more, nil)
	}
	a.more[i-1], a.l.More[i-1].Address = list, at
}

// openMissing opens the sockets that a has not yet, one after the other, and lets them accept.
func (s *Server) openMissing(a *activeListener, done func(error)) {
	type job struct {
		w *event.Worker
		i int
	}
	var jobs []job
	for i := range specs(a.l) {
		if i == 0 && len(a.accs) > 0 || i > 0 && i-1 < len(a.more) && len(a.more[i-1]) > 0 {
			continue
		}
		for _, w := range s.workers {
			jobs = append(jobs, job{w, i})
		}
	}
	fresh := map[*listener.Acceptor]bool{}
	a.each(func(acc *listener.Acceptor) { fresh[acc] = false })
	var next func(err error)
	next = func(err error) {
		if err == nil && len(jobs) > 0 {
			j := jobs[0]
			jobs = jobs[1:]
			a.open(s, j.w, j.i, func(err error) {
				if err != nil {
					err = fmt.Errorf("cannot bind %s: %w", specs(a.l)[j.i].Address, err)
				}
				next(err)
			})
			return
		}
		a.each(func(acc *listener.Acceptor) {
			if _, had := fresh[acc]; !had {
				acc.Worker().Post(func() { _ = acc.Start() })
			}
		})
		s.route()
		done(err)
	}
	next(nil)
}

// removeListener stops listening for a listener of the API; its connections drain.
func (s *Server) removeListener(name string) {
	if a := s.listeners[name]; a != nil {
		s.removeActive(a)
	}
}

// removeActive is removeListener for any listener.
func (s *Server) removeActive(a *activeListener) {
	if s.listeners[a.name] == a {
		delete(s.listeners, a.name)
	}
	s.order = slices.DeleteFunc(s.order, func(x *activeListener) bool { return x == a })
	s.forget(a)
	s.countListener(stats.ListenerManagerListenerRemoved, 1)
	if a.warming != nil {
		a.warming.abandon(a.build.byHash)
		a.warming = nil
	}
	s.gaugeWarming()
	s.route()
	a.closeSockets()
	waiting := a.build.warm
	s.drainListener(a)
	if a.build.warm = nil; waiting != nil {
		waiting() // the start need not wait for it any more
	}
}

// route shows the listeners to those that hand connections over by their original destination.
func (s *Server) route() {
	m := map[netip.AddrPort]*listener.Listener{}
	for _, a := range s.order {
		for _, x := range specs(a.l) {
			if ip := x.Address.IP; ip.IsValid() {
				m[netip.AddrPortFrom(ip.Addr().Unmap(), ip.Port())] = a.l
			}
		}
	}
	s.redirects.Set(m)
}
