package sim

import (
	"os"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// driver is the event.Driver of one worker on the World.
type driver struct {
	w     *World
	name  string
	socks []*sock // by Handle
	free  []event.Handle
	ready []*sock
}

// sock is a handle: a connection's end or a listener.
type sock struct {
	d       *driver
	h       event.Handle
	gen     uint32
	added   bool
	queued  bool
	pending event.Events
	end     *end
	lst     *listener
}

// Driver returns a new driver on the world. name says in reports whose it is.
func (w *World) Driver(name string) event.Driver {
	d := &driver{w: w, name: name}
	w.drivers = append(w.drivers, d)
	return d
}

func (s *sock) edge(ev event.Events) {
	if !s.added {
		return
	}
	s.pending |= ev
	if !s.queued {
		s.queued = true
		s.d.ready = append(s.d.ready, s)
	}
}

func (s *sock) state() event.Events {
	if s.end != nil {
		return s.end.state()
	}
	if len(s.lst.waiting) > 0 {
		return event.Readable
	}
	return 0
}

// Wait never waits: World.Run lets time pass. The order of events is one of chance.
func (d *driver) Wait(dst []event.Ready, _ time.Duration) int {
	w := d.w
	for i := range d.ready {
		j := w.rnd.IntN(i + 1)
		d.ready[i], d.ready[j] = d.ready[j], d.ready[i]
	}
	most := min(len(dst), len(d.ready))
	if most > 1 && w.chance(w.faults.FewEvents) {
		most = 1 + w.rnd.IntN(most)
	}
	n, taken := 0, 0
	var again []*sock
	for ; taken < len(d.ready) && n < most; taken++ {
		s := d.ready[taken]
		ev := s.pending
		s.pending, s.queued = 0, false
		if ev == 0 || !s.added {
			continue
		}
		// epoll tells all that is true at the time of the wait, others only what has become true.
		if now := s.state(); now != 0 && w.rnd.IntN(2) == 0 {
			ev = now
		}
		w.record(Event, s.id(), int(ev))
		dst[n] = event.Ready{H: s.h, Gen: s.gen, Ev: ev}
		n++
		if w.chance(w.faults.Spurious) {
			again = append(again, s)
		}
	}
	d.ready = append(d.ready[:0], d.ready[taken:]...)
	for _, s := range again {
		s.edge(event.Readable)
	}
	return n
}

// id is that of the connection; listeners are told apart by handle only.
func (s *sock) id() uint32 {
	if s.end != nil {
		return s.end.id
	}
	return ^uint32(s.h)
}

// Wake does nothing: everybody is stepped anyway.
func (d *driver) Wake() {}

// Close frees nothing: Open tells which handles were left.
func (d *driver) Close() {}

func (d *driver) put(s *sock) event.Handle {
	if k := len(d.free); k > 0 {
		s.h = d.free[k-1]
		d.free = d.free[:k-1]
		d.socks[s.h] = s
	} else {
		s.h = event.Handle(len(d.socks))
		d.socks = append(d.socks, s)
	}
	return s.h
}

func (d *driver) get(h event.Handle) *sock {
	if h < 0 || int(h) >= len(d.socks) {
		return nil
	}
	return d.socks[h]
}

// conn returns the connection of h, or the error of calling for one.
func (d *driver) conn(h event.Handle) (*end, syscall.Errno) {
	d.w.slip()
	switch s := d.get(h); {
	case s == nil:
		return nil, syscall.EBADF
	case s.end == nil:
		return nil, syscall.ENOTCONN
	default:
		return s.end, 0
	}
}

func (d *driver) Listen(spec *event.ListenSpec) (event.Handle, error) {
	s := &sock{d: d, lst: &listener{addr: spec.Address, share: spec.ReusePort, backlog: spec.Backlog}}
	s.lst.sock = s
	if e := d.w.listen(s.lst); e != 0 {
		return event.NoHandle, os.NewSyscallError("bind", e)
	}
	return d.put(s), nil
}

func (d *driver) Accept(l event.Handle) (event.Handle, network.Address, syscall.Errno) {
	d.w.slip()
	s := d.get(l)
	switch {
	case s == nil:
		return event.NoHandle, network.Address{}, syscall.EBADF
	case s.lst == nil:
		return event.NoHandle, network.Address{}, syscall.EINVAL
	case len(s.lst.waiting) == 0:
		return event.NoHandle, network.Address{}, syscall.EAGAIN
	case d.w.chance(d.w.faults.AcceptFails):
		return event.NoHandle, network.Address{}, syscall.EMFILE
	}
	n := &sock{d: d, end: s.lst.accept()}
	n.end.own = n
	return d.put(n), n.end.remote, 0
}

func (d *driver) Connect(spec *event.ConnectSpec) (event.Handle, syscall.Errno) {
	if !spec.Address.Valid() || spec.Address.IsInternal() {
		return event.NoHandle, syscall.EAFNOSUPPORT
	}
	s := &sock{d: d, end: d.w.connect(spec.Source, spec.Address)}
	s.end.own = s
	return d.put(s), syscall.EINPROGRESS
}

func (d *driver) Add(h event.Handle, gen uint32) syscall.Errno {
	s := d.get(h)
	switch {
	case s == nil:
		return syscall.EBADF
	case s.added:
		return syscall.EEXIST
	}
	s.added, s.gen, s.pending = true, gen, 0
	if ev := s.state(); ev != 0 {
		s.edge(ev)
	}
	return 0
}

func (d *driver) Remove(h event.Handle) {
	if s := d.get(h); s != nil {
		s.added, s.pending = false, 0
	}
}

func (d *driver) Recv(h event.Handle, p []byte) (int, syscall.Errno) {
	e, err := d.conn(h)
	if err != 0 {
		return 0, err
	}
	return e.recv(p)
}

func (d *driver) Send(h event.Handle, p [][]byte) (int, syscall.Errno) {
	e, err := d.conn(h)
	if err != 0 {
		return 0, err
	}
	return e.send(p)
}

// Peek implements event.Prober.
func (d *driver) Peek(h event.Handle) (int, syscall.Errno) {
	e, err := d.conn(h)
	if err != 0 {
		return 0, err
	}
	return e.peek()
}

// Acknowledged implements event.Prober. What has arrived counts at once, before the news of it would be here.
func (d *driver) Acknowledged(h event.Handle) (uint64, bool) {
	if s := d.get(h); s != nil && s.end != nil {
		return s.end.arrived, true
	}
	return 0, false
}

func (d *driver) CloseWrite(h event.Handle) syscall.Errno {
	e, err := d.conn(h)
	if err != 0 {
		return err
	}
	return e.closeWrite()
}

func (d *driver) CloseHandle(h event.Handle, reset bool) {
	s := d.get(h)
	if s == nil {
		return
	}
	d.socks[h] = nil
	d.free = append(d.free, h)
	s.added, s.pending = false, 0
	if s.lst != nil {
		s.lst.close()
		return
	}
	s.end.close(reset)
}

func (d *driver) SocketError(h event.Handle) syscall.Errno {
	e, err := d.conn(h)
	if err != 0 {
		return err
	}
	return e.takeError()
}

func (d *driver) LocalAddress(h event.Handle) network.Address {
	switch s := d.get(h); {
	case s == nil:
		return network.Address{}
	case s.lst != nil:
		return s.lst.addr
	default:
		return s.end.local
	}
}

func (d *driver) PeerAddress(h event.Handle) network.Address {
	if s := d.get(h); s != nil && s.end != nil && !s.end.connecting && !s.end.broken {
		return s.end.remote
	}
	return network.Address{}
}

// SetOption has nothing to set.
func (d *driver) SetOption(event.Handle, *event.SocketOption) syscall.Errno {
	return syscall.ENOPROTOOPT
}
