package fm

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
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
	// ResponseStarted tells whether a response's head was sent.
	ResponseStarted() bool
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
func (a *active) ResponseStarted() bool          { return a.s.responseStarted }

func (a *active) RouteConfig() any {
	if r := a.s.owner.Route(); r != nil {
		return r.FilterConfig(a.entry.Name)
	}
	return nil
}

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

func (a *active) add(d *direction, data *buffer.Buffer, streaming bool) {
	if d.stopped {
		data.Reset()
		return
	}
	_, k := d.side()
	hf := &a.halves[k]
	if hf.inCall {
		hf.added.Move(data)
		return
	}
	hf.held.Move(data)
	hf.watermark = streaming
	a.s.checkLimit(d, a, hf, hf.held.Len())
}

// inject passes data to the filters after a at once; headers that a still holds go first.
func (a *active) inject(d *direction, data *buffer.Buffer, end bool) {
	s := a.s
	if d.stopped {
		data.Reset()
		return
	}
	gen := s.gen
	_, k := d.side()
	hf := &a.halves[k]
	pos := s.position(d, a)
	if hf.headersHeld {
		hf.headersHeld = false
		s.headers(d, pos+1, false)
		if s.gen != gen || d.stopped {
			return
		}
	}
	if end {
		hf.finish(d, a.f)
	}
	s.data(d, pos+1, data, end)
}

func (a *active) AddDecodedTrailers() *http.HeaderMap {
	s := a.s
	if s.reqTrailers == nil {
		s.madeTrailers[0].Init(s.owner.Arena())
		s.reqTrailers = &s.madeTrailers[0]
	}
	return s.reqTrailers
}

func (a *active) AddEncodedTrailers() *http.HeaderMap {
	s := a.s
	if s.respTrailers == nil {
		s.madeTrailers[1].Init(s.owner.Arena())
		s.respTrailers = &s.madeTrailers[1]
	}
	return s.respTrailers
}

func (a *active) BufferedDecodeData() *buffer.Buffer { return a.s.buffered(0) }
func (a *active) BufferedEncodeData() *buffer.Buffer { return a.s.buffered(1) }

func (s *Stream) buffered(k int) *buffer.Buffer {
	for i := range s.acts {
		if hf := &s.acts[i].halves[k]; hf.held.Len() > 0 {
			return &hf.held
		}
	}
	return nil
}

func (a *active) BufferLimit() int         { return a.s.limit }
func (a *active) SetBufferLimit(bytes int) { a.s.limit = bytes }
func (a *active) ReadDisable(disable bool) { a.s.owner.ReadDisable(disable) }

func (a *active) RecreateStream() bool { return a.s.owner.Recreate(a.s.buffered(0)) }

func (a *active) ResetStream(reason http.ResetReason) { a.s.owner.Reset(reason) }

func (a *active) SubscribeWatermarks(f func(above bool)) {
	a.s.watchers = append(a.s.watchers, f)
	if a.s.above > 0 {
		f(true)
	}
}

func (a *active) Send(c *filter.Call, done func(*filter.Answer, error)) filter.Canceler {
	return a.s.owner.Send(c, done)
}
