package async

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/router"
)

// shadow is a copy of a request that a router mirrors: what is answered is dropped.
type shadow struct {
	s        *Stream // nil once it is over
	flow     func(above bool)
	trailers http.HeaderMap
}

// Shadow implements router.Shadows.
func (c *Client) Shadow(w *event.Worker, o *router.ShadowOptions) router.Shadow {
	x := &shadow{flow: o.Flow}
	slot := c.clusters.Lookup(o.Cluster)
	if slot == nil || slot.Load() == nil {
		return nil // a mirror's cluster may be missing: nobody waits for it
	}
	x.s = locals.Get(w).get()
	x.s.begin(c, &Options{Timeout: o.Timeout, ForwardedFor: true, BufferLimit: o.BufferLimit, chain: o.Chain}, x, slot)
	return x
}

// Stats implements router.Shadows.
func (c *Client) Stats() astats.GroupBase { return c.stats }

// Headers implements router.Shadow.
func (x *shadow) Headers() *http.HeaderMap { return x.s.Headers() }

// SendHeaders implements router.Shadow.
func (x *shadow) SendHeaders(end bool) { x.s.SendHeaders(end) }

// SendData implements router.Shadow.
func (x *shadow) SendData(data *buffer.Buffer, end bool) {
	if x.s == nil {
		data.Reset()
		return
	}
	x.s.SendData(data, end)
}

// SendTrailers implements router.Shadow.
func (x *shadow) SendTrailers(t *http.HeaderMap) {
	if s := x.s; s != nil {
		x.trailers.Init(&s.arena)
		x.trailers.CopyFrom(t)
		s.SendTrailers(&x.trailers)
	}
}

// Detach implements router.Shadow.
func (x *shadow) Detach() { x.flow = nil }

// Cancel implements router.Shadow.
func (x *shadow) Cancel() {
	x.flow = nil
	if s := x.s; s != nil {
		x.s = nil
		s.Cancel()
	}
}

// over: the stream belongs to somebody else soon.
func (x *shadow) over() {
	x.s = nil
	x.told(false)
}

func (x *shadow) told(above bool) {
	if x.flow != nil {
		x.flow(above)
	}
}

// OnHeaders implements Handler.
func (x *shadow) OnHeaders(_ *http.HeaderMap, end bool) {
	if end {
		x.over()
	}
}

// OnData implements Handler.
func (x *shadow) OnData(data *buffer.Buffer, end bool) {
	data.Reset()
	if end {
		x.over()
	}
}

// OnTrailers implements Handler.
func (x *shadow) OnTrailers(*http.HeaderMap) { x.over() }

// OnReset implements Handler.
func (x *shadow) OnReset(http.ResetReason, string) { x.over() }

// OnAboveHighWatermark implements Handler.
func (x *shadow) OnAboveHighWatermark() { x.told(true) }

// OnBelowLowWatermark implements Handler.
func (x *shadow) OnBelowLowWatermark() { x.told(false) }
