package listener

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
)

// writer is a transport that shows what is sent to the write filters before the real transport gets it. Filters are called in the
// reverse order of the chain. What a stopping filter leaves stays with the writer until more is sent.
type writer struct {
	filters []network.WriteFilter
	inner   conn.Transport // nil: plain bytes
	ended   bool
}

func newWriter(list []network.WriteFilter, inner conn.Transport) *writer {
	w := &writer{inner: inner}
	for i := len(list) - 1; i >= 0; i-- {
		w.filters = append(w.filters, list[i])
	}
	return w
}

// Start implements conn.Transport.
func (w *writer) Start(c *conn.Conn) {
	if w.inner != nil {
		w.inner.Start(c)
		return
	}
	c.Ready()
}

// Feed implements conn.Transport.
func (w *writer) Feed(c *conn.Conn, b []byte) {
	if w.inner != nil {
		w.inner.Feed(c, b)
		return
	}
	c.Deliver(b)
}

// EOF implements conn.Transport.
func (w *writer) EOF(c *conn.Conn) {
	if w.inner != nil {
		w.inner.EOF(c)
	}
}

// Seal implements conn.Transport.
func (w *writer) Seal(c *conn.Conn, plain, wire *buffer.Buffer) {
	if !w.pass(plain, false) {
		return
	}
	if w.inner != nil {
		w.inner.Seal(c, plain, wire)
		return
	}
	wire.Move(plain)
}

func (w *writer) pass(plain *buffer.Buffer, end bool) bool {
	for _, f := range w.filters {
		if f.OnWrite(plain, end) == network.StopIteration {
			return false
		}
	}
	return true
}

// CloseNotify implements conn.Transport.
func (w *writer) CloseNotify(c *conn.Conn) bool {
	if !w.ended {
		w.ended = true
		var none buffer.Buffer
		none.Init(&c.Worker().Bufs)
		w.pass(&none, true)
		if none.Len() > 0 {
			c.Out().Move(&none)
			return true
		}
	}
	return w.inner != nil && w.inner.CloseNotify(c)
}

// Destroy implements conn.Transport.
func (w *writer) Destroy() {
	if w.inner != nil {
		w.inner.Destroy()
	}
}
