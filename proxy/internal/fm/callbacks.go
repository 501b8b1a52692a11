package fm

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// The methods of active that make it a filter.Callbacks (and, for the last filter, a Terminal).
var (
	_ filter.Callbacks = (*active)(nil)
	_ Terminal         = (*active)(nil)
)

// Terminal is what the last filter of a chain gets beyond Callbacks: it makes the response. The router uses it; extensions that
// answer by themselves use SendLocalReply.
type Terminal interface {
	filter.Callbacks
	Encode1xx(h *http.HeaderMap)
	EncodeHeaders(h *http.HeaderMap, end bool)
	EncodeData(data *buffer.Buffer, end bool)
	EncodeTrailers(h *http.HeaderMap)
	// Worker is the engine's worker under the Dispatcher.
	Worker() *event.Worker
	// Owner is who carries the stream.
	Owner() Owner
	// ResponseStarted tells whether a response's head was sent.
	ResponseStarted() bool
	// RecreateWith is RecreateStream for a filter that keeps the body itself; it takes body if the result is true. An empty one means
	// that the body is to go, nil that it was not kept. Trailers go, as Envoy's do. head is the answer that the client does not get, nil if there is none.
	RecreateWith(body *buffer.Buffer, head *http.HeaderMap) bool
}

func (a *active) Now() int64       { return a.s.owner.Worker().Now() }
func (a *active) Wall() int64      { return a.s.owner.Worker().Wall() }
func (a *active) WorkerIndex() int { return a.s.owner.Worker().Index }
func (a *active) Post(f func())    { a.s.owner.Worker().Post(f) }

func (a *active) NewTimer(f func()) network.Timer { return a.s.owner.Worker().NewTimer(f) }

func (a *active) Worker() *event.Worker          { return a.s.owner.Worker() }
func (a *active) Info() *stream.Info             { return a.s.owner.Info() }
func (a *active) Stats() stats.Recorder          { return a.s.owner.Worker().Stats }
func (a *active) Connection() network.Connection { return a.s.owner.Connection() }
func (a *active) Arena() *http.Arena             { return a.s.owner.Arena() }
func (a *active) Route() route.Entry             { return a.s.owner.Route() }
func (a *active) ClearRouteCache()               { a.s.owner.ClearRouteCache() }
func (a *active) Owner() Owner                   { return a.s.owner }
func (a *active) ResponseStarted() bool          { return a.s.responseStarted }

func (a *active) RouteConfig() any {
	if a.entry == nil {
		return nil
	}
	if r := a.s.owner.Route(); r != nil {
		return r.FilterConfig(a.entry.Name)
	}
	return nil
}

func (a *active) RouteConfigs(dst []any) []any {
	if a.entry == nil {
		return dst
	}
	if r := a.s.owner.Route(); r != nil {
		dst = r.FilterConfigs(dst, a.entry.Name)
	}
	return dst
}

func (a *active) Random() uint64 { return a.s.owner.Worker().Rand.Uint64() }

func (a *active) ContinueDecoding()                          { a.s.resume(&a.s.dec, a) }
func (a *active) ContinueEncoding()                          { a.s.resume(&a.s.enc, a) }
func (a *active) SendLocalReply(r *filter.LocalReply)        { a.s.LocalReply(r) }
func (a *active) Encode1xx(h *http.HeaderMap)                { a.s.Encode1xx(h) }
func (a *active) EncodeHeaders(h *http.HeaderMap, end bool)  { a.s.EncodeHeaders(h, end) }
func (a *active) EncodeData(data *buffer.Buffer, end bool)   { a.s.EncodeData(data, end) }
func (a *active) EncodeTrailers(h *http.HeaderMap)           { a.s.EncodeTrailers(h) }
func (a *active) AddDecodedData(d *buffer.Buffer, wm bool)   { a.add(&a.s.dec, d, wm) }
func (a *active) AddEncodedData(d *buffer.Buffer, wm bool)   { a.add(&a.s.enc, d, wm) }
func (a *active) InjectDecodedData(d *buffer.Buffer, e bool) { a.inject(&a.s.dec, d, e) }
func (a *active) InjectEncodedData(d *buffer.Buffer, e bool) { a.inject(&a.s.enc, d, e) }
func (a *active) AddDecodedTrailers() *http.HeaderMap        { return a.addTrailers(&a.s.dec, 0) }
func (a *active) AddEncodedTrailers() *http.HeaderMap        { return a.addTrailers(&a.s.enc, 1) }
func (a *active) BufferedDecodeData() *buffer.Buffer         { return a.s.buffered(&a.s.dec, a) }
func (a *active) BufferedEncodeData() *buffer.Buffer         { return a.s.buffered(&a.s.enc, a) }

