package sim_test

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// Bytes go through a pipe in order; an empty and a full one, and an empty socket, say EAGAIN.
func TestSplice(t *testing.T) {
	w := sim.NewWorld(1)
	d := w.SplicingDriver("worker_0")
	s := d.(event.Splicer)
	l, err := d.Listen(&event.ListenSpec{Address: port80})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{sent: bytes.Repeat([]byte("0123456789"), 1000)}
	w.Dial(port80, c)
	run(t, w, func() bool { return c.open == 1 })
	pause(t, w, 1e9)
	h, _, e := d.Accept(l)
	if e != 0 {
		t.Fatal(e)
	}
	p, e := s.NewPipe(4096)
	if e != 0 {
		t.Fatal(e)
	}
	if _, e := s.SpliceOut(p, h, 1, false); e != syscall.EAGAIN {
		t.Errorf("out of an empty pipe: %v", e)
	}
	if n, e := s.SpliceIn(h, p, 1<<20); n != 4096 || e != 0 {
		t.Errorf("in: %d, %v", n, e)
	}
	if _, e := s.SpliceIn(h, p, 1); e != syscall.EAGAIN {
		t.Errorf("into a full pipe: %v", e)
	}
	for total := 0; total < len(c.sent); {
		k, e := s.SpliceOut(p, h, 3000, false)
		if e != 0 && e != syscall.EAGAIN {
			t.Fatal(e)
		}
		total += k
		pause(t, w, 1e6)
		_, _ = s.SpliceIn(h, p, 1<<20)
	}
	if n, e := s.SpliceIn(h, p, 1); n != 0 || e != 0 {
		t.Errorf("at the end of the stream: %d, %v", n, e)
	}
	s.ClosePipe(p)
	s.ClosePipe(p)
	if w.Pipes() != 0 {
		t.Errorf("%d pipes are open", w.Pipes())
	}
	d.CloseHandle(h, false)
	run(t, w, func() bool { return c.closed > 0 })
	if !bytes.Equal(c.got, c.sent) {
		t.Errorf("%d of %d bytes came back", len(c.got), len(c.sent))
	}
}
