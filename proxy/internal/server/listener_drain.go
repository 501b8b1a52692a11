package server

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// retiring counts what is on its way out. owner: main loop.
type retiring struct{ listeners, chains int }

func (s *Server) gaugeRetiring() {
	g := s.process.listeners
	s.store.SetGauge(g.Gauge(stats.ListenerManagerTotalListenersDraining), uint64(s.retiring.listeners))
	s.store.SetGauge(g.Gauge(stats.ListenerManagerTotalFilterChainsDraining), uint64(s.retiring.chains))
}

// drainListener lets the connections of a listener that was removed or replaced end within the drain time, then closes what is left.
// a is a copy, or is not used any more.
func (s *Server) drainListener(a *activeListener) {
	l, b := a.l, a.build
	l.Drain()
	s.retiring.listeners++
	s.gaugeRetiring()
	s.afterDrain(func(w *event.Worker) { listener.CloseListener(w, l) }, func() {
		s.retiring.listeners--
		s.gaugeRetiring()
		b.abandon(nil)
		b.releaseStats()
	})
}

// drainChains is the same for chains of a listener that goes on.
func (s *Server) drainChains(list []*chainUse) {
	if len(list) == 0 {
		return
	}
	for _, u := range list {
		u.ch.Drain()
	}
	s.retiring.chains += len(list)
	s.gaugeRetiring()
	s.afterDrain(func(w *event.Worker) {
		for _, u := range list {
			listener.CloseChain(w, u.ch)
		}
	}, func() {
		s.retiring.chains -= len(list)
		s.gaugeRetiring()
		for _, u := range list {
			u.close()
		}
	})
}

// afterDrain tells the workers now that something drains, and calls end on each of them when the drain time is over, then done.
func (s *Server) afterDrain(end func(w *event.Worker), done func()) {
	for _, w := range s.workers {
		w.Post(func() { listener.NotifyDrain(w) })
	}
	t := &event.Timer{}
	t.Fn = func() {
		left := len(s.workers)
		for _, w := range s.workers {
			w.Post(func() {
				end(w)
				s.main.Post(func() {
					if left--; left == 0 {
						done()
					}
				})
			})
		}
	}
	s.main.Arm(t, s.drainTime())
}
