package router

import (
	"math"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// Shadows starts copies of requests. async.Client is the real one.
type Shadows interface {
	// Shadow returns a new request to a cluster, nil if there is no such cluster. owner: w.
	Shadow(w *event.Worker, o *ShadowOptions) Shadow
	// Stats is where their routers count (stats.Router).
	Stats() astats.GroupBase
}

// ShadowOptions say how a copy of a request is sent.
type ShadowOptions struct {
	Cluster string
	// Timeout is that of the whole exchange from the end of the request, 0 for none.
	Timeout time.Duration
	// BufferLimit bounds what of the body waits to be sent, in bytes; past it the sender is held back.
	BufferLimit int
	// Chain is the router that sends it.
	Chain *fm.Chain
	// Flow is told when the copy does not keep up with its body (true), and when it does again.
	Flow func(above bool)
}

// Shadow is a copy of a request under way. Its answer is nobody's business. Once it has been sent whole, or is over, nothing can be done
// with it any more, and calls do nothing.
type Shadow interface {
	// Headers is the head to be filled before SendHeaders.
	Headers() *http.HeaderMap
	SendHeaders(end bool)
	// SendData takes the bytes of data.
	SendData(data *buffer.Buffer, end bool)
	// SendTrailers copies t.
	SendTrailers(t *http.HeaderMap)
	// Detach ends the calls of Flow: the request is sent whole. Cancel gives it up.
	Detach()
	Cancel()
}

// shadow is a copy of this request that has not been sent whole.
type shadow struct {
	s     Shadow
	above bool
}

// mirror starts the copies that the route asks for, with the head as it is now.
func (r *Router) mirror(list []route.Mirror, end bool) {
	if r.connect || r.cfg.Shadows == nil {
		return
	}
	random := r.w.Rand.Uint64()
	for i := range list {
		m := &list[i]
		name := m.Cluster(r.head)
		if name == "" || !m.Wants(r.cfg.Runtime, random) {
			continue
		}
		x := &shadow{}
		x.s = r.cfg.Shadows.Shadow(r.w, &ShadowOptions{Cluster: name, Timeout: r.timeout, BufferLimit: max(r.cb.BufferLimit(), 1),
			Chain: r.cfg.shadows, Flow: func(above bool) { r.shadowFlow(x, above) }})
		if x.s == nil {
			continue
		}
		h := x.s.Headers()
		h.CopyFrom(r.head)
		h.SetFormatter(r.head.Formatter())
		switch {
		case m.Host != "":
			h.Set(http.Authority, m.Host)
		case !m.KeepHost:
			host := h.Get(http.Authority)
			port := strings.LastIndexByte(host, ':')
			if port < 0 || strings.IndexByte(host[port:], ']') >= 0 {
				port = len(host)
			}
			h.SetConst(http.Authority, h.Arena().Concat(host[:port], "-shadow", host[port:]))
		}
		if m.Headers != nil {
			m.Headers.Apply(r.w, h, r.info)
		}
		x.s.SendHeaders(end)
		if end {
			x.s.Detach()
		} else {
			m := r.more()
			m.shadows = append(m.shadows, x)
		}
	}
}

// shadowFlow holds the client back while a copy does not keep up.
func (r *Router) shadowFlow(x *shadow, above bool) {
	if x.above != above {
		x.above = above
		r.cb.ReadDisable(above)
	}
}

// shadowData sends body bytes to the copies, and leaves data as it is.
func (r *Router) shadowData(data *buffer.Buffer, end bool) {
	for _, x := range r.shadows {
		var b buffer.Buffer
		b.Init(&r.w.Bufs)
		for _, run := range data.Slices(nil, math.MaxInt) {
			b.Append(run)
		}
		x.s.SendData(&b, end)
		b.Reset()
	}
	if end {
		r.leaveShadows(Shadow.Detach)
	}
}

// shadowTrailers ends the copies with trailers.
func (r *Router) shadowTrailers(t *http.HeaderMap) {
	for _, x := range r.shadows {
		x.s.SendTrailers(t)
	}
	r.leaveShadows(Shadow.Detach)
}

// leaveShadows forgets the copies: those that are sent whole go on alone, others must be given up.
func (r *Router) leaveShadows(how func(Shadow)) {
	for i, x := range r.shadows {
		r.shadows[i] = nil
		how(x.s)
		if x.above {
			x.above = false
			r.cb.ReadDisable(false)
		}
	}
	r.shadows = r.shadows[:0]
}
