package event

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// stdSock is a handle of the std driver: a connection, one that is being made, or a listening socket. The driver's mutex guards
// it.
type stdSock struct {
	d       *std
	h       Handle
	gen     uint32
	pending Events
	added   bool // events are wanted
	queued  bool // in d.ready
	closed  bool

	local, peer network.Address

	// A listening socket has these two.
	listener *stdListener
	backlog  []net.Conn

	conn   net.Conn           // nil while connecting
	cancel context.CancelFunc // of a dial
	room   sync.Cond          // the reader waits for it
	work   sync.Cond          // the writer waits for it
	in     stdRing
	out    stdRing
	linger *time.Timer

	ended   bool // the reader is done: there are rdErr, once, and the end of stream behind what is in in
	broken  bool // nothing more can be sent: wrErr or rdErr, once, then EPIPE
	rdErr   syscall.Errno
	wrErr   syscall.Errno
	writing bool // the writer runs
	full    bool // Send was told EAGAIN, or took less than all: an edge is owed
	fin     bool // CloseWrite was called
	finSent bool
	reset   bool // closed with a reset: the connection is closed already
}

// newSock returns a socket without a handle.
func (d *std) newSock() *stdSock {
	s := &stdSock{d: d}
	s.room.L, s.work.L = &d.mu, &d.mu
	s.in.size, s.out.size = stdInSize, stdOutSize
	return s
}

// state is what Add reports at once.
func (s *stdSock) state() (ev Events) {
	if s.listener != nil {
		if len(s.backlog) > 0 {
			ev = Readable
		}
		return ev
	}
	if s.in.n > 0 || s.ended {
		ev |= Readable
	}
	if s.ended || s.broken {
		ev |= HangUp
	}
	if s.broken || s.conn != nil && s.out.n < s.out.size {
		ev |= Writable
	}
	return ev
}

// attach begins to serve c. d.mu is held.
func (s *stdSock) attach(c net.Conn) {
	s.conn = c
	s.local, s.peer = stdAddress(c.LocalAddr()), stdAddress(c.RemoteAddr())
	s.d.running.Add(1)
	go s.read()
}

func (d *std) Connect(spec *ConnectSpec) (Handle, syscall.Errno) {
	netw := stdNetwork(&spec.Address)
	if netw == "" {
		return NoHandle, syscall.EAFNOSUPPORT
	}
	dialer := &net.Dialer{KeepAlive: -1} // what is not asked for is not set, as with the other drivers
	dialer.SetMultipathTCP(false)
	if spec.Source.IP.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(spec.Source.IP)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.newSock()
	s.cancel = cancel
	d.running.Add(1)
	go s.dial(ctx, dialer, netw, spec.Address.String())
	return d.put(s), syscall.EINPROGRESS
}

func (s *stdSock) dial(ctx context.Context, dialer *net.Dialer, netw, addr string) {
	defer s.d.running.Done()
	c, err := dialer.DialContext(ctx, netw, addr)
	s.cancel()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch {
	case s.closed:
		if err == nil {
			_ = c.Close()
		}
	case err != nil:
		s.ended, s.broken, s.rdErr = true, true, stdErrno(err)
		s.d.edge(s, Readable|Writable|HangUp)
	default:
		s.attach(c)
		s.d.edge(s, Writable)
	}
}

// read moves bytes from the connection to s.in until its end.
func (s *stdSock) read() {
	defer s.d.running.Done()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for {
		for s.in.n == s.in.size && !s.closed {
			s.room.Wait()
		}
		if s.closed {
			return
		}
		p := s.in.tail()
		s.d.mu.Unlock()
		n, err := s.conn.Read(p)
		s.d.mu.Lock()
		if s.closed {
			return
		}
		s.in.n += n
		switch {
		case err == nil:
			s.d.edge(s, Readable)
		case errors.Is(err, io.EOF):
			s.ended = true
			s.d.edge(s, Readable|HangUp)
			return
		default:
			s.ended, s.broken, s.rdErr = true, true, stdErrno(err)
			s.work.Signal()
			s.d.edge(s, Readable|Writable|HangUp)
			return
		}
	}
}

// write moves bytes from s.out to the connection, then the FIN, and closes it when the handle was closed before.
func (s *stdSock) write() {
	defer s.d.running.Done()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
loop:
	for !s.reset && !s.broken {
		switch {
		case s.out.n > 0:
			s.writeOnce()
		case s.fin && !s.finSent:
			s.d.mu.Unlock()
			stdCloseWrite(s.conn)
			s.d.mu.Lock()
			s.finSent = true
		case s.closed || s.finSent:
			break loop
		default:
			s.work.Wait()
		}
	}
	s.writing = false
	if s.closed {
		if s.linger != nil {
			s.linger.Stop()
		}
		_ = s.conn.Close()
	}
}

