package pool

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// state of a Conn.
const (
	connecting uint8 = iota
	// open: streams may be started if there is room.
	open
	// leaving: no new streams; it closes after the last one.
	leaving
	closed
)

// Conn is one upstream connection of a Pool. It is the handler of its socket and of its codec. owner: worker.
type Conn struct {
	pool       *Pool
	nc         conn.Conn
	codec      codec.ClientConn
	one        h1.Client // the codec of HTTP/1
	next, prev *Conn

	// timer is the connect timeout, then the idle timeout.
	timer event.Timer
	*rare // never nil

	// written are the bytes that went out; mark is what they were when the connection was used after it was idle, and since when it is
	// idle now.
	written, mark uint64
	since         int64

	h1        h1Stream
	streams   uint64 // streams that it has carried
	left      uint32 // streams that it may still carry
	active    int32
	limit     int32 // streams at a time
	paused    int16 // how often its HTTP/1 stream holds reading back
	in        listID
	state     uint8
	timedOut  bool
	connected bool
	gone      bool // the peer sends no more
	broken    bool // a stream ended badly, which ends the connection
	reading   bool // within the codec's Dispatch
	reused    bool // it has served something before it was idle last
	progress  Progress
	protocol  http.Proto
}

// rare is what few connections have; the others share one that is empty.
type rare struct {
	age   *event.Timer // ends the connection's time
	alive *keepalive
}

var (
	_ conn.Handler        = (*Conn)(nil)
	_ conn.Counter        = (*Conn)(nil)
	_ codec.ClientHandler = (*Conn)(nil)
)

// Info is what is known of the connection.
func (c *Conn) Info() *network.ConnInfo { return &c.nc.Info }

// NetConn returns the connection itself.
func (c *Conn) NetConn() *conn.Conn { return &c.nc }

// Host returns the host at the other end.
func (c *Conn) Host() *host.Host { return c.pool.host }

// Protocol returns what the connection speaks.
func (c *Conn) Protocol() http.Proto { return c.protocol }

// Streams counts the streams that the connection has carried, those under way included.
func (c *Conn) Streams() uint64 { return c.streams }

// Active counts the streams under way.
func (c *Conn) Active() int { return int(c.active) }

// open dials a connection, for which a place in the breakers was taken.
func (p *Pool) open() {
	s := p.s
	c := &Conn{pool: p, left: Unlimited, limit: 1, rare: &workerCodecs.Get(p.w).rare}
	c.h1.c = c
	if s.MaxRequests > 0 {
		c.left = s.MaxRequests
	}
	if p.protocol == HTTP2 {
		c.limit = clampStreams(int(s.H2.MaxConcurrentStreams))
	}
	if p.protocol != Auto {
		p.countProtocol(p.protocol == HTTP2)
	}
	p.connecting.push(c)
	p.room += c.capacity()
	opened(p.w, s, p.host)
	c.timer.Fn = c.onTimer
	p.w.Arm(&c.timer, s.ConnectTimeout)
	dial(&c.nc, p.w, s, p.host, transport(p.w, s, p.host, p.protocol.alpn(), p.Names), c)
	c.nc.SetCounter(c)
	c.nc.SetLimit(int(s.BufferLimit))
	// A server may send all it has and close while a slow client makes us pause: its FIN must not overtake its bytes.
	c.nc.EnableHalfClose()
}

// dial connects c to a host. One with several addresses counts a connection for each that is tried, as in Envoy.
func dial(c *conn.Conn, w *event.Worker, s *Settings, h *host.Host, tr conn.Transport, hd conn.Handler) {
	spec := &event.ConnectSpec{Address: h.Current(), Source: s.Source, Options: s.Sockets}
	all := h.Addresses()
	if len(all) == 0 {
		c.Dial(w, spec, tr, hd)
		return
	}
	c.DialAny(w, spec, all, tr, hd, func() {
		w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamCxTotal))
		h.CxTotal.Add(1)
	})
}

func clampStreams(n int) int32 { return int32(min(max(n, 0), 1<<30)) }

// capacity is how many more streams may be started.
func (c *Conn) capacity() int {
	return int(min(int64(c.limit-c.active), int64(c.left)))
}

