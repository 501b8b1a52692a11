package event

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// stdListeners holds the listening sockets of the process by address. Go opens no address twice, so workers that listen on the
// same one share a net.Listener, and its goroutine hands out what it accepts in turn: each worker has a listening handle of its
// own, as with SO_REUSEPORT.
var stdListeners = struct {
	sync.Mutex
	by map[string]*stdListener
}{by: map[string]*stdListener{}}

// stdListener is one net.Listener and the handles that share it. Its lock comes before those of drivers.
type stdListener struct {
	key   string
	ln    net.Listener
	share bool
	space chan struct{} // a backlog has room again
	quit  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	members []*stdSock
	next    int
}

// Listen opens a listening socket, or a further handle of one that was opened with ReusePort.
func (d *std) Listen(spec *ListenSpec) (Handle, error) {
	if spec.Transparent || spec.Freebind {
		return NoHandle, os.NewSyscallError("setsockopt", syscall.ENOPROTOOPT)
	}
	netw := stdNetwork(&spec.Address)
	if netw == "" {
		return NoHandle, os.NewSyscallError("socket", syscall.EAFNOSUPPORT)
	}
	stdListeners.Lock()
	defer stdListeners.Unlock()
	l := stdListeners.by[spec.Address.String()]
	switch {
	case l == nil:
		var err error
		if l, err = stdListen(spec, netw); err != nil {
			return NoHandle, err
		}
		stdListeners.by[l.key] = l
		go l.accept()
	case !l.share || !spec.ReusePort:
		return NoHandle, os.NewSyscallError("bind", syscall.EADDRINUSE)
	}
	return d.join(l), nil
}

// Probe opens a listening socket and closes it: package net cannot bind without listening.
func (d *std) Probe(spec *ListenSpec) error {
	if spec.Transparent || spec.Freebind {
		return os.NewSyscallError("setsockopt", syscall.ENOPROTOOPT)
	}
	netw := stdNetwork(&spec.Address)
	if netw == "" {
		return os.NewSyscallError("socket", syscall.EAFNOSUPPORT)
	}
	stdListeners.Lock()
	defer stdListeners.Unlock()
	if l := stdListeners.by[spec.Address.String()]; l != nil {
		if !l.share || !spec.ReusePort {
			return os.NewSyscallError("bind", syscall.EADDRINUSE)
		}
		return nil
	}
	l, err := stdListen(spec, netw)
	if err == nil {
		_ = l.ln.Close()
		if spec.Address.IsUnix() && spec.Address.Path[0] != '@' {
			_ = os.Remove(spec.Address.Path)
		}
	}
	return err
}

// join returns a further handle of l.
func (d *std) join(l *stdListener) Handle {
	s := d.newSock()
	s.listener, s.local = l, stdAddress(l.ln.Addr())
	d.mu.Lock()
	h := d.put(s)
	d.mu.Unlock()
	l.mu.Lock()
	l.members = append(l.members, s)
	l.mu.Unlock()
	l.roomAgain()
	return h
}

func stdListen(spec *ListenSpec, netw string) (*stdListener, error) {
	if netw == "tcp6" && !spec.V6Only {
		netw = "tcp" // the only way to say it: both families if the address is the wildcard
	}
	if spec.Address.IsUnix() && spec.Address.Path[0] != '@' {
		_ = os.Remove(spec.Address.Path) // a socket that an earlier process left behind
	}
	config := net.ListenConfig{KeepAlive: -1}
	config.SetMultipathTCP(false)
	ln, err := config.Listen(context.Background(), netw, spec.Address.String())
	if err != nil {
		var se *os.SyscallError
		if errors.As(err, &se) {
			return nil, os.NewSyscallError(se.Syscall, stdErrno(se.Err))
		}
		return nil, os.NewSyscallError("listen", stdErrno(err))
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
		if spec.Mode != 0 && spec.Address.Path[0] != '@' {
			if err := os.Chmod(spec.Address.Path, os.FileMode(spec.Mode)); err != nil {
				_ = ln.Close()
				return nil, os.NewSyscallError("chmod", stdErrno(err))
			}
		}
	}
	a := stdAddress(ln.Addr())
	return &stdListener{
		key: a.String(), ln: ln, share: spec.ReusePort,
		space: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// accept hands out connections until the last handle is closed.
func (l *stdListener) accept() {
	defer close(l.done)
	for {
		c, err := l.ln.Accept()
		if err != nil {
			select {
			case <-l.quit:
				return
			//ban:allow bannedcall the goroutine has no worker's timer, and out of descriptors it must not spin
			case <-time.After(10 * time.Millisecond):
				continue
			}
		}
		for !l.hand(c) {
			select {
			case <-l.quit:
				stdAbort(c)
				return
			case <-l.space:
			}
		}
	}
}

// hand gives c to the next handle that has room.
func (l *stdListener) hand(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range l.members {
		l.next = (l.next + 1) % len(l.members)
		if l.members[l.next].offer(c) {
			return true
		}
	}
	return false
}

func (s *stdSock) offer(c net.Conn) bool {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.closed || len(s.backlog) >= stdMaxBacklog {
		return false
	}
	s.backlog = append(s.backlog, c)
	s.d.edge(s, Readable)
	return true
}

func (l *stdListener) roomAgain() {
	select {
	case l.space <- struct{}{}:
	default:
	}
}

// unlisten takes s out of its listener. Connections that nobody has accepted go to the handles that are left; with the last one
// they are reset, as the kernel does.
func (d *std) unlisten(s *stdSock, left []net.Conn) {
	l := s.listener
	stdListeners.Lock()
	defer stdListeners.Unlock()
	l.mu.Lock()
	for i, m := range l.members {
		if m == s {
			l.members = append(l.members[:i], l.members[i+1:]...)
			break
		}
	}
	last := len(l.members) == 0
	l.mu.Unlock()
	for _, c := range left {
		if last || !l.hand(c) {
			stdAbort(c)
		}
	}
	if last {
		delete(stdListeners.by, l.key)
		close(l.quit)
		_ = l.ln.Close()
		d.endings = append(d.endings, l.done)
	}
}

func (d *std) Accept(h Handle) (Handle, network.Address, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.get(h)
	switch {
	case s == nil:
		return NoHandle, network.Address{}, syscall.EBADF
	case s.listener == nil:
		return NoHandle, network.Address{}, syscall.EINVAL
	case len(s.backlog) == 0:
		return NoHandle, network.Address{}, syscall.EAGAIN
	}
	c := s.backlog[0]
	s.backlog[0] = nil
	if s.backlog = s.backlog[1:]; len(s.backlog) == 0 {
		s.backlog = nil
	}
	s.listener.roomAgain()
	n := d.newSock()
	n.attach(c)
	return d.put(n), n.peer, 0
}
