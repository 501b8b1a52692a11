package event

import (
	"sync"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// Bounds of the std driver.
const (
	// stdInSize and stdOutSize are the buffers of one connection in bytes, the place of the kernel's. They come with first use.
	stdInSize  = 32 << 10
	stdOutSize = 64 << 10
	// stdOutLow is how much room makes a full out buffer writable again, as the kernel waits for a third of its own.
	stdOutLow = stdOutSize / 3
	// stdMaxBacklog bounds the connections that wait for Accept at one handle.
	stdMaxBacklog = 1024
	// stdLinger bounds how long a closed handle goes on sending what it had taken.
	stdLinger = 3 * time.Second
)

// std is the portable Driver: a goroutine that reads and one that writes for each net.Conn, with bounded buffers between them and
// the worker. What the worker sees is what epoll would show it: calls that never block, and edges.
//
// One mutex guards all of a driver. Its goroutines touch nothing of the worker: they move bytes, queue edges and end the wait.
// Two things differ from epoll. A reset is seen only when what came before it has been read, since the goroutine that would meet
// it waits for room. And socket options are not supported.
type std struct {
	notify chan struct{} // an edge or a Wake; one is enough
	timer  *time.Timer   // of Wait, whose thread owns it

	mu      sync.Mutex
	socks   []*stdSock // by Handle
	free    []Handle
	ready   []*stdSock
	taken   int // of ready
	woken   bool
	endings []<-chan struct{} // accept goroutines that this driver ended
	running sync.WaitGroup
}

// NewStd returns the portable driver of one worker.
func NewStd() Driver {
	//ban:allow bannedcall the place of epoll_wait's timeout
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &std{notify: make(chan struct{}, 1), timer: t}
}

// Close waits until what closed handles had taken is sent, at most stdLinger. Handles that are still open are reset: their
// goroutines must not outlive the driver.
func (d *std) Close() {
	d.mu.Lock()
	n := len(d.socks)
	d.mu.Unlock()
	for h := range n {
		d.CloseHandle(Handle(h), true)
	}
	for _, done := range d.endings {
		<-done
	}
	d.running.Wait()
}

func (d *std) Wait(dst []Ready, timeout time.Duration) int {
	if timeout > 0 {
		d.timer.Reset(timeout)
		defer d.timer.Stop()
	}
	for {
		n, woken := d.take(dst)
		if n > 0 || woken || timeout == 0 {
			return n
		}
		if timeout < 0 {
			<-d.notify
			continue
		}
		select {
		case <-d.notify:
		case <-d.timer.C:
			n, _ = d.take(dst)
			return n
		}
	}
}

func (d *std) take(dst []Ready) (n int, woken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	woken, d.woken = d.woken, false
	for ; d.taken < len(d.ready) && n < len(dst); d.taken++ {
		s := d.ready[d.taken]
		d.ready[d.taken] = nil
		s.queued = false
		if s.pending != 0 && s.added {
			dst[n] = Ready{H: s.h, Gen: s.gen, Ev: s.pending}
			s.pending = 0
			n++
		}
	}
	if d.taken == len(d.ready) {
		d.ready, d.taken = d.ready[:0], 0
	}
	return n, woken
}

func (d *std) Wake() {
	d.mu.Lock()
	d.woken = true
	d.mu.Unlock()
	d.ring()
}

func (d *std) ring() {
	select {
	case d.notify <- struct{}{}:
	default:
	}
}

// edge queues ev for the worker. d.mu is held.
func (d *std) edge(s *stdSock, ev Events) {
	if !s.added {
		return
	}
	s.pending |= ev
	if !s.queued {
		s.queued = true
		if d.taken > 0 && len(d.ready) == cap(d.ready) {
			d.ready, d.taken = d.ready[:copy(d.ready, d.ready[d.taken:])], 0
		}
		d.ready = append(d.ready, s)
		d.ring()
	}
}

// put gives s a handle. d.mu is held. The handle that was freed last is used first, as with file descriptors, so that the tests
// meet reuse.
func (d *std) put(s *stdSock) Handle {
	if k := len(d.free); k > 0 {
		s.h = d.free[k-1]
		d.free = d.free[:k-1]
		d.socks[s.h] = s
	} else {
		s.h = Handle(len(d.socks))
		d.socks = append(d.socks, s)
	}
	return s.h
}

// get returns the socket of h, nil if there is none. d.mu is held.
func (d *std) get(h Handle) *stdSock {
	if h < 0 || int(h) >= len(d.socks) {
		return nil
	}
	return d.socks[h]
}

func (d *std) Add(h Handle, gen uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.get(h)
	if s == nil {
		return syscall.EBADF
	}
	if s.added {
		return syscall.EEXIST
	}
	s.added, s.gen, s.pending = true, gen, 0
	if ev := s.state(); ev != 0 {
		d.edge(s, ev)
	}
	return 0
}

func (d *std) Remove(h Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.get(h); s != nil {
		s.added, s.pending = false, 0
	}
}

// CloseHandle lets the handle go at once. What Send has taken is still sent, unless reset is set.
func (d *std) CloseHandle(h Handle, reset bool) {
	d.mu.Lock()
	s := d.get(h)
	if s == nil {
		d.mu.Unlock()
		return
	}
	d.socks[h] = nil
	d.free = append(d.free, h)
	s.added, s.pending, s.closed = false, 0, true
	if s.listener != nil {
		left := s.backlog
		s.backlog = nil
		d.mu.Unlock()
		d.unlisten(s, left)
		return
	}
	end := s.end(reset)
	d.mu.Unlock()
	end()
}

func (d *std) LocalAddress(h Handle) network.Address {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.get(h); s != nil {
		return s.local
	}
	return network.Address{}
}

func (d *std) PeerAddress(h Handle) network.Address {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.get(h); s != nil {
		return s.peer
	}
	return network.Address{}
}

// SetOption does nothing: options are the kernel's, and the kernel is hidden here.
func (d *std) SetOption(Handle, *SocketOption) syscall.Errno { return syscall.ENOPROTOOPT }
