package hcm

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// ended closes the connection after its last stream. A client that has sent all of its request, and learns of the end later than its
// bytes were read, sends nothing that a reset could be the answer to: then there is no delay.
func (h *Conn) ended(s *Stream) {
	if !h.isH2 && s.closeAfter && !h.dispatching && (s.requestDone || s.untilClose) {
		h.closing = true
		h.c.Close(network.FlushWrite, "")
		return
	}
	h.close("")
}

func (h *Conn) close(reason string) {
	if h.closing {
		return
	}
	h.closing = true
	h.c.CloseDelayed(reason, h.cfg.DelayedCloseTimeout)
}

// closeNow ends a connection that was idle.
func (h *Conn) closeNow(reason string) {
	h.closing = true
	h.c.Close(network.FlushWrite, reason)
}

// drain lets no further requests come: HTTP/2 says so by GOAWAY, HTTP/1 by "connection: close" on its next response.
func (h *Conn) drain() {
	if h.draining {
		return
	}
	h.draining = true
	if h.isH2 && h.codec != nil {
		h.codec.GoAway(false)
	}
}

func (h *Conn) armIdle() {
	if h.cfg.IdleTimeout > 0 {
		h.w.Arm(&h.idle, h.cfg.IdleTimeout)
	}
}

// onIdle: there was no request for so long. A client that has sent none yet need not be told; others may be sending one right now.
func (h *Conn) onIdle() {
	if h.active > 0 || h.closing {
		return
	}
	h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxIdleTimeout))
	if h.codec == nil {
		h.closeNow("on_idle_timeout")
		return
	}
	h.startDrain()
}

func (h *Conn) onMaxDuration() {
	if h.closing {
		return
	}
	h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxMaxDurationReached))
	switch {
	case h.codec == nil:
		h.c.StreamInfo().Flags.Set(stream.DurationTimeout)
		h.closeNow("max_connection_duration_reached")
	case h.cfg.SoftMaxDuration && !h.isH2:
		if !h.soft {
			h.soft = true
			h.w.Stats.GaugeAdd(h.cfg.Stats.Gauge(stats.HCMDownstreamCxHttp1SoftDrain), 1)
		}
	default:
		h.startDrain()
	}
}

// startDrain begins Envoy's drain sequence: HTTP/2 is told that there will be a GOAWAY, HTTP/1 gets "connection: close" on its next
// response; after the drain timeout no further request is taken and an idle connection ends.
func (h *Conn) startDrain() {
	if h.noticed || h.draining || h.closing {
		return
	}
	h.noticed = true
	if h.isH2 && h.codec != nil {
		h.codec.GoAway(true)
	}
	h.drainTimer = &event.Timer{Fn: func() {
		h.drain()
		if h.active == 0 {
			h.close("")
		}
	}}
	h.w.Arm(h.drainTimer, max(h.drainTime(), 1))
}

// drainTime is the drain timeout with its jitter, which keeps many connections from closing at once.
func (h *Conn) drainTime() time.Duration {
	d := h.cfg.DrainTimeout
	if j := h.cfg.DrainJitter; j > 0 {
		if most := uint64(d/time.Millisecond) * j / 1e6; most > 0 {
			d += time.Duration(h.w.Rand.Uint64()%most) * time.Millisecond
		}
	}
	return d
}

// The bounds on streams that a client resets before there is an answer, and how they are changed (CVE-2023-44487).
const (
	prematureKey       = "overload.premature_reset_total_stream_count"
	prematureTotal     = 500
	prematureLifeKey   = "overload.premature_reset_min_stream_lifetime_seconds"
	prematureLifetime  = 1
	prematureReasonWhy = "too_many_premature_resets"
)

// over counts a request that has ended.
func (h *Conn) over(s *Stream) {
	h.done++
	if s.inf.Code == 0 && s.inf.End-s.inf.Start <= int64(h.cfg.uint(prematureLifeKey, prematureLifetime))*int64(time.Second) {
		h.premature++
	}
}

// checkPremature ends a connection of which most requests were reset by the client right away.
func (h *Conn) checkPremature() {
	if h.closing || h.premature == 0 {
		return
	}
	limit := h.cfg.uint(prematureKey, prematureTotal)
	if h.done < limit {
		// Even if all others to come up to the limit were good, half of them would be bad.
		if h.premature*2 < limit {
			return
		}
	} else if h.premature*2 < h.done {
		return
	}
	h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamRqTooManyPrematureResets))
	h.closing = true
	h.destroyedBusy(false)
	h.c.Close(network.Abort, prematureReasonWhy)
}

// rejectFragment is the switch for paths with a fragment.
const rejectFragment = "envoy.reloadable_features.http_reject_path_with_fragment"

func (c *Config) feature(name string, def bool) bool {
	if c.Runtime == nil {
		return def
	}
	return c.Runtime.Bool(name, def)
}

func (c *Config) uint(key string, def uint64) uint64 {
	if c.Runtime == nil {
		return def
	}
	return c.Runtime.Uint(key, def)
}