// attach starts r's stream on c, which is ready.
func (c *Conn) attach(r *Request) {
	p := c.pool
	s, w := p.s, p.w
	if !p.breakers.Requests.TryAcquire() {
		w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamRqActiveOverflow))
		r.CB.OnPoolFailure(http.ResetOverflow, "", p.host)
		return
	}
	if p.breakers.recent != nil {
		p.breakers.Began(w.Now())
	}
	if c.active == 0 {
		w.Disarm(&c.timer)
		c.begun()
	}
	c.active++
	p.active++
	c.streams++
	if c.left != Unlimited {
		if c.left--; c.left == 0 {
			w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamCxMaxRequests))
			c.state = leaving
		}
	}
	if c.active >= c.limit || c.left == 0 {
		c.move(&p.busy)
	}
	w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamRqTotal))
	w.Stats.GaugeAdd(s.Stats.Gauge(stats.ClusterUpstreamRqActive), 1)
	if c.alive != nil {
		c.alive.onStream()
	}
	stream := c.codec.NewStream(r.Decoder, r.Headers)
	if c.protocol != http.HTTP2 {
		c.h1.ClientStream = stream
		stream = &c.h1
	}
	r.CB.OnPoolReady(stream, c)
}

// streamEnded is the other half of attach.
func (c *Conn) streamEnded() {
	p := c.pool
	c.active--
	p.active--
	p.w.Stats.GaugeSub(p.s.Stats.Gauge(stats.ClusterUpstreamRqActive), 1)
	p.breakers.Requests.Release()
}

// OnStreamDone implements codec.ClientHandler.
func (c *Conn) OnStreamDone(reusable bool) {
	if c.active == 0 || c.state == closed {
		return
	}
	c.streamEnded()
	if c.protocol != http.HTTP2 {
		c.h1.end()
		if !reusable {
			c.notReusable()
			return
		}
	}
	if c.state == open && c.pool.leaving() {
		c.state = leaving
	}
	c.settle()
}

// notReusable ends an HTTP/1 connection after its stream.
func (c *Conn) notReusable() {
	if c.gone {
		return // OnEOF closes it
	}
	if c.codec.(*h1.Client).CloseNotified() {
		c.count(stats.ClusterUpstreamCxCloseNotify)
	}
	c.unlist()
	if !c.reading { // otherwise OnData closes it, and knows why
		c.close("")
	}
}

// settle puts c where it belongs after something changed, and serves what waits.
func (c *Conn) settle() {
	p := c.pool
	switch {
	case c.state == open:
		if c.active == 0 {
			c.armIdle()
		}
		if c.capacity() > 0 {
			c.move(&p.ready)
			p.wake()
		} else {
			c.move(&p.busy)
		}
	case c.state == leaving:
		c.move(&p.busy)
		if c.active == 0 && !c.reading {
			c.close("")
		}
	}
}

func (c *Conn) armIdle() {
	c.since = c.pool.w.Now()
	if t := c.pool.s.IdleTimeout; t > 0 {
		c.pool.w.Arm(&c.timer, t)
	}
}

// drain lets no further stream on and closes c after the last one, at once if there is none.
func (c *Conn) drain(reason string) {
	if c.state != open && c.state != leaving {
		return
	}
	c.unlist()
	if c.active == 0 && !c.reading {
		c.close(reason)
		return
	}
	c.pool.wake()
}

func (c *Conn) close(reason string) { c.nc.Close(network.NoFlush, reason) }

// OnGoAway implements codec.ClientHandler.
func (c *Conn) OnGoAway() {
	c.count(stats.ClusterUpstreamCxCloseNotify)
	c.drain("")
}

// OnMaxStreams implements codec.ClientHandler.
func (c *Conn) OnMaxStreams(n int) {
	c.limit = min(clampStreams(n), clampStreams(int(c.pool.s.H2.MaxConcurrentStreams)))
	if c.state == open {
		c.settle()
		c.pool.connect()
	}
}

// OnConnected implements conn.Handler: the connection and its transport are up.
func (c *Conn) OnConnected() {
	p := c.pool
	p.w.Disarm(&c.timer)
	p.room -= c.capacity()
	c.connected, c.state = true, open
	c.nc.Info.Local = p.w.Driver.LocalAddress(c.nc.Handle())
	p.w.Stats.Record(p.s.Stats.Histogram(stats.ClusterUpstreamCxConnectMs), uint64(p.w.Now()-c.nc.Info.Start)/uint64(time.Millisecond))
	c.makeCodec()
	if d := p.s.MaxDuration; d > 0 {
		c.more().age = &event.Timer{Fn: c.onAge}
		p.w.Arm(c.age, d)
	}
	if p.leaving() && p.first == nil {
		c.drain("")
		return
	}
	c.armIdle()
	c.move(&p.ready)
	p.serve()
}

