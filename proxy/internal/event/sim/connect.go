package sim

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

var (
	v4 = netip.MustParseAddr("127.0.0.1")
	v6 = netip.MustParseAddr("::1")
)

func withPort(a netip.Addr, port uint16) network.Address {
	return network.AddrFrom(netip.AddrPortFrom(a, port))
}

// The timers of TCP's handshake.
const (
	synRetry    = time.Second // doubles
	synAttempts = 7
)

// listener is one listening handle, or a server of peers.
type listener struct {
	w       *World
	addr    network.Address
	share   bool
	backlog int
	waiting []*end
	sock    *sock   // of a driver, or
	server  *Server // of peers
}

// defaultBacklog is what 0 means.
const defaultBacklog = 128

// listen opens a listener. A port of 0 gets one.
func (w *World) listen(l *listener) syscall.Errno {
	if l.addr.IP.IsValid() && l.addr.IP.Port() == 0 {
		l.addr = withPort(l.addr.IP.Addr(), w.port())
	}
	if !l.addr.Valid() || l.addr.IsInternal() {
		return syscall.EAFNOSUPPORT
	}
	for _, o := range w.listeners {
		if o.addr == l.addr && (!o.share || !l.share) {
			return syscall.EADDRINUSE
		}
	}
	if l.backlog <= 0 {
		l.backlog = defaultBacklog
	}
	l.w = w
	w.listeners = append(w.listeners, l)
	return 0
}

// close takes l off the network; what waits in it is reset.
func (l *listener) close() {
	for i, o := range l.w.listeners {
		if o == l {
			l.w.listeners = append(l.w.listeners[:i], l.w.listeners[i+1:]...)
			break
		}
	}
	for _, e := range l.waiting {
		e.close(true)
	}
	l.waiting = nil
}

// at returns a listener for an address, one of chance if several share it.
func (w *World) at(a network.Address) *listener {
	var found []*listener
	for _, l := range w.listeners {
		if l.addr == a || l.addr.IP.IsValid() && l.addr.IP.Port() == a.IP.Port() && l.addr.IP.Addr().IsUnspecified() &&
			(l.addr.IP.Addr().Is6() || a.IP.Addr().Is4()) {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[w.rnd.IntN(len(found))]
}

// connect sends the SYN for a new end.
func (w *World) connect(from, to network.Address) *end {
	e := w.newEnd(2 * w.conns)
	w.conns++
	e.local, e.remote, e.connecting = from, to, true
	if !from.Valid() {
		e.local = w.source(to)
	} else if from.IP.IsValid() && from.IP.Port() == 0 {
		e.local = withPort(from.IP.Addr(), w.port())
	}
	w.record(Connect, e.id, 0)
	if w.chance(w.faults.BlackHole) {
		w.wire.add(w.now+int64(synRetry<<synAttempts-synRetry), func() { e.fail(TimedOut, syscall.ETIMEDOUT) })
		return e
	}
	e.syn(0)
	return e
}

func (e *end) fail(k Kind, err syscall.Errno) {
	if e.connecting {
		e.w.record(k, e.id, 0)
		e.breakWith(err)
	}
}

// syn sends the SYN for the n-th time.
func (e *end) syn(n int) {
	w := e.w
	if !e.connecting {
		return
	}
	if n == synAttempts {
		e.fail(TimedOut, syscall.ETIMEDOUT)
		return
	}
	retry := func() { w.wire.add(w.now+int64(synRetry<<n), func() { e.syn(n + 1) }) }
	if w.chance(w.faults.SYNLoss) {
		retry()
		return
	}
	w.wire.add(e.arrival(), func() {
		l := w.at(e.remote)
		switch {
		case !e.connecting:
		case l == nil || w.chance(w.faults.Refuse):
			w.wire.add(e.arrival(), func() { e.fail(Refused, syscall.ECONNREFUSED) })
		case len(l.waiting) >= l.backlog:
			retry()
		default:
			l.answer(e)
		}
	})
}

// answer sends the SYN-ACK; with the ACK of that the connection is in l's queue.
func (l *listener) answer(c *end) {
	w := l.w
	s := w.newEnd(c.id + 1)
	s.local, s.remote = c.remote, c.local
	s.far = c
	w.wire.add(s.arrival(), func() {
		if !c.connecting { // given up: the SYN-ACK is answered with a reset, and l never hears of it
			s.broken = true
			return
		}
		c.connecting, c.far = false, s
		w.record(Established, c.id, 0)
		w.wire.add(c.arrival(), func() { l.arrive(s) })
		c.full = false
		c.tell(event.Writable)
		c.pump()
	})
}

// arrive is the ACK. It comes before any byte of the client.
func (l *listener) arrive(s *end) {
	open := false
	for _, o := range l.w.listeners {
		open = open || o == l
	}
	if !open {
		s.close(true)
		return
	}
	l.waiting = append(l.waiting, s)
	if l.sock != nil {
		l.sock.edge(event.Readable)
	} else {
		l.server.edge(event.Readable)
	}
}

// accept takes a connection out of the queue.
func (l *listener) accept() *end {
	if len(l.waiting) == 0 {
		return nil
	}
	e := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	l.w.record(Accepted, e.id, len(l.waiting))
	return e
}
