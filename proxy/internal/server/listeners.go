package server

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
)

// activeListener is a listener and its sockets. owner: main loop.
type activeListener struct {
	name string
	// shown is name, or what stands for it where there is none; it is chosen at random and stays.
	shown string
	l     *listener.Listener
	// accs are the sockets of the first address, by worker; more are those of the additional addresses.
	accs  []*listener.Acceptor
	more  [][]*listener.Acceptor
	bound network.Address // of the first address
	build *listenerBuild  // nil for the admin listener
	// warming is what is to replace it, or its chains; nil mostly.
	warming *listenerBuild
	unbound bool // bind_to_port is false
	listenerInfo
}

func (s *Server) hasCluster(name string) bool {
	sl := s.clusters.Lookup(name)
	return sl != nil && sl.Load() != nil || s.problems.clusters[name] || s.problems.unread
}

// buildListeners makes the static listeners. The proxy waits for what they wait for.
func (s *Server) buildListeners() error {
	return s.cfg.Boot.Listeners(func(it config.Item[*listenerv3.Listener]) error {
		if s.taken(it.Message.GetName()) {
			s.standsTwice(it.Message.GetName())
			if s.cfg.Note != nil {
				s.cfg.Note(*s.cfg.Boot.Positions().Error(it.Path+".name", config.Error{Kind: config.Invalid,
					Msg: "a listener named '" + it.Message.GetName() + "' stands before: this one is left out, as in Envoy"}))
			}
			return nil // as Envoy: a static listener cannot be changed, and saying so again is no mistake
		}
		b, err := s.newListenerBuild(it.Message)
		if err != nil {
			return s.located(it.Path, err)
		}
		b.path = it.Path
		var errs config.Errors
		errs.Collect("", attempt(it.Broken || s.problems.broken, b.build))
		if b.l != nil && !isUDP(it.Message.GetAddress()) { // ports of UDP are others
			errs.Collect("", s.freeAddress(b, nil))
		}
		if err := errs.Err(); err != nil || it.Broken {
			return s.located(it.Path, err)
		}
		s.noteAdminAddress(b)
		s.add(b, "", false)
		b.whenWarm(s.wait())
		return nil
	})
}

// noteAdminAddress tells Check of a listener at the address of the admin interface, which is found at the start only, as in Envoy.
func (s *Server) noteAdminAddress(b *listenerBuild) {
	if s.cfg.Note == nil || s.adminListener == nil || b.l == nil || b.unbound() || isUDP(b.p.GetAddress()) {
		return
	}
	admin := s.adminListener.l.Address
	for _, x := range specs(b.l) {
		if x.Address == admin && (admin.Path != "" || admin.IP.Port() != 0) {
			where := ""
			if pos, ok := s.cfg.Boot.Positions().Lookup("admin.address"); ok {
				where = " (" + pos.String() + ")"
			}
			s.cfg.Note(*s.cfg.Boot.Positions().Error(b.path+".address", config.Error{Kind: config.Invalid,
				Msg: "the admin interface has the address " + admin.String() + " too" + where + ": one of them cannot listen, and the proxy does not start"}))
			return
		}
	}
}

// standsTwice logs that a listener is left out. Safe from any goroutine.
func (s *Server) standsTwice(name string) {
	s.logger("config").Warn("listener '" + name + "' stands twice: the second is left out")
}

// taken tells whether a static listener of that name stands before, be it right or wrong. No name is never taken.
func (s *Server) taken(name string) bool {
	p := &s.problems
	if name == "" {
		return false
	}
	if p.listeners == nil {
		p.listeners = map[string]bool{}
	}
	was := p.listeners[name]
	p.listeners[name] = true
	return was
}

// add makes a listener of a build one of the proxy's.
func (s *Server) add(b *listenerBuild, version string, api bool) *activeListener {
	a := &activeListener{l: b.l, build: b, unbound: b.unbound()}
	a.call(b.p.GetName(), s.main.Rand)
	s.describe(a, b.p, version, api)
	s.order = append(s.order, a)
	s.route()
	return a
}

// call gives a listener its name.
func (a *activeListener) call(name string, r *rand.Source) {
	if a.shown == "" || a.name != name {
		a.name, a.shown = name, name
		if name == "" {
			a.shown = string(r.AppendUUID(nil))
		}
	}
}

func (b *listenerBuild) unbound() bool {
	return b.p.GetBindToPort() != nil && !b.p.GetBindToPort().GetValue() || b.p.GetDeprecatedV1().GetBindToPort() != nil &&
		!b.p.GetDeprecatedV1().GetBindToPort().GetValue()
}

// specs are all addresses of the listener.
func specs(l *listener.Listener) []event.ListenSpec {
	return append([]event.ListenSpec{l.Spec}, l.More...)
}

