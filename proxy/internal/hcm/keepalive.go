package hcm

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Keepalive says how clients on HTTP/2 are asked whether they are still there (connection_keepalive).
type Keepalive struct {
	// Interval is the time between an answer and the next ping.
	Interval time.Duration
	// Timeout is how long an answer may take.
	Timeout time.Duration
	// Jitter lengthens Interval by up to so many percent.
	Jitter float64
}

func keepaliveOf(k *corev3.KeepaliveSettings) *Keepalive {
	if k.GetInterval() == nil {
		return nil // connection_idle_interval is for those who open streams
	}
	out := &Keepalive{Interval: k.Interval.AsDuration(), Timeout: k.GetTimeout().AsDuration(), Jitter: 15}
	if k.IntervalJitter != nil {
		out.Jitter = k.IntervalJitter.Value
	}
	return out
}

// pinger asks one client. owner: the connection's worker.
type pinger struct {
	h       *Conn
	cfg     *Keepalive
	h2      *h2.Server
	timer   event.Timer
	pending bool // a ping was sent and not answered
}

func newPinger(h *Conn, cfg *Keepalive, c *h2.Server) *pinger {
	p := &pinger{h: h, cfg: cfg, h2: c}
	p.timer.Fn = p.onTimer
	c.SetOnPong(p.onPong)
	p.next()
	return p
}

// next waits for the time of the next ping.
func (p *pinger) next() {
	d := p.cfg.Interval
	if spread := uint64(float64(d/time.Millisecond) * p.cfg.Jitter / 100); spread > 0 {
		d += time.Duration(p.h.w.Rand.Uint64()%spread) * time.Millisecond
	}
	p.h.w.Arm(&p.timer, d)
}

func (p *pinger) ping() {
	p.pending = true
	p.h2.SendPing(uint64(p.h.w.Now()))
	p.h.w.Arm(&p.timer, max(p.cfg.Timeout, 1))
}

func (p *pinger) onPong(uint64) {
	if p.pending {
		p.pending = false
		p.h.w.Disarm(&p.timer)
		p.next()
	}
}

func (p *pinger) onTimer() {
	if !p.pending {
		p.ping()
		return
	}
	h := p.h
	if h.closing {
		return
	}
	h.w.Stats.Inc(h.cfg.H2Stats.Counter(stats.HTTP2KeepaliveTimeout))
	h.closing = true
	h.c.Close(network.NoFlush, "http2_ping_timeout")
}
