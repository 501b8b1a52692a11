package fm_test

import (
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
)

// TestAdded: data and trailers that filters add in each callback where they may.
func TestAdded(t *testing.T) {
	for name, c := range map[string]struct {
		shape    shape
		headers  func(p *probe, r *rig, end bool) filter.HeadersStatus
		data     func(p *probe, r *rig, b *buffer.Buffer, end bool) filter.DataStatus
		trailers func(p *probe, r *rig) filter.TrailersStatus
		then     func(p *probe, r *rig)
		body     string
		tail     []string
	}{
		"a body for a head": {
			headers: func(p *probe, r *rig, _ bool) filter.HeadersStatus {
				p.CB.AddDecodedData(r.owned("new"), false)
				return filter.HeadersContinue
			}, body: "new",
		},
		"a body for a head, the end later": {
			headers: func(p *probe, r *rig, _ bool) filter.HeadersStatus {
				p.CB.AddDecodedData(r.owned("new"), false)
				return filter.HeadersContinueAndDontEndStream
			},
			then: func(p *probe, r *rig) {
				if got := r.term.dec.String(); got != `hd heads=1 ends=0 body="new" trailers=[]` {
					t.Error(got)
				}
				p.CB.InjectDecodedData(r.owned("er"), true)
			}, body: "newer",
		},
		"the end by continuing": {
			headers: func(*probe, *rig, bool) filter.HeadersStatus { return filter.HeadersContinueAndDontEndStream },
			then:    func(p *probe, _ *rig) { p.CB.ContinueDecoding() },
		},
		"trailers for a head": {
			headers: func(p *probe, _ *rig, _ bool) filter.HeadersStatus {
				p.CB.AddDecodedTrailers().AddName("b", "2")
				return filter.HeadersContinue
			}, tail: []string{"b=2"},
		},
		"a body and trailers for a head": {
			headers: func(p *probe, r *rig, _ bool) filter.HeadersStatus {
				p.CB.AddDecodedData(r.owned("new"), false)
				p.CB.AddDecodedTrailers().AddName("b", "2")
				return filter.HeadersContinue
			}, body: "new", tail: []string{"b=2"},
		},
		"trailers while the head is held": {
			headers: func(*probe, *rig, bool) filter.HeadersStatus { return filter.HeadersStopIteration },
			then: func(p *probe, _ *rig) {
				p.CB.AddDecodedTrailers().AddName("b", "2")
				p.CB.ContinueDecoding()
			}, tail: []string{"b=2"},
		},
		"injected while the head is held": {
			headers: func(*probe, *rig, bool) filter.HeadersStatus { return filter.HeadersStopIteration },
			then: func(p *probe, r *rig) {
				p.CB.InjectDecodedData(r.owned("new"), false)
				p.CB.AddDecodedData(r.owned("er"), false)
				p.CB.ContinueDecoding()
			}, body: "newer",
		},
		"injected in the head's callback": {
			headers: func(p *probe, r *rig, _ bool) filter.HeadersStatus {
				p.CB.InjectDecodedData(r.owned("new"), true)
				return filter.HeadersStopIteration
			}, then: func(p *probe, _ *rig) { p.CB.ContinueDecoding() }, body: "new",
		},
		"added before what was left": {
			shape: shape{chunks: []string{"abc"}},
			data: func(p *probe, r *rig, _ *buffer.Buffer, _ bool) filter.DataStatus {
				p.CB.AddDecodedData(r.owned("+"), false)
				return filter.DataContinue
			}, body: "+abc",
		},
		"all of the body seen at its end": {
			shape: shape{chunks: []string{"abc", "def"}},
			data: func(p *probe, r *rig, b *buffer.Buffer, end bool) filter.DataStatus {
				if !end {
					return filter.DataStopIterationAndBuffer
				}
				p.CB.AddDecodedData(b, false)
				if got := string(p.CB.BufferedDecodeData().Bytes()); got != "abcdef" {
					t.Errorf("buffered: %q", got)
				}
				p.CB.BufferedDecodeData().Drain(1)
				p.CB.BufferedDecodeData().AppendString("!")
				return filter.DataContinue
			}, body: "bcdef!",
		},
		"trailers at the body's end": {
			shape: shape{chunks: []string{"abc"}},
			data: func(p *probe, _ *rig, _ *buffer.Buffer, _ bool) filter.DataStatus {
				p.CB.AddDecodedTrailers().AddName("b", "2")
				return filter.DataContinue
			}, body: "abc", tail: []string{"b=2"},
		},
		"trailers at the end of a body that is held": {
			shape: shape{chunks: []string{"abc"}},
			data: func(p *probe, _ *rig, _ *buffer.Buffer, _ bool) filter.DataStatus {
				p.CB.AddDecodedTrailers().AddName("b", "2")
				return filter.DataStopIterationAndBuffer
			}, then: func(p *probe, _ *rig) { p.CB.ContinueDecoding() }, body: "abc", tail: []string{"b=2"},
		},
		"data before trailers": {
			shape: shape{chunks: []string{"abc"}, trailers: true},
			trailers: func(p *probe, r *rig) filter.TrailersStatus {
				p.CB.AddDecodedData(r.owned("+"), false)
				p.CB.AddDecodedTrailers().AddName("b", "2") // those that are there
				return filter.TrailersContinue
			}, body: "abc+", tail: []string{"a=1", "b=2"},
		},
		"data before trailers that are held": {
			shape: shape{chunks: []string{"abc"}, trailers: true},
			trailers: func(p *probe, r *rig) filter.TrailersStatus {
				p.CB.AddDecodedData(r.owned("+"), false)
				return filter.TrailersStopIteration
			},
			then: func(p *probe, r *rig) {
				p.CB.AddDecodedData(r.owned("+"), false)
				p.CB.InjectDecodedData(r.owned("!"), false)
				p.CB.ContinueDecoding()
				p.CB.AddDecodedData(r.owned("lost"), false)
				p.CB.InjectDecodedData(r.owned("lost"), true)
			}, body: "abc!++", tail: []string{"a=1"},
		},
		"an injected end with trailers": {
			shape: shape{trailers: true},
			trailers: func(p *probe, r *rig) filter.TrailersStatus {
				p.CB.InjectDecodedData(r.owned("new"), true)
				return filter.TrailersContinue
			}, body: "new", tail: []string{"a=1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &probe{}
			r := newRig(t, newWorker(), 0, &probe{}, p, &probe{})
			p.onHeaders = func(_ bool, _ *http.HeaderMap, end bool) filter.HeadersStatus {
				if c.headers == nil {
					return filter.HeadersContinue
				}
				return c.headers(p, r, end)
			}
			p.onData = func(_ bool, b *buffer.Buffer, end bool) filter.DataStatus {
				if c.data == nil {
					return filter.DataContinue
				}
				return c.data(p, r, b, end)
			}
			p.onTrailers = func(bool, *http.HeaderMap) filter.TrailersStatus {
				if c.trailers == nil {
					return filter.TrailersContinue
				}
				return c.trailers(p, r)
			}
			r.send(true, c.shape)
			if c.then != nil {
				c.then(p, r)
			}
			r.term.dec.whole(t, "the far end", c.body, c.tail...)
			r.filters[2].dec.whole(t, "the filter after", c.body, c.tail...)
			r.close()
		})
	}
}