// freeAddress refuses an address that another listener has. old is the one that b replaces.
func (s *Server) freeAddress(b *listenerBuild, old *activeListener) error {
	if b.unbound() {
		return nil
	}
	for _, a := range s.order {
		if a == old || a.unbound || a.l == nil {
			continue
		}
		for _, x := range specs(a.l) {
			for _, y := range specs(b.l) {
				if x.Address == y.Address && (x.Address.Path != "" || x.Address.IP.Port() != 0) {
					return &config.Error{Path: "address", Msg: fmt.Sprintf("error adding listener: '%s' has duplicate address '%s' as existing listener, "+
						"to check if the listener has duplicated addresses with other listeners or 'enable_reuse_port' is set to 'false' for the listener%s",
						b.p.GetName(), y.Address, s.whereIs(a))}
				}
			}
		}
	}
	return nil
}

// whereIs says which listener of the bootstrap a is, and where it stands, as long as the text is there.
func (s *Server) whereIs(a *activeListener) string {
	if a.build == nil || a.build.path == "" {
		return ""
	}
	text := "; the existing one is " + a.build.path
	if pos, ok := s.cfg.Boot.Positions().Lookup(a.build.path); ok {
		text += " at " + pos.String()
	}
	return text
}

// startListeners opens all sockets, then lets all of them accept, so that a failure leaves nothing half open. done is called on the
// main loop.
func (s *Server) startListeners(done func(error)) { s.openAll(s.order, done) }

// openAll opens the sockets of some listeners on their workers, one after the other, and lets them accept.
func (s *Server) openAll(list []*activeListener, done func(error)) {
	type job struct {
		a    *activeListener
		w    *event.Worker
		spec int // index in specs
	}
	var jobs []job
	for _, a := range list {
		if a.unbound {
			continue
		}
		for i := range specs(a.l) {
			for _, w := range s.workers {
				jobs = append(jobs, job{a, w, i})
			}
		}
	}
	var next func()
	next = func() {
		if len(jobs) == 0 {
			for _, a := range list {
				a.each(func(acc *listener.Acceptor) { acc.Worker().Post(func() { _ = acc.Start() }) })
			}
			s.route() // the kernel may have given ports
			done(nil)
			return
		}
		j := jobs[0]
		jobs = jobs[1:]
		j.a.open(s, j.w, j.spec, func(err error) {
			if err != nil {
				done(fmt.Errorf("listener %q: cannot bind %s: %w", j.a.name, specs(j.a.l)[j.spec].Address, err))
				return
			}
			next()
		})
	}
	next()
}

// open opens one of the listener's sockets on w. done is called on the main loop.
func (a *activeListener) open(s *Server, w *event.Worker, i int, done func(error)) {
	l := a.l
	spec := &l.Spec
	if i > 0 {
		spec = &l.More[i-1]
	}
	w.Post(func() {
		acc, err := listener.OpenSpec(l, spec, w, s.cfg.Sockets)
		s.main.Post(func() {
			if err != nil {
				done(err)
				return
			}
			if spec.Address.IP.IsValid() && spec.Address.IP.Port() == 0 {
				spec.Address = acc.LocalAddress() // the other workers share the port that the kernel gave
			}
			if i == 0 {
				a.bound = acc.LocalAddress()
				a.accs = append(a.accs, acc)
			} else {
				for len(a.more) < i {
					a.more = append(a.more, nil)
				}
				a.more[i-1] = append(a.more[i-1], acc)
			}
			done(nil)
		})
	})
}

// each calls f for all sockets.
func (a *activeListener) each(f func(acc *listener.Acceptor)) {
	for _, acc := range a.accs {
		f(acc)
	}
	for _, list := range a.more {
		for _, acc := range list {
			f(acc)
		}
	}
}

// alsoAt are the additional addresses.
func (a *activeListener) alsoAt() (list []network.Address) {
	for i := range a.l.More {
		addr := a.l.More[i].Address
		if i < len(a.more) && len(a.more[i]) > 0 {
			addr = a.more[i][0].LocalAddress()
		}
		list = append(list, addr)
	}
	return list
}

// closeSockets stops listening. What waits in the accept queues is reset.
func (a *activeListener) closeSockets() {
	a.each(func(acc *listener.Acceptor) { acc.Worker().Post(acc.Close) })
	a.accs, a.more = nil, nil
}

// closeOn closes what a worker has of the listeners. owner: w.
func (s *Server) closeOn(w *event.Worker) {
	for _, a := range s.order {
		a.each(func(acc *listener.Acceptor) {
			if acc.Worker() == w {
				acc.Close()
			}
		})
	}
}
