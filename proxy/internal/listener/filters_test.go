package listener_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
)

// probe is a listener filter that a test drives.
type probe struct {
	name string
	log  *[]string
	// need is how many bytes it wants to see; it consumes the first take of them. 0: none.
	need, take int
	// stop makes OnAccept wait for ContinueListenerFilter.
	stop bool
	// refuse closes the connection instead of going on.
	refuse bool
	cb     network.ListenerCallbacks
}

func (p *probe) OnAccept(cb network.ListenerCallbacks) network.FilterStatus {
	*p.log = append(*p.log, p.name+" accept")
	p.cb = cb
	if p.need > 0 || p.stop {
		return network.StopIteration
	}
	return network.Continue
}

func (p *probe) OnData(b []byte) network.FilterStatus {
	*p.log = append(*p.log, p.name+" "+string(b))
	if len(b) < p.need {
		return network.StopIteration
	}
	if p.refuse {
		p.cb.ContinueListenerFilter(false)
		return network.StopIteration
	}
	p.cb.Consume(p.take)
	return network.Continue
}

func (p *probe) MaxReadBytes() int { return p.need }
func (p *probe) OnClose()          { *p.log = append(*p.log, p.name+" close") }

func with(list ...*probe) (out []listener.Filter) {
	for _, p := range list {
		out = append(out, listener.Filter{New: func(network.Dispatcher) network.ListenerFilter { return p }})
	}
	return out
}

func TestFiltersSeeAndConsume(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		var log []string
		r.l.Filters = with(&probe{name: "a", log: &log}, &probe{name: "b", log: &log, need: 4, take: 2}, &probe{name: "c", log: &log, need: 3})
		r.open(1)
		c := r.dial()
		r.settle()
		r.want(map[string]string{"downstream_pre_cx_active": "1", "downstream_cx_total": "0"})
		for _, part := range []string{"ab", "cd", "e", "f"} {
			c.send(part)
			r.settle()
		}
		if len(r.served) != 1 {
			t.Fatalf("served %d times, %v", len(r.served), log)
		}
		want := []string{"a accept", "b accept", "b ab", "b abcd", "c accept", "c cd", "c cde"}
		if d := cmp.Diff(want, log); d != "" {
			t.Error(d)
		}
		if got := string(r.served[0].got); got != "cdef" {
			t.Errorf("the chain got %q", got)
		}
		r.want(map[string]string{"downstream_pre_cx_active": "0", "downstream_cx_total": "1"})
	})
}

// All that several filters and the chain want may come at once.
func TestFiltersShareOneRead(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		var log []string
		r.l.Filters = with(&probe{name: "a", log: &log, need: 2, take: 2}, &probe{name: "b", log: &log, need: 2, take: 1})
		r.open(1)
		r.dial().send("abcdef")
		r.run("it is served", func() bool { return len(r.served) == 1 && string(r.served[0].got) == "def" })
		if d := cmp.Diff([]string{"a accept", "a abcdef", "b accept", "b cdef"}, log); d != "" {
			t.Error(d)
		}
	})
}

func TestFilterWaits(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		var log []string
		p := &probe{name: "a", log: &log, stop: true}
		r.l.Filters = with(p, &probe{name: "b", log: &log, need: 3})
		r.open(1)
		r.dial().send("abc")
		r.settle()
		if len(r.served) > 0 || len(log) != 1 {
			t.Fatalf("went on without being told: %v", log)
		}
		p.cb.ContinueListenerFilter(true)
		r.run("it is served", func() bool { return len(r.served) == 1 && string(r.served[0].got) == "abc" })
		p.cb.ContinueListenerFilter(true) // late, and without effect
		r.settle()
		if d := cmp.Diff([]string{"a accept", "b accept", "b abc"}, log); d != "" {
			t.Error(d)
		}
	})
}

func TestFilterRefuses(t *testing.T) {
	for _, late := range []bool{false, true} {
		overDrivers(t, func(t *testing.T, r *rig) {
			var log []string
			p := &probe{name: "a", log: &log, stop: late, refuse: true}
			if !late {
				p.need = 1
			}
			r.l.Filters = with(p)
			r.open(1)
			c := r.dial()
			c.send("x")
			r.settle()
			if late {
				p.cb.ContinueListenerFilter(false)
			}
			r.run("it is closed", func() bool { return c.closed })
			if len(r.served) > 0 {
				t.Error("it was served")
			}
			r.want(map[string]string{"downstream_pre_cx_active": "0", "downstream_cx_total": "0"})
		})
	}
}

func TestFilterDisabled(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		var log []string
		r.l.Filters = with(&probe{name: "a", log: &log, need: 100}, &probe{name: "b", log: &log})
		r.l.Filters[0].Disabled = func(i *network.ConnInfo) bool { return i.Local == r.at }
		r.open(1)
		r.dial()
		r.run("it is served", func() bool { return len(r.served) == 1 })
		if d := cmp.Diff([]string{"b accept"}, log); d != "" {
			t.Error(d)
		}
	})
}

func TestFiltersTimeout(t *testing.T) {
	for _, goOn := range []bool{false, true} {
		overDrivers(t, func(t *testing.T, r *rig) {
			var log []string
			r.l.Filters = with(&probe{name: "a", log: &log, need: 100})
			r.l.FiltersTimeout, r.l.ContinueOnTimeout = time.Minute, goOn
			r.open(1)
			c := r.dial()
			c.send("abc")
			r.settle()
			r.clock.ahead += 59 * time.Second
			r.settle()
			if c.closed || len(r.served) > 0 {
				t.Fatal("ended before its time")
			}
			r.clock.ahead += 2 * time.Second
			if goOn {
				r.run("it is served", func() bool { return len(r.served) == 1 && string(r.served[0].got) == "abc" })
			} else {
				r.run("it is closed", func() bool { return c.closed })
				if !c.why.Reset {
					t.Error("bytes that nobody took should make it a reset")
				}
			}
			r.want(map[string]string{"downstream_pre_cx_timeout": "1", "downstream_pre_cx_active": "0"})
		})
	}
}

func TestPeerLeavesDuringFilters(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		var log []string
		r.l.Filters = with(&probe{name: "a", log: &log, need: 100})
		r.open(1)
		c := r.dial()
		c.send("abc")
		r.settle()
		c.c.Close(network.FlushWrite, "")
		r.run("it is gone", func() bool { return r.l.Active() == 0 })
		r.want(map[string]string{"downstream_listener_filter_remote_close": "1", "downstream_pre_cx_active": "0"})
		if d := cmp.Diff([]string{"a accept", "a abc", "a close"}, log); d != "" {
			t.Error(d)
		}
		c = r.dial()
		r.settle()
		c.c.Close(network.Abort, "")
		r.run("the reset was noticed", func() bool { return r.l.Active() == 0 })
		r.want(map[string]string{"downstream_listener_filter_error": "1", "downstream_listener_filter_remote_close": "1"})
	})
}
