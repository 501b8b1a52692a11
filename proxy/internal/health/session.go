package health

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// cause of a failure, as Envoy counts them.
type cause uint8

const (
	byAnswer  cause = iota // the host's answer
	byRequest              // what it said in an answer to somebody else
	noAnswer               // no answer
	tooLate                // none in time
)

// inquiry asks one host. It tells the session of each outcome by succeeded or failedCheck.
type inquiry interface {
	// ask begins one check.
	ask()
	// giveUp ends the one that is under way, as too late: nothing is told of it any more.
	giveUp()
	// close ends the connection and tells nothing.
	close()
}

// session is the checks of one host. owner: main loop.
type session struct {
	c       *Checker
	h       *host.Host
	inquiry inquiry
	// timer is the time of the next check, or the timeout of the one that is under way.
	timer     event.Timer
	good, bad uint32
	asking    bool
	first     bool // no result so far
	over      bool
}

func (s *session) begin() {
	o := s.c.Options
	if o.InitialJitter == 0 {
		starters.Get(s.c.Worker).start(s)
		return
	}
	s.c.Worker.Arm(&s.timer, s.c.spread(0, o.InitialJitter))
}

func (s *session) end() {
	s.over = true
	s.h.SetFlag(host.Checked, false)
	s.c.Worker.Remove(&s.timer)
	s.inquiry.close()
}

func (s *session) onTimer() {
	if !s.asking {
		starters.Get(s.c.Worker).start(s)
		return
	}
	s.asking = false
	s.inquiry.giveUp()
	s.failedCheck(tooLate, verdict{})
}

func (s *session) check() {
	s.asking = true
	s.c.inc(stats.HealthCheckAttempt)
	s.c.Worker.Arm(&s.timer, s.c.Options.Timeout)
	s.inquiry.ask()
}

// succeeded is the outcome of a check.
func (s *session) succeeded(degraded bool) {
	if s.over {
		return
	}
	c, h := s.c, s.h
	s.asking, s.bad = false, 0
	var r Result
	pending := false
	if h.Has(host.FailedActiveHC) {
		// The first result counts alone: a proxy that starts does not wait for more.
		if s.good++; s.first || s.good == c.Options.Healthy {
			h.SetFlag(host.FailedActiveHC|host.ActiveHCTimeout|host.ExcludedViaImmediateHCFail, false)
			s.good = 0
			c.gauge(stats.HealthCheckHealthy, 1)
			r.Changed = true
			s.added()
		} else {
			pending = true
		}
	}
	if c.Options.LogSuccess && !r.Changed {
		s.isWell()
	}
	if h.SetFlag(host.PendingActiveHC, false) {
		r.Changed = true
	}
	if h.SetFlag(host.DegradedActiveHC, degraded) {
		r.Changed = r.Changed || !pending
		s.degradedNow(degraded)
		if degraded {
			c.gauge(stats.HealthCheckDegraded, 1)
		} else {
			c.gauge(stats.HealthCheckDegraded, -1)
		}
	}
	c.inc(stats.HealthCheckSuccess)
	s.told(r)
	if !s.over {
		c.Worker.Arm(&s.timer, c.after(true, pending && !r.Changed))
	}
}

// failedCheck is the outcome of a check, too.
func (s *session) failedCheck(why cause, v verdict) {
	if s.over {
		return
	}
	s.asking = false
	pending := s.failed(why, v)
	if !s.over {
		s.c.Worker.Arm(&s.timer, s.c.after(false, pending))
	}
}

// failed notes that the host is not well, and tells whether more failures are needed for a change.
func (s *session) failed(why cause, v verdict) (pending bool) {
	c, h := s.c, s.h
	s.good = 0
	var r Result
	if !h.Has(host.FailedActiveHC) {
		// An answer that says no counts at once. What may be the network's fault, or is said to pass, has to come several times.
		direct := (why == byAnswer || why == byRequest) && !v.retriable
		if s.bad++; direct || s.bad == c.Options.Unhealthy {
			h.SetFlag(host.FailedActiveHC, true)
			s.bad = 0
			c.gauge(stats.HealthCheckHealthy, -1)
			r.Changed, r.Failed = true, true
			s.ejected(why, v.status)
		} else {
			pending = true
		}
	}
	if h.Has(host.FailedActiveHC) {
		h.SetFlag(host.ActiveHCTimeout, why == tooLate)
	}
	if h.SetFlag(host.PendingActiveHC, false) {
		r.Changed, pending = true, false
	}
	if s.first || c.Options.LogFailures {
		s.notWell(why, v.status)
	}
	c.inc(stats.HealthCheckFailure)
	switch why {
	case noAnswer, tooLate:
		c.inc(stats.HealthCheckNetworkFailure)
	case byRequest:
		c.inc(stats.HealthCheckPassiveFailure)
	}
	s.told(r)
	return pending
}

// told tells the owner of a result.
func (s *session) told(r Result) {
	if s.first {
		s.first, r.First = false, true
		s.c.fresh--
	}
	s.c.OnResult(s.h, r)
}