// more returns what few connections have, for a change.
func (c *Conn) more() *rare {
	if c.rare == &workerCodecs.Get(c.pool.w).rare {
		c.rare = &rare{}
	}
	return c.rare
}

// makeCodec makes the codec of a new connection.
func (c *Conn) makeCodec() {
	p := c.pool
	s, w := p.s, p.w
	pools := workerCodecs.Get(w)
	if p.protocol == HTTP2 || p.protocol == Auto && c.nc.Info.Protocol == "h2" {
		c.protocol = http.HTTP2
		o := *s.H2
		o.Stats = stats.Cluster.Block(s.Stats, stats.ClusterHTTP2)
		h := h2.NewClient(c, &c.nc, &pools.h2, &o)
		c.codec = h
		if s.Keepalive > 0 || s.KeepaliveIdle > 0 {
			c.more().alive = newKeepalive(c, h)
		}
		c.limit = min(clampStreams(h.MaxStreams()), clampStreams(int(s.H2.MaxConcurrentStreams)))
		if p.protocol == Auto {
			p.countProtocol(true)
		}
		return
	}
	c.protocol = http.HTTP11
	c.one.Init(c, &c.nc, s.H1, &pools.h1)
	c.codec = &c.one
	c.nc.SetMaxUnread(s.H1.MaxHeadBytes)
	if p.protocol == Auto {
		p.countProtocol(false)
	}
}

// countProtocol counts a connection by its protocol, and makes the codec's stats show.
func (p *Pool) countProtocol(two bool) {
	base, st := p.s.Stats, p.w.Stats
	if two {
		st.Inc(base.Counter(stats.ClusterUpstreamCxHttp2Total))
		st.Inc(stats.Cluster.Block(base, stats.ClusterHTTP2).Counter(stats.HTTP2InUse))
		return
	}
	st.Inc(base.Counter(stats.ClusterUpstreamCxHttp1Total))
	st.Inc(stats.Cluster.Block(base, stats.ClusterHTTP1).Counter(stats.HTTP1InUse))
}

// OnData implements conn.Handler.
func (c *Conn) OnData(b []byte) int {
	had := c.active
	if c.alive != nil {
		c.alive.heard = c.pool.w.Now()
	}
	c.reading = true
	n, err := c.codec.Dispatch(b)
	c.reading = false
	switch {
	case err != nil:
		c.count(stats.ClusterUpstreamCxProtocolError)
		// Bytes after the end of a response spoil the connection, not the response. HTTP/2 has told its streams, and counts them there.
		c.broken = had > 0 && err != error(h1.ErrExtraneous) && c.protocol != http.HTTP2
		if c.protocol == http.HTTP2 {
			c.unlist()
			c.nc.CloseWithLastWords("") // GOAWAY says what was wrong
			return n
		}
		c.close("")
	case c.state == leaving && c.active == 0:
		c.close("")
	}
	return n
}

// OnEOF implements conn.Handler.
func (c *Conn) OnEOF() {
	c.gone = true
	c.OnBroken()
	c.lostStreams()
	c.unlist()
	if h, ok := c.codec.(*h1.Client); !ok || !h.EndsWithConnection() {
		c.broken = c.active > 0
	}
	if err := c.codec.EOF(); err != nil {
		c.count(stats.ClusterUpstreamCxProtocolError)
	}
	c.close("")
}

// unlist makes sure that nobody starts a stream on a connection that is about to go.
func (c *Conn) unlist() {
	c.state = leaving
	c.move(&c.pool.busy)
}

// OnHighWatermark implements conn.Handler.
func (c *Conn) OnHighWatermark() {
	if c.codec != nil {
		c.codec.OnHighWatermark()
	}
}

// OnLowWatermark implements conn.Handler.
func (c *Conn) OnLowWatermark() {
	if c.codec != nil {
		c.codec.OnLowWatermark()
	}
}

// OnRead implements conn.Counter.
func (c *Conn) OnRead(n int) {
	c.pool.w.Stats.Add(c.pool.s.Stats.Counter(stats.ClusterUpstreamCxRxBytesTotal), uint64(n))
}

// OnWritten implements conn.Counter.
func (c *Conn) OnWritten(n int) {
	c.written += uint64(n)
	c.pool.w.Stats.Add(c.pool.s.Stats.Counter(stats.ClusterUpstreamCxTxBytesTotal), uint64(n))
}