// takes tells whether bytes of a filter have somewhere to go: the end has not been passed on.
func (hf *half) takes(d *direction) bool {
	if d.stopped || hf.flags&sawHead == 0 {
		return false
	}
	return hf.flags&sawEnd == 0 || hf.flags&(endHeld|trailersHeld) != 0
}

// add puts data behind what a holds.
func (a *active) add(d *direction, data *buffer.Buffer, streaming bool) {
	hf := d.half(a)
	if hf.kept != nil && data == &hf.held {
		return
	}
	if !hf.takes(d) {
		data.Reset()
		return
	}
	s := a.s
	s.keeps(hf).held.Move(data)
	if streaming {
		hf.flags |= watermark
	} else {
		hf.flags &^= watermark
	}
	s.checkLimit(d, hf)
}

// inject passes data to the filters after a at once; a head that a still holds goes first, trailers that it holds last.
func (a *active) inject(d *direction, data *buffer.Buffer, end bool) {
	s := a.s
	hf := d.half(a)
	if !hf.takes(d) {
		data.Reset()
		return
	}
	if hf.flags&passing != 0 { // what goes before is on the stack
		s.keeps(hf).held.Move(data)
		hf.flags |= again
		if end && hf.flags&trailersHeld == 0 {
			hf.flags |= endHeld
		}
		return
	}
	gen, pos := s.gen, s.position(d, a)
	trailers := end && hf.flags&trailersHeld != 0
	if end {
		hf.flags &^= endHeld | trailersHeld
	}
	if hf.flags&headHeld != 0 {
		hf.flags &^= headHeld
		s.headers(d, pos+1, false)
		if s.gone(d, gen) {
			data.Reset()
			return
		}
	}
	s.data(d, pos+1, data, end && !trailers)
	if trailers && !s.gone(d, gen) {
		s.trailers(d, pos+1)
	}
	if !s.gone(d, gen) {
		s.relax(d, hf) // it may have come from what was held
	}
}

// addTrailers makes trailers while a holds the end, which they become.
func (a *active) addTrailers(d *direction, k int) *http.HeaderMap {
	s := a.s
	if d.trailers != nil {
		return d.trailers
	}
	if s.madeTrailers == nil {
		s.madeTrailers = &[2]http.HeaderMap{}
	}
	t := &s.madeTrailers[k]
	t.Init(s.owner.Arena())
	s.made = true
	hf := d.half(a)
	switch {
	case d.stopped:
	case hf.flags&endHeld == 0:
		invariant.Bug("http filter adds trailers to a message whose end it does not hold", "filter", a.entry.Name)
	default:
		hf.flags = hf.flags&^endHeld | trailersHeld
		d.trailers = t
	}
	return t
}

func (a *active) BufferLimit() int         { return a.s.limit }
func (a *active) SetBufferLimit(bytes int) { a.s.setLimit(bytes) }

func (a *active) ReadDisable(disable bool) {
	if !a.s.destroyed {
		a.s.owner.ReadDisable(disable)
	}
}

func (a *active) RecreateStream() bool { return a.RecreateWith(a.s.buffered(&a.s.dec, a), nil) }

func (a *active) RecreateWith(body *buffer.Buffer, head *http.HeaderMap) bool {
	s := a.s
	d := &s.dec
	if s.destroyed || s.closing || s.responseStarted || s.pending != nil || !d.received || d.gotBody && body == nil {
		return false
	}
	if !s.owner.Recreate(body, head) {
		return false
	}
	s.dec.stopped, s.enc.stopped = true, true
	return true
}

func (a *active) ResetStream(reason http.ResetReason) {
	if !a.s.destroyed && !a.s.closing {
		a.s.owner.Reset(reason)
	}
}

func (a *active) SubscribeWatermarks(f func(above bool)) {
	if a.s.destroyed {
		return
	}
	if a.s.watchers == nil {
		a.s.watchers = a.s.watcher[:0]
	}
	a.s.watchers = append(a.s.watchers, f)
	if a.s.above > 0 {
		f(true)
	}
}

func (a *active) Send(c *filter.Call, done func(*filter.Answer, error)) filter.Canceler {
	return a.s.owner.Send(c, done)
}
