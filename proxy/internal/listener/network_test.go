package listener_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
)

// step is a network filter that a test drives.
type step struct {
	name string
	log  *[]string
	// stopNew and stopData make it wait for ContinueReading; eat makes it take that many bytes first.
	stopNew, stopData bool
	eat               int
	indifferent       bool
	cb                network.ReadCallbacks
}

func (s *step) note(what string) { *s.log = append(*s.log, s.name+" "+what) }

func (s *step) OnNewConnection(cb network.ReadCallbacks) network.FilterStatus {
	s.cb = cb
	s.note("new")
	if s.stopNew {
		return network.StopIteration
	}
	return network.Continue
}

func (s *step) OnData(data *buffer.Buffer, end bool) network.FilterStatus {
	text := string(data.Bytes())
	if end {
		text += "$"
	}
	s.note(text)
	k := min(s.eat, data.Len())
	data.Drain(k)
	s.eat -= k
	if s.stopNew || s.stopData {
		return network.StopIteration
	}
	return network.Continue
}

func (s *step) OnEvent(e network.ConnEvent) {
	if e == network.RemoteClose || e == network.LocalClose {
		s.note("closed")
	}
}

func (s *step) Indifferent() bool { return s.indifferent }

func (s *step) resume() {
	s.stopNew, s.stopData = false, false
	s.cb.ContinueReading()
}

// factories makes chains of given filters.
func factories(list ...network.ReadFilter) (out []listener.NetworkFactory) {
	for _, f := range list {
		out = append(out, func(network.Dispatcher) network.ReadFilter { return f })
	}
	return out
}