// TestTrailersTooEarly: who adds trailers before the end has a map, and nobody gets it.
func TestTrailersTooEarly(t *testing.T) {
	p := &probe{}
	at(p, "decode headers", func() { p.CB.AddDecodedTrailers().AddName("b", "2") })
	r := newRig(t, newWorker(), 0, p)
	stop := invariant.Record()
	r.send(true, shape{chunks: []string{"abc"}})
	if n := len(stop()); n != 1 {
		t.Errorf("%d bugs", n)
	}
	r.term.dec.whole(t, "the far end", "abc")
	r.close()
}

// TestContinueInside: Continue* in a filter's own callback changes nothing; the status decides.
func TestContinueInside(t *testing.T) {
	p := &probe{}
	at(p, "decode headers", func() { p.CB.ContinueDecoding() })
	r := newRig(t, newWorker(), 0, p)
	r.send(true, shape{})
	if r.term.dec.heads != 0 {
		t.Error("the head was passed on")
	}
	p.CB.ContinueDecoding()
	r.term.dec.whole(t, "the far end", "")
	r.close()
}

// TestBufferedElsewhere: a filter may look at what another one holds.
func TestBufferedElsewhere(t *testing.T) {
	a, b := &probe{}, &probe{}
	keeping(b, keepers[2], true)
	r := newRig(t, newWorker(), 0, a, b)
	if r.term.CB.BufferedDecodeData() != nil {
		t.Error("something is buffered")
	}
	r.send(true, shape{chunks: []string{"abc"}})
	if got := string(a.CB.BufferedDecodeData().Bytes()); got != "abc" || a.CB.BufferedEncodeData() != nil {
		t.Errorf("%q", got)
	}
	r.close()
}