func (s *stdSock) writeOnce() {
	p := s.out.head()
	s.d.mu.Unlock()
	n, err := s.conn.Write(p)
	s.d.mu.Lock()
	s.out.drop(n)
	if err != nil {
		s.broken, s.wrErr = true, stdErrno(err)
		s.d.edge(s, Readable|Writable|HangUp)
		return
	}
	if s.full && s.out.size-s.out.n >= stdOutLow {
		s.full = false
		s.d.edge(s, Writable)
	}
}

// end closes a connection as far as it can be done now and returns the rest, for which d.mu must not be held.
func (s *stdSock) end(reset bool) func() {
	s.reset = reset
	s.room.Signal()
	s.work.Signal()
	switch {
	case s.conn == nil:
		return s.cancel
	case reset:
		return func() {
			if t, ok := s.conn.(*net.TCPConn); ok {
				_ = t.SetLinger(0)
			}
			_ = s.conn.Close()
		}
	case s.writing:
		//ban:allow bannedcall the place of the kernel's own timer for orphaned sockets
		s.linger = time.AfterFunc(stdLinger, func() { _ = s.conn.Close() })
		return func() {}
	}
	return func() { _ = s.conn.Close() }
}

func (d *std) Recv(h Handle, p []byte) (int, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.get(h)
	switch {
	case s == nil:
		return 0, syscall.EBADF
	case s.listener != nil:
		return 0, syscall.ENOTCONN
	case s.in.n > 0:
		n := s.in.read(p)
		s.room.Signal()
		return n, 0
	case s.rdErr != 0:
		return 0, s.takeError()
	case s.ended:
		return 0, 0
	}
	return 0, syscall.EAGAIN
}

// Peek implements Prober.
func (d *std) Peek(h Handle) (int, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.get(h)
	switch {
	case s == nil:
		return 0, syscall.EBADF
	case s.listener != nil:
		return 0, syscall.ENOTCONN
	case s.in.n > 0:
		return 1, 0
	case s.ended || s.broken:
		return 0, s.rdErr
	}
	return 0, syscall.EAGAIN
}

// Acknowledged implements Prober: the system does not say it portably.
func (d *std) Acknowledged(Handle) (uint64, bool) { return 0, false }

// takeError returns the pending error, once.
func (s *stdSock) takeError() syscall.Errno {
	e := s.rdErr
	if e == 0 {
		e = s.wrErr
	}
	s.rdErr, s.wrErr = 0, 0
	return e
}

func (d *std) Send(h Handle, p [][]byte) (int, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.get(h)
	switch {
	case s == nil:
		return 0, syscall.EBADF
	case s.listener != nil:
		return 0, syscall.ENOTCONN
	case s.broken || s.fin:
		if e := s.takeError(); e != 0 {
			return 0, e
		}
		return 0, syscall.EPIPE
	case s.conn == nil || s.out.n == s.out.size:
		s.full = true
		return 0, syscall.EAGAIN
	}
	n := 0
	for _, b := range p {
		k := s.out.write(b)
		n += k
		if k < len(b) {
			s.full = true
			break
		}
	}
	s.wakeWriter()
	return n, 0
}

// wakeWriter starts the writer if it does not run: an idle connection has none.
func (s *stdSock) wakeWriter() {
	if s.writing {
		s.work.Signal()
		return
	}
	s.writing = true
	s.d.running.Add(1)
	go s.write()
}

func (d *std) CloseWrite(h Handle) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.get(h)
	switch {
	case s == nil:
		return syscall.EBADF
	case s.conn == nil || s.broken:
		return syscall.ENOTCONN
	case s.fin:
		return 0
	}
	s.fin = true
	s.wakeWriter()
	return 0
}

func (d *std) SocketError(h Handle) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.get(h); s != nil {
		return s.takeError()
	}
	return syscall.EBADF
}

// stdRing is a bounded queue of bytes. Its memory comes with first use. The free run that tail returns and the filled run that
// head returns stay where they are while the other end moves.
type stdRing struct {
	b     []byte
	size  int
	at, n int
}

func (r *stdRing) make() {
	if r.b == nil {
		r.b = make([]byte, r.size)
	}
}

func (r *stdRing) head() []byte { return r.b[r.at:min(r.at+r.n, r.size)] }

func (r *stdRing) tail() []byte {
	r.make()
	if end := r.at + r.n; end >= r.size {
		return r.b[end-r.size : r.at]
	} else {
		return r.b[end:]
	}
}

func (r *stdRing) drop(n int) {
	r.at += n
	if r.at >= r.size {
		r.at -= r.size
	}
	r.n -= n
}

func (r *stdRing) read(p []byte) (n int) {
	for n < len(p) && r.n > 0 {
		k := copy(p[n:], r.head())
		r.drop(k)
		n += k
	}
	return n
}

func (r *stdRing) write(p []byte) (n int) {
	for n < len(p) && r.n < r.size {
		k := copy(r.tail(), p[n:])
		r.n += k
		n += k
	}
	return n
}
