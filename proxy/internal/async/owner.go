package async

import (
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// owner is a Stream as its router sees it: the fm.Owner that hcm is for a client's request.
type owner Stream

func (o *owner) s() *Stream { return (*Stream)(o) }

func (o *owner) Worker() *event.Worker                         { return o.w }
func (o *owner) Info() *stream.Info                            { return &o.inf }
func (o *owner) Connection() network.Connection                { return nil }
func (o *owner) Arena() *http.Arena                            { return &o.arena }
func (o *owner) Route() aroute.Entry                           { return &o.rt }
func (o *owner) ClearRouteCache()                              {}
func (o *owner) Send1xx(*http.HeaderMap)                       {}
func (o *owner) TooLarge(bool)                                 {}
func (o *owner) Recreate(*buffer.Buffer, *http.HeaderMap) bool { return false }

// SendHeaders takes the answer's head from the router.
func (o *owner) SendHeaders(h *http.HeaderMap, end bool) {
	s := o.s()
	s.inf.Code = h.StatusCode()
	s.inf.ResponseHeaders = h
	if s.wait(headWaits | ends(end)) {
		s.head = h
		return
	}
	s.tellHead(h, end)
}

func ends(end bool) waits {
	if end {
		return endWaits
	}
	return 0
}

// SendData takes body bytes.
func (o *owner) SendData(data *buffer.Buffer, end bool) {
	s := o.s()
	if s.wait(bodyWaits | ends(end)) {
		s.body.Move(data)
		return
	}
	s.tellBody(data, end)
}

// SendTrailers takes the answer's trailers.
func (o *owner) SendTrailers(t *http.HeaderMap) {
	s := o.s()
	s.inf.ResponseTrailers = t
	if s.wait(trailersWait | endWaits) {
		s.trailers = t
		return
	}
	s.tellTrailers(t)
}

// PrepareLocalReply makes the answer that the router gives instead of an upstream.
func (o *owner) PrepareLocalReply(r *filter.LocalReply) (*http.HeaderMap, string) {
	s := o.s()
	s.reply = r
	s.inf.Code, s.inf.Details = r.Code, r.Details
	h := &s.resp
	h.Init(&s.arena)
	h.AddConst(http.Status, s.arena.String(strconv.Itoa(r.Code)))
	if r.Modify != nil {
		r.Modify(h)
	}
	return h, r.Body
}

// ReadDisable holds whoever sends the request back, or lets it go on.
func (o *owner) ReadDisable(disable bool) {
	s := o.s()
	if disable {
		s.pauses++
	} else if s.pauses > 0 {
		s.pauses--
	}
	if s.dead || s.wait(flowWaits) {
		return
	}
	s.tellFlow()
}

// Reset ends the answer. The router's memory goes now, so what has waited to be told is not told any more.
func (o *owner) Reset(reason http.ResetReason) {
	s := o.s()
	if s.dead || s.closed {
		return
	}
	s.close()
	s.waits = 0
	if s.wait(resetWaits) {
		s.reason = reason
		return
	}
	s.tellReset(reason)
}

// Send is for filters; there are none.
func (o *owner) Send(*filter.Call, func(*filter.Answer, error)) filter.Canceler { return nil }
