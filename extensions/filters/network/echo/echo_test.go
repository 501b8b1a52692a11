package echo_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/echo"
)

// link is a connection that remembers what was asked of it.
type link struct {
	network.ReadCallbacks
	network.Connection
	written []byte
	ended   bool
	paused  int
}

func (l *link) Write(data *buffer.Buffer, end bool) {
	l.written = data.AppendTo(l.written)
	data.Reset()
	l.ended = l.ended || end
}

func (l *link) ReadDisable(disable bool) {
	if disable {
		l.paused++
	} else {
		l.paused--
	}
}

// callbacks gives the link as the filter's connection.
type callbacks struct {
	network.ReadCallbacks
	l *link
}

func (c callbacks) Connection() network.Connection { return c.l }

func TestEchoSendsBackAndHoldsBack(t *testing.T) {
	mk, err := echo.Extension.New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{}
	f := mk(nil)
	f.OnNewConnection(callbacks{l: l})
	var b buffer.Buffer
	b.Borrow([]byte("hello"))
	f.OnData(&b, false)
	b.Borrow([]byte(" there"))
	f.OnData(&b, true)
	if string(l.written) != "hello there" || !l.ended {
		t.Errorf("wrote %q, ended %v", l.written, l.ended)
	}
	// A peer that does not read is not read from, once, however often it is told.
	for _, e := range []network.ConnEvent{network.AboveHighWatermark, network.AboveHighWatermark} {
		f.OnEvent(e)
	}
	if l.paused != 1 {
		t.Errorf("paused %d times, want 1", l.paused)
	}
	for _, e := range []network.ConnEvent{network.BelowLowWatermark, network.BelowLowWatermark} {
		f.OnEvent(e)
	}
	if l.paused != 0 {
		t.Errorf("paused %d after the buffer drained, want 0", l.paused)
	}
}
