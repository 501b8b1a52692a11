package listener

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// manager is a connection's way through the network filters of its chain: the handler that stands before the terminal one. What a
// filter leaves in the buffer when it stops comes again, to all filters, with what arrives later, as in Envoy.
type manager struct {
	s       *conn.Conn
	cx      connection
	w       *event.Worker
	filters []active
	next    conn.Handler
	buf     buffer.Buffer
	from    int  // the filter that the next bytes begin with, once
	begun   int  // filters whose OnNewConnection was called; one more: the terminal's
	started bool // OnNewConnection of the manager was called
	eof     bool // the peer sends no more
	eofDone bool // the terminal knows
	direct  bool // no filter wants bytes any more
}

// active is one filter of a connection, and its callbacks.
type active struct {
	*event.Worker
	m     *manager
	f     network.ReadFilter
	index int
}

// newManager makes the filters of a connection, and what serves it. Write filters are put into the transport.
func newManager(ch *Chain, c *conn.Conn, tr *conn.Transport) *manager {
	m := &manager{s: c, cx: connection{c}, w: c.Worker(), filters: make([]active, len(ch.Filters))}
	m.buf.Init(&m.w.Bufs)
	var writers []network.WriteFilter
	for i, mk := range ch.Filters {
		f := mk(m.w)
		m.filters[i] = active{Worker: m.w, m: m, f: f, index: i}
		if wf, ok := f.(network.WriteFilter); ok {
			writers = append(writers, wf)
		}
	}
	if len(writers) > 0 {
		*tr = newWriter(writers, *tr)
	}
	m.next = nobody{}
	if ch.Terminal != nil {
		m.next = ch.Terminal.NewHandler(c)
	}
	c.KeepBytes(true)
	return m
}

// OnNewConnection implements Beginner.
func (m *manager) OnNewConnection() {
	m.started = true
	m.begin()
}

// begin calls OnNewConnection of the filters that have not seen it, and of the terminal after the last, until one stops.
func (m *manager) begin() {
	for i := m.begun; i <= len(m.filters); i++ {
		if !m.enter(i) {
			return
		}
	}
}

// enter tells whether filter i (or the terminal, behind the last) may get bytes: it calls OnNewConnection if that was not done.
func (m *manager) enter(i int) bool {
	if i < m.begun {
		return true
	}
	m.begun++
	if i < len(m.filters) {
		a := &m.filters[i]
		return a.f.OnNewConnection(a) == network.Continue && m.s.IsOpen()
	}
	m.settle()
	if n, ok := m.next.(Beginner); ok {
		n.OnNewConnection()
	}
	return m.s.IsOpen()
}

// settle finds out whether the filters have seen enough.
func (m *manager) settle() {
	for i := range m.filters {
		if f, ok := m.filters[i].f.(network.Indifferent); !ok || !f.Indifferent() {
			return
		}
	}
	m.direct = true
	m.s.KeepBytes(false)
}

// OnData implements conn.Handler.
func (m *manager) OnData(b []byte) int {
	if m.direct {
		return m.next.OnData(b)
	}
	if !m.started {
		return 0
	}
	m.buf.Borrow(b)
	m.iterate()
	n := len(b) - m.buf.Len()
	m.buf.Reset()
	return n
}

// iterate gives buf to the filters from m.from on, then to the terminal. A filter that stopped in OnNewConnection gets the bytes all
// the same, and says for itself whether it lets them pass.
func (m *manager) iterate() {
	first := m.from
	m.from = 0
	for i := first; i < len(m.filters); i++ {
		if !m.enter(i) {
			return
		}
		if m.filters[i].f.OnData(&m.buf, false) == network.StopIteration || !m.s.IsOpen() {
			return
		}
	}
	if !m.enter(len(m.filters)) {
		return
	}
	m.settle()
	if m.buf.Len() > 0 {
		m.buf.Drain(m.next.OnData(m.buf.Linearize(m.buf.Len())))
	}
}

// OnEOF implements conn.Handler.
func (m *manager) OnEOF() {
	m.eof = true
	m.passEOF(0)
}

func (m *manager) passEOF(first int) {
	if m.eofDone {
		return
	}
	defer m.buf.Reset()
	for i := first; i < len(m.filters) && !m.direct; i++ {
		if !m.enter(i) || m.filters[i].f.OnData(&m.buf, true) == network.StopIteration || !m.s.IsOpen() {
			return
		}
	}
	if m.enter(len(m.filters)) {
		m.eofDone = true
		m.next.OnEOF()
	}
}

// OnConnected implements conn.Handler.
func (m *manager) OnConnected() { m.event(network.Connected); m.next.OnConnected() }

// OnHighWatermark implements conn.Handler.
func (m *manager) OnHighWatermark() { m.event(network.AboveHighWatermark); m.next.OnHighWatermark() }

// OnLowWatermark implements conn.Handler.
func (m *manager) OnLowWatermark() { m.event(network.BelowLowWatermark); m.next.OnLowWatermark() }

// OnClose implements conn.Handler.
func (m *manager) OnClose(why conn.Closed) {
	if why.Remote {
		m.event(network.RemoteClose)
	} else {
		m.event(network.LocalClose)
	}
	m.next.OnClose(why)
}

func (m *manager) event(e network.ConnEvent) {
	for i := range m.filters {
		m.filters[i].f.OnEvent(e)
	}
}

// OnDrain implements Drainer.
func (m *manager) OnDrain() {
	if d, ok := m.next.(Drainer); ok {
		d.OnDrain()
	}
}

// ContinueReading implements network.ReadCallbacks.
func (a *active) ContinueReading() {
	m := a.m
	if !m.s.IsOpen() || m.direct {
		return
	}
	m.from = a.index + 1
	switch {
	case m.s.Unread() > 0:
		m.s.Redeliver()
	case m.eof:
		m.passEOF(m.from)
	case m.begun == a.index+1:
		m.begin()
	}
}

// Connection implements network.ReadCallbacks.
func (a *active) Connection() network.Connection { return &a.m.cx }

// EnableHalfClose implements network.ReadCallbacks.
func (a *active) EnableHalfClose() { a.m.s.EnableHalfClose() }

// Stats implements network.ReadCallbacks.
func (a *active) Stats() apistats.Recorder { return a.m.w.Stats }

// connection is a conn.Conn as filters see it.
type connection struct{ c *conn.Conn }

func (n *connection) Info() *network.ConnInfo { return &n.c.Info }

func (n *connection) Write(data *buffer.Buffer, end bool) {
	n.c.WriteData(data)
	if end {
		n.c.CloseWrite()
	}
}

func (n *connection) Close(t network.CloseType, reason string) { n.c.Close(t, reason) }
func (n *connection) ReadDisable(disable bool)                 { n.c.ReadDisable(disable) }
func (n *connection) SetBufferLimit(bytes int)                 { n.c.SetLimit(bytes) }
func (n *connection) AboveHighWatermark() bool                 { return n.c.Above() }