// TestSides: a filter is called for the sides that it wants, no others.
func TestSides(t *testing.T) {
	dec, enc := &probe{t: t, name: "decoder"}, &probe{t: t, name: "encoder"}
	r := &rig{t: t, w: newWorker(), term: newTerminal(t), filters: []*probe{dec, enc}}
	r.begin(&fm.Chain{Entries: []fm.Entry{{Name: "decoder", Factory: factory{dec, filter.Decoder}}, {Name: "encoder", Factory: factory{enc, filter.Encoder}},
		{Name: "terminal", Factory: factory{r.term, filter.Decoder}}}}, 0)
	r.send(true, full)
	r.send(false, full)
	dec.dec.whole(t, "decoder", full.body(), full.tail()...)
	enc.enc.whole(t, "encoder", full.body(), full.tail()...)
	r.got.whole(t, "the client", full.body(), full.tail()...)
	if dec.enc.heads != 0 || enc.dec.heads != 0 {
		t.Error("called for the other side")
	}
	r.close()
}

// disabling is a route that turns filters on and off.
type disabling map[string]bool

func (disabling) Name() string                            { return "" }
func (disabling) VirtualHost() string                     { return "" }
func (disabling) Cluster() string                         { return "" }
func (disabling) Timeout() time.Duration                  { return 0 }
func (disabling) Metadata(string) map[string]any          { return nil }
func (disabling) RateLimits() []aroute.RateLimit          { return nil }
func (disabling) HostRateLimits() []aroute.RateLimit      { return nil }
func (disabling) IncludeHostRateLimits() bool             { return false }
func (disabling) FilterConfigs(dst []any, _ string) []any { return dst }
func (d disabling) FilterConfig(filter string) any        { return "config of " + filter }
func (d disabling) FilterDisabled(f string) (bool, bool) {
	off, set := d[f]
	return off, set
}

// TestDisabled: the configuration, then the route says which filters there are; the terminal one stays.
func TestDisabled(t *testing.T) {
	for _, c := range []struct {
		byDefault bool
		route     disabling
		called    bool
	}{
		{false, nil, true},
		{true, nil, false},
		{false, disabling{}, true},
		{true, disabling{}, false},
		{true, disabling{"filter": false}, true},
		{false, disabling{"filter": true}, false},
		{false, disabling{"terminal": true}, true},
	} {
		p := &probe{t: t, name: "filter"}
		r := &rig{t: t, w: newWorker(), term: newTerminal(t)}
		if c.route != nil {
			r.rt = c.route
		}
		chain := &fm.Chain{Entries: []fm.Entry{{Name: "filter", Factory: factory{p, filter.Both}, Disabled: c.byDefault},
			{Name: "none", Factory: none{}}, {Name: "terminal", Factory: factory{r.term, filter.Decoder}}}}
		r.begin(chain, 0)
		r.send(true, shape{})
		r.term.dec.whole(t, "the far end", "")
		if called := p.dec.heads > 0; called != c.called {
			t.Errorf("%+v: called %v", c, called)
		}
		if c.route != nil && r.term.CB.RouteConfig() != "config of terminal" {
			t.Errorf("route configuration: %v", r.term.CB.RouteConfig())
		}
		r.close()
	}
}