func TestNetworkFilters(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b step
		do   func(r *rig, c *peer, a, b *step)
		want []string
		got  string
	}{
		{"all let pass", step{}, step{}, func(r *rig, c *peer, _, _ *step) { c.send("x") },
			[]string{"a new", "b new", "a x", "b x"}, "x"},
		{"one takes bytes", step{eat: 2}, step{}, func(r *rig, c *peer, _, _ *step) { c.send("abcd") },
			[]string{"a new", "b new", "a abcd", "b cd"}, "cd"},
		{"one stops the connection", step{stopNew: true}, step{}, func(r *rig, c *peer, a, _ *step) {
			c.send("x")
			r.settle()
			a.resume()
		}, []string{"a new", "a x", "b new", "b x"}, "x"},
		{"one stops the connection, without bytes", step{stopNew: true}, step{}, func(r *rig, c *peer, a, _ *step) { a.resume() },
			[]string{"a new", "b new"}, ""},
		{"one stops the bytes", step{}, step{stopData: true}, func(r *rig, c *peer, _, b *step) {
			c.send("x")
			r.settle()
			b.resume()
			r.settle()
			c.send("y")
		}, []string{"a new", "b new", "a x", "b x", "a y", "b y"}, "xy"},
		{"what was stopped comes again to all with what is new", step{}, step{stopData: true}, func(r *rig, c *peer, _, b *step) {
			c.send("x")
			r.settle()
			c.send("y")
			r.settle()
			b.resume()
		}, []string{"a new", "b new", "a x", "b x", "a xy", "b xy"}, "xy"},
		{"one takes bytes and stops", step{eat: 1, stopData: true}, step{}, func(r *rig, c *peer, a, _ *step) {
			c.send("xy")
			r.settle()
			a.resume()
		}, []string{"a new", "b new", "a xy", "b y"}, "y"},
		{"indifferent ones see no bytes", step{indifferent: true}, step{indifferent: true}, func(r *rig, c *peer, _, _ *step) { c.send("x") },
			[]string{"a new", "b new"}, "x"},
		{"one that is not indifferent keeps the others busy", step{indifferent: true}, step{}, func(r *rig, c *peer, _, _ *step) { c.send("x") },
			[]string{"a new", "b new", "a x", "b x"}, "x"},
		{"the end passes", step{}, step{}, func(r *rig, c *peer, _, _ *step) {
			c.send("x")
			c.c.CloseWrite()
		}, []string{"a new", "b new", "a x", "b x", "a $", "b $"}, "x$"},
		{"the end waits", step{}, step{stopData: true}, func(r *rig, c *peer, _, b *step) {
			c.c.CloseWrite()
			r.settle()
			b.resume()
		}, []string{"a new", "b new", "a $", "b $"}, "$"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			overDrivers(t, func(t *testing.T, r *rig) {
				var log []string
				a, b := tc.a, tc.b
				a.name, a.log, b.name, b.log = "a", &log, "b", &log
				r.chains(&listener.Chain{Name: "all", Filters: factories(&a, &b), Terminal: &terminal{r: r}})
				r.open(1)
				c := r.dial()
				c.c.EnableHalfClose()
				r.run("it began", func() bool { return a.cb != nil })
				a.cb.EnableHalfClose()
				r.settle()
				tc.do(r, c, &a, &b)
				r.settle()
				if d := cmp.Diff(tc.want, log); d != "" {
					t.Error(d)
				}
				s := r.served[0]
				got := string(s.got)
				if s.eof {
					got += "$"
				}
				if got != tc.got || s.beforeOpen || s.begun != 1 {
					t.Errorf("the terminal got %q, want %q; OnNewConnection %d times", got, tc.got, s.begun)
				}
				log = nil
				listener.CloseAll(r.ws[0])
				r.run("it is gone", func() bool { return s.closed == 1 })
				if d := cmp.Diff([]string{"a closed", "b closed"}, log); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// closer closes the connection as soon as it is asked something.
type closer struct {
	step
	inData bool
}

func (f *closer) OnNewConnection(cb network.ReadCallbacks) network.FilterStatus {
	f.cb = cb
	if !f.inData {
		cb.Connection().Close(network.NoFlush, "denied")
	}
	return network.Continue
}

func (f *closer) OnData(data *buffer.Buffer, _ bool) network.FilterStatus {
	f.cb.Connection().Close(network.NoFlush, "denied")
	return network.Continue
}

// A filter that closes the connection ends it there, whatever it returns.
func TestNetworkFilterCloses(t *testing.T) {
	for _, inData := range []bool{false, true} {
		overDrivers(t, func(t *testing.T, r *rig) {
			var log []string
			b := &step{name: "b", log: &log}
			r.chains(&listener.Chain{Name: "all", Filters: factories(&closer{step: step{name: "a", log: &log}, inData: inData}, b), Terminal: &terminal{r: r}})
			r.open(1)
			c := r.dial()
			c.send("x")
			r.run("it is closed", func() bool { return c.closed })
			if len(r.served[0].got) > 0 {
				t.Errorf("the terminal got %q", r.served[0].got)
			}
			if d := cmp.Diff([]string{"l/all - denied"}, r.logs); d != "" {
				t.Error(d)
			}
		})
	}
}

// upper is a filter that changes what is written.
type upper struct {
	step
	order *[]string
}

func (f *upper) OnWrite(data *buffer.Buffer, end bool) network.FilterStatus {
	if data.Len() > 0 {
		*f.order = append(*f.order, f.name)
		text := strings.ToUpper(string(data.Bytes())) + f.name
		data.Reset()
		data.AppendString(text)
	}
	if end {
		*f.order = append(*f.order, f.name+"$")
	}
	return network.Continue
}

// Write filters are called in reverse order, for what the terminal writes as for what filters write, and see the end.
func TestWriteFilters(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		var log, order []string
		a := &upper{step: step{name: "1", log: &log}, order: &order}
		b := &upper{step: step{name: "2", log: &log}, order: &order}
		r.chains(&listener.Chain{Name: "all", Filters: factories(a, b), Terminal: &terminal{r: r}})
		r.open(1)
		c := r.dial()
		r.run("it is served", func() bool { return len(r.served) == 1 && r.served[0].up == 1 })
		r.served[0].c.Out().AppendString("hello")
		r.run("it came", func() bool { return string(c.got) == "HELLO21" })
		if r.served[0].c.MaySplice() {
			t.Error("bytes may be moved past a filter that wants to see them")
		}
		r.served[0].c.Close(network.FlushWrite, "")
		r.run("it is closed", func() bool { return c.closed })
		if d := cmp.Diff([]string{"2", "1", "2$", "1$"}, order); d != "" {
			t.Error(d)
		}
	})
}
