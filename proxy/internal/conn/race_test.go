package conn_test

import (
	"syscall"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// refusing returns an address at which nobody listens.
func (r *rig) refusing() network.Address {
	r.t.Helper()
	h, err := r.w.Driver.Listen(&event.ListenSpec{Address: loopback})
	if err != nil {
		r.t.Fatal(err)
	}
	at := r.w.Driver.LocalAddress(h)
	r.w.Driver.CloseHandle(h, false)
	r.settle()
	return at
}

// echoing returns an address at which bytes come back.
func (r *rig) echoing() network.Address {
	return r.listen(func(h event.Handle) {
		s := &end{}
		s.take = func(b []byte) int { r.send(s, b); return len(b) }
		s.c = conn.New(r.w, h, nil)
		_ = s.c.Start(s)
	})
}

// race dials a list of addresses.
func (r *rig) race(opened *int, list ...network.Address) *end {
	c := &end{}
	c.c = conn.DialAny(r.w, &event.ConnectSpec{Address: list[0]}, list, nil, c, func() { *opened++ })
	return c
}

// dialing counts the sockets of a connection that is being made, or is there.
func (r *rig) dialing(c *end) (n int) {
	for _, h := range r.w.Handlers() {
		if conn.Of(h) == c.c {
			n++
		}
	}
	return n
}

// An address that fails makes room for the next one at once.
func TestDialAny(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		bad, worse, good := r.refusing(), network.Address{}, r.echoing() // worse cannot even be tried
		for _, x := range []struct {
			list   []network.Address
			opened int
		}{
			{[]network.Address{good, bad}, 0}, {[]network.Address{bad, good}, 1}, {[]network.Address{bad, worse, bad, good}, 3}, {[]network.Address{worse, good}, 1},
		} {
			opened := 0
			c := r.race(&opened, x.list...)
			r.send(c, []byte("hello")) // what is written before goes out first
			r.run("the bytes came back", func() bool { return string(c.got) == "hello" })
			if c.connected != 1 || opened != x.opened || c.c.Info.Remote != good || r.dialing(c) != 1 {
				t.Errorf("%v: connected %d times to %v, %d further attempts, %d sockets", x.list, c.connected, c.c.Info.Remote, opened, r.dialing(c))
			}
			c.c.Close(network.NoFlush, "")
		}
	})
}

func TestDialAnyFails(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		bad, worse := r.refusing(), network.Address{}
		for _, list := range [][]network.Address{{bad, bad}, {worse, bad}, {worse, worse}} {
			opened := 0
			c := r.race(&opened, list...)
			if c.closed > 0 {
				t.Fatal("DialAny called back inline")
			}
			r.run("it failed", func() bool { return c.closed == 1 })
			if !c.why.Failed || list[1] == bad && (!c.why.Remote || c.why.Errno != syscall.ECONNREFUSED) || c.connected > 0 || opened != 1 || r.dialing(c) != 0 {
				t.Errorf("%v: %+v, connected %d times, %d further attempts, %d sockets", list, c.why, c.connected, opened, r.dialing(c))
			}
		}
	})
}
