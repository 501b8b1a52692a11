package conn_test

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// silent returns an address that does not answer: the kernel drops what would connect to a listening socket whose queue is full.
func (r *rig) silent() network.Address {
	r.t.Helper()
	open := func() int {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = syscall.Close(fd) })
		return fd
	}
	l := open()
	if err := syscall.Bind(l, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Listen(l, 0); err != nil {
		r.t.Fatal(err)
	}
	at, err := syscall.Getsockname(l)
	if err != nil {
		r.t.Fatal(err)
	}
	for range 4 {
		if err := syscall.Connect(open(), at); err != nil && err != syscall.EINPROGRESS {
			r.t.Fatal(err)
		}
	}
	return network.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(at.(*syscall.SockaddrInet4).Port)))
}

// An address that does not answer is joined by the next one after 300 ms, and a failure then by the one after that.
func TestDialAnySilence(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		hole, bad, good := r.silent(), r.refusing(), r.echoing()
		opened := 0
		c := r.race(&opened, hole, hole, bad, good)
		for i := range 2 {
			r.clock.ahead += 290 * time.Millisecond
			r.settle()
			r.clock.ahead += 300 * time.Millisecond
			r.run("the next attempt", func() bool { return opened > i })
		}
		r.run("it is connected", func() bool { return c.connected == 1 })
		if opened != 3 || c.c.Info.Remote != good || r.dialing(c) != 1 {
			t.Errorf("connected to %v, %d further attempts, %d sockets", c.c.Info.Remote, opened, r.dialing(c))
		}
		c.c.Close(network.NoFlush, "")
	})
}

// A connection may be given up while it is being made.
func TestDialAnyClosed(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		hole, opened := r.silent(), 0
		c := r.race(&opened, hole, hole, hole)
		r.clock.ahead += 300 * time.Millisecond
		r.run("two attempts", func() bool { return opened == 1 })
		c.c.Close(network.NoFlush, "enough")
		r.clock.ahead += time.Second
		r.settle()
		if c.closed != 1 || c.why.Reason != "enough" || opened != 1 || r.dialing(c) != 0 {
			t.Errorf("closed %d times: %+v, %d further attempts, %d sockets", c.closed, c.why, opened, r.dialing(c))
		}
	})
}
