package listener

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Drainer is a handler that wants to know at once that its chain drains, instead of asking when it has something to send.
type Drainer interface{ OnDrain() }

// each calls f for all connections of a worker; f may close its own.
func each(w *event.Worker, f func(s *session)) {
	for s := locals.Get(w).first; s != nil; {
		next := s.next
		f(s)
		s = next
	}
}

// NotifyDrain tells the handlers on w whose chains drain. owner: w.
func NotifyDrain(w *event.Worker) {
	each(w, func(s *session) {
		if s.chain != nil && s.chain.Draining() {
			if d, ok := s.Handler.(Drainer); ok {
				d.OnDrain()
			}
		}
	})
}

// CloseChain closes the connections on w that a chain serves. owner: w.
func CloseChain(w *event.Worker, ch *Chain) {
	each(w, func(s *session) {
		if s.chain == ch {
			s.c.Close(network.NoFlush, "")
		}
	})
}

// CloseListener closes the connections on w that came to l. owner: w.
func CloseListener(w *event.Worker, l *Listener) {
	each(w, func(s *session) {
		if s.l == l {
			s.c.Close(network.NoFlush, "")
		}
	})
}

// CloseAll closes all connections that listeners took in on w. owner: w.
func CloseAll(w *event.Worker) { each(w, func(s *session) { s.c.Close(network.NoFlush, "") }) }