// none is a factory that has no filter for this stream.
type none struct{}

func (none) New(network.Dispatcher) filter.Filter { return nil }
func (none) Sides() filter.Sides                  { return filter.Both }

// TestRecreate: a stream starts anew only if its request is here whole, and its body kept; nothing is passed on afterwards.
func TestRecreate(t *testing.T) {
	for name, c := range map[string]struct {
		shape shape
		keep  bool
		begun bool // the response
		head  bool // only the head has arrived
		owner bool
		want  bool
	}{
		"no body":                {owner: true, want: true},
		"a body that is kept":    {shape: shape{chunks: []string{"abc"}}, keep: true, owner: true, want: true},
		"a body that is gone":    {shape: shape{chunks: []string{"abc"}}, owner: true},
		"trailers":               {shape: shape{trailers: true}, owner: true, want: true},
		"incomplete":             {head: true, owner: true},
		"the owner cannot":       {},
		"the response has begun": {begun: true, owner: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &probe{}
			if c.keep {
				keeping(p, keepers[0], true)
			}
			r := newRig(t, newWorker(), 0, p)
			body := ""
			r.recreate = func(b *buffer.Buffer) bool {
				if b != nil {
					body = string(b.Bytes())
				}
				return c.owner
			}
			if c.head {
				r.sendHead(true, false)
			} else {
				r.send(true, c.shape)
			}
			if c.begun {
				r.sendHead(false, false)
			}
			if got := p.CB.RecreateStream(); got != c.want {
				t.Fatalf("recreated: %v", got)
			}
			if c.want {
				if body != c.shape.body() {
					t.Errorf("body %q", body)
				}
				heads := r.term.dec.heads
				p.CB.ContinueDecoding()
				p.CB.SendLocalReply(&filter.LocalReply{Code: 500, GRPCStatus: -1})
				r.send(false, full)
				if r.got.heads != 0 || r.term.dec.heads != heads {
					t.Error("the old stream goes on")
				}
			}
			r.close()
		})
	}
}

// TestReentrance: a filter's callback may make another filter, whose bytes are on the stack, do something; order is kept and no
// filter is called within its own callback (the probes look).
func TestReentrance(t *testing.T) {
	a, b := &probe{}, &probe{}
	r := newRig(t, newWorker(), 0, a, b)
	at(a, "decode headers", func() {})
	calls := 0
	b.onHeaders = func(bool, *http.HeaderMap, bool) filter.HeadersStatus {
		a.CB.AddDecodedData(r.owned("1"), false)
		a.CB.ContinueDecoding()
		a.CB.InjectDecodedData(r.owned("2"), false)
		r.sendData(true, "3", false)
		return filter.HeadersContinue
	}
	b.onData = func(bool, *buffer.Buffer, bool) filter.DataStatus {
		if calls++; calls == 1 {
			a.CB.InjectDecodedData(r.owned("4"), false)
			r.sendTrailers(true)
		}
		return filter.DataContinue
	}
	r.sendHead(true, false)
	a.CB.ContinueDecoding()
	b.dec.whole(t, "the filter after", "1243", "a=1") // what is injected does not wait for what a has not seen
	r.term.dec.whole(t, "the far end", "1243", "a=1")
	r.close()
}

// TestQueuedWithinCall: what comes for a filter while its callback is on the stack comes after it.
func TestQueuedWithinCall(t *testing.T) {
	a, b := &probe{}, &probe{}
	r := newRig(t, newWorker(), 0, a, b)
	first := true
	b.onData = func(bool, *buffer.Buffer, bool) filter.DataStatus {
		if first {
			first = false
			a.CB.InjectDecodedData(r.owned("2"), false)
			a.CB.InjectDecodedData(r.owned("3"), true)
		}
		return filter.DataContinue
	}
	r.sendHead(true, false)
	r.sendData(true, "1", false)
	r.term.dec.whole(t, "the far end", "123")
	r.sendData(true, "lost", true)
	r.close()
}
