package server

import (
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// defaultDrainTime is --drain-time-s where it is not set.
const defaultDrainTime = 600 * time.Second

// drain is the state of POST /drain_listeners.
type drain struct {
	since atomic.Int64 // monotonic ns when it began, 0: not draining
	timer event.Timer  // owner: main loop

	stopped, stoppedInbound bool // the listeners, or those of inbound traffic, do not listen any more. owner: main loop
}

// drainer says of each response of one connection manager whether its connection shall end. It may be asked from all workers.
type drainer struct {
	s *Server
	// own tells whether the listener itself drains.
	own    func() bool
	modify bool          // drain_type MODIFY_ONLY: failed health checks end nothing
	since  atomic.Int64  // when own was first true
	spread atomic.Uint32 // adds up shares, so that of every hundred responses as many end as the ramp says, without chance
}

// draining returns hcm's Draining for a listener.
func (s *Server) draining(own func() bool, t listenerv3.Listener_DrainType) func() bool {
	d := &drainer{s: s, own: own, modify: t == listenerv3.Listener_MODIFY_ONLY}
	return d.close
}

// close follows Envoy's drain manager: at once if health checks are failed, otherwise with a probability that grows over the drain
// time (--drain-strategy gradual).
func (d *drainer) close() bool {
	s := d.s
	if s.failed.Load() && !d.modify {
		return true
	}
	start := s.drain.since.Load()
	if start == 0 {
		if !d.own() {
			return false
		}
		if start = d.since.Load(); start == 0 {
			d.since.CompareAndSwap(0, s.cfg.Clock.Mono()|1)
			start = d.since.Load()
		}
	}
	if s.cfg.Options.DrainImmediate || s.drainTime() == 0 {
		return true
	}
	const whole = 10000
	share := uint32(min(max(s.cfg.Clock.Mono()-start, 0)*whole/int64(s.drainTime()), whole))
	return share == whole || share > 0 && d.spread.Add(share)%whole < share
}

func (s *Server) drainTime() time.Duration {
	switch d := s.cfg.Options.DrainTime; {
	case d > 0:
		return d
	case d < 0:
		return 0
	}
	return defaultDrainTime
}

// Drain is POST /drain_listeners. owner: main loop.
func (s *Server) Drain(graceful, inboundOnly, skipExit bool) {
	s.drainListeners(graceful, inboundOnly, skipExit)
}

// drainListeners ends connections little by little and then, or at once, the listening. skipExit: it goes on listening. owner: main
// loop.
func (s *Server) drainListeners(graceful, inboundOnly, skipExit bool) {
	if inboundOnly {
		for _, a := range s.order {
			if a.inbound {
				a.l.Drain()
			}
		}
	} else {
		s.drain.since.CompareAndSwap(0, s.cfg.Clock.Mono()|1)
	}
	switch {
	case skipExit:
	case graceful:
		s.drain.timer.Fn = func() { s.stopListeners(inboundOnly) }
		s.main.Arm(&s.drain.timer, s.drainTime())
	default:
		s.stopListeners(inboundOnly)
	}
}

// stopListeners closes the listening sockets; connections stay. No listener comes or changes from then on.
func (s *Server) stopListeners(inboundOnly bool) {
	s.drain.stopped, s.drain.stoppedInbound = s.drain.stopped || !inboundOnly, true
	for _, a := range s.order {
		if !a.stopped && (a.inbound || !inboundOnly) {
			a.stopped = true
			a.closeSockets()
			s.countListener(stats.ListenerManagerListenerStopped, 1)
		}
	}
}

// listenersStopped tells whether listeners of the kind of p were stopped by /drain_listeners: they do not come back.
func (s *Server) listenersStopped(p *listenerv3.Listener) bool {
	return s.drain.stopped || s.drain.stoppedInbound && p.GetTrafficDirection() == corev3.TrafficDirection_INBOUND
}
