package listener

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// filtering is a connection's way through the listener filters, one after the other. It is the connection's handler as long as it
// lasts, and what the filters get as their callbacks. What arrives stays in the connection unless a filter consumes it.
type filtering struct {
	*event.Worker
	s     *session
	cur   network.ListenerFilter // nil between filters
	at    int                    // filters that are through
	timer event.Timer
	// data is what has arrived, during OnData; used is how much of it was consumed.
	data    []byte
	used    int
	inData  bool
	inCall  bool // a filter is on the stack
	verdict bool // ContinueListenerFilter was called from there
	waiting bool // the timer runs
	over    bool
}

// filter runs the listener filters of a connection, then chooses its chain.
func (s *session) filter() {
	f := &filtering{Worker: s.w(), s: s}
	f.timer.Fn = f.onTimeout
	s.Handler = f
	s.c.SetHandler(s)
	s.w().Stats.GaugeAdd(s.l.Stats.Gauge(stats.ListenerDownstreamPreCxActive), 1)
	f.run()
}

// run goes on with the filters until one waits.
func (f *filtering) run() {
	for !f.over && f.at < len(f.s.l.Filters) {
		cfg := &f.s.l.Filters[f.at]
		if f.cur == nil {
			if cfg.Disabled != nil && cfg.Disabled(&f.s.c.Info) {
				f.at++
				continue
			}
			f.cur = cfg.New(f.Worker)
			if !f.call(func() network.FilterStatus { return f.cur.OnAccept(f) }) {
				continue
			}
		}
		if f.over || f.cur.MaxReadBytes() == 0 {
			f.wait(false)
			return
		}
		if len(f.data) == 0 {
			f.wait(true)
			return
		}
		if f.call(func() network.FilterStatus { return f.cur.OnData(f.data) }) {
			f.wait(true)
			return
		}
	}
	if !f.over {
		f.finish()
	}
}

// call calls a filter and tells whether to stay with it.
func (f *filtering) call(do func() network.FilterStatus) (stay bool) {
	f.inCall, f.verdict = true, false
	st := do()
	f.inCall = false
	if f.over {
		return true
	}
	if st == network.StopIteration && !f.verdict {
		return true
	}
	f.cur = nil
	f.at++
	return false
}

// wait is called when nothing can be done now: for bytes, or for the filter.
func (f *filtering) wait(forBytes bool) {
	if f.over {
		return
	}
	s := f.s
	if !f.waiting {
		f.waiting = true
		if t := s.l.FiltersTimeout; t > 0 {
			f.Arm(&f.timer, t)
		}
	}
	if !s.started {
		s.started = true
		_ = s.c.Start(s) // an error was told by OnClose
		return
	}
	if forBytes && !f.inData && s.c.Unread() > 0 {
		s.c.Redeliver()
	}
}

// finish ends the filters' time. The chain follows outside of OnData, since bytes that the filters have seen go to it.
func (f *filtering) finish() {
	f.end()
	if f.inData {
		f.Again(f)
		return
	}
	f.s.choose()
}

// Run implements event.Runner.
func (f *filtering) Run() {
	if f.s.c.IsOpen() {
		f.s.choose()
	}
}

func (f *filtering) end() {
	f.over = true
	f.Remove(&f.timer)
	f.Worker.Stats.GaugeSub(f.s.l.Stats.Gauge(stats.ListenerDownstreamPreCxActive), 1)
}

func (f *filtering) onTimeout() {
	if f.over {
		return
	}
	f.s.l.count(f.Worker, stats.ListenerDownstreamPreCxTimeout)
	if f.s.l.ContinueOnTimeout {
		f.finish()
		return
	}
	f.s.drop()
}

// OnConnected implements conn.Handler.
func (f *filtering) OnConnected() {}

// OnData implements conn.Handler.
func (f *filtering) OnData(b []byte) int {
	if f.over {
		return 0
	}
	f.data, f.used, f.inData = b, 0, true
	f.run()
	f.data, f.inData = nil, false
	return f.used
}

// OnEOF implements conn.Handler: the connection closes right after.
func (f *filtering) OnEOF() {}

// OnHighWatermark implements conn.Handler.
func (f *filtering) OnHighWatermark() {}

// OnLowWatermark implements conn.Handler.
func (f *filtering) OnLowWatermark() {}

// OnClose implements conn.Handler.
func (f *filtering) OnClose(why conn.Closed) {
	if f.over {
		return
	}
	switch {
	case why.Remote && why.Reset:
		f.s.l.count(f.Worker, stats.ListenerDownstreamListenerFilterError)
	case why.Remote:
		f.s.l.count(f.Worker, stats.ListenerDownstreamListenerFilterRemoteClose)
	}
	f.end()
	if f.cur != nil {
		f.cur.OnClose()
	}
}

// Info implements network.ListenerCallbacks.
func (f *filtering) Info() *network.ConnInfo { return &f.s.c.Info }

// Stats implements network.ListenerCallbacks.
func (f *filtering) Stats() apistats.Recorder { return f.Worker.Stats }

// Consume implements network.ListenerCallbacks. It is for OnData only.
func (f *filtering) Consume(n int) {
	n = min(n, len(f.data))
	f.data = f.data[n:]
	f.used += n
}

// ContinueListenerFilter implements network.ListenerCallbacks.
func (f *filtering) ContinueListenerFilter(ok bool) {
	switch {
	case f.over:
	case !ok:
		f.s.drop()
	case f.inCall:
		f.verdict = true
	case f.cur != nil:
		f.cur = nil
		f.at++
		f.run()
	}
}

// OriginalDestination implements network.ListenerCallbacks.
func (f *filtering) OriginalDestination() (network.Address, bool) {
	d, ok := f.Driver.(event.OriginalDestiner)
	if !ok {
		return network.Address{}, false
	}
	if f.s.l.Spec.Transparent {
		return f.s.c.Info.DirectLocal(), true
	}
	a, e := d.OriginalDestination(f.s.c.Handle())
	return a, e == 0
}
