package pool

import (
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// keepalive finds out whether the peer of an HTTP/2 connection is still there (connection_keepalive).
type keepalive struct {
	c       *Conn
	h2      *h2.Client
	timer   event.Timer
	heard   int64 // when bytes came last
	pending bool  // a ping was sent and not answered
}

func newKeepalive(c *Conn, h *h2.Client) *keepalive {
	k := &keepalive{c: c, h2: h, heard: c.pool.w.Now()}
	k.timer.Fn = k.onTimer
	h.SetOnPong(k.onPong)
	k.next()
	return k
}

// next waits for the time of the next ping.
func (k *keepalive) next() {
	s, w := k.c.pool.s, k.c.pool.w
	d := s.Keepalive
	if d == 0 {
		return
	}
	if spread := uint64(d) * uint64(s.KeepaliveJitter) / 100; spread > 0 {
		d += time.Duration(w.Rand.Uint64() % spread)
	}
	w.Arm(&k.timer, d)
}

// onStream pings first if nothing was heard for long, so that a dead connection is found out soon.
func (k *keepalive) onStream() {
	s := k.c.pool.s
	if s.KeepaliveIdle > 0 && !k.pending && k.c.pool.w.Now()-k.heard >= int64(s.KeepaliveIdle) {
		k.ping()
	}
}

func (k *keepalive) ping() {
	k.pending = true
	k.h2.SendPing(uint64(k.c.pool.w.Now()))
	k.c.pool.w.Arm(&k.timer, k.c.pool.s.KeepaliveTimeout)
}

func (k *keepalive) onPong(uint64) {
	if k.pending {
		k.pending = false
		k.c.pool.w.Disarm(&k.timer)
		k.next()
	}
}

func (k *keepalive) onTimer() {
	if !k.pending {
		k.ping()
		return
	}
	p := k.c.pool
	p.w.Stats.Inc(stats.Cluster.Block(p.s.Stats, stats.ClusterHTTP2).Counter(stats.HTTP2KeepaliveTimeout))
	k.c.close("http2_ping_timeout")
}
