package async

import (
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// DefaultLimitBytes bounds an answer's body if the call does not say.
const DefaultLimitBytes = 64 << 10

// call is a request whose answer is wanted as a whole.
type call struct {
	s      *Stream
	done   func(*filter.Answer, error)
	answer *filter.Answer
	limit  int
}

// Send starts c on w and returns at once. done is called on w with the answer, or with one of filter's errors, never inline, and
// not after Cancel. owner: w.
func (c *Client) Send(w *event.Worker, q *filter.Call, done func(*filter.Answer, error)) filter.Canceler {
	k := &call{done: done, limit: q.LimitBytes}
	if k.limit <= 0 {
		k.limit = DefaultLimitBytes
	}
	s, err := c.Start(w, &Options{Cluster: q.Cluster, Timeout: q.Timeout, ForwardedFor: q.ForwardedFor}, k)
	if err != nil {
		w.Post(func() { k.finish(nil, err) })
		return k
	}
	k.s = s
	h, a := s.Headers(), &s.arena
	h.AddConst(http.Method, a.String(q.Method))
	h.AddConst(http.Path, a.String(q.Path))
	h.AddConst(http.Authority, a.String(q.Authority))
	for _, x := range q.Headers {
		if x.ID != http.None {
			h.Add(x.ID, x.Value)
		} else {
			h.AddName(x.Name, x.Value)
		}
	}
	if len(q.Body) == 0 {
		s.SendHeaders(true)
		return k
	}
	if !h.Has(http.ContentLength) {
		h.Add(http.ContentLength, strconv.Itoa(len(q.Body)))
	}
	s.SendHeaders(false)
	var b buffer.Buffer
	b.Init(&w.Bufs)
	b.Append(q.Body)
	s.SendData(&b, true)
	return k
}

// Cancel stops the call without a word. It does nothing once the call is over.
func (k *call) Cancel() {
	k.done = nil
	if s := k.s; s != nil {
		k.s = nil
		s.Cancel()
	}
}

func (k *call) finish(a *filter.Answer, err error) {
	k.s = nil
	if done := k.done; done != nil {
		k.done = nil
		done(a, err)
	}
}

// OnHeaders keeps an upstream's head. An answer of the router's own is an error.
func (k *call) OnHeaders(h *http.HeaderMap, end bool) {
	s := k.s
	if r := s.Reply(); r != nil {
		k.finish(nil, s.why(r.Details))
		s.Cancel()
		return
	}
	k.answer = &filter.Answer{Status: h.StatusCode(), Headers: own(h)}
	if end {
		k.finish(k.answer, nil)
	}
}

// OnData keeps the body.
func (k *call) OnData(data *buffer.Buffer, end bool) {
	if len(k.answer.Body)+data.Len() > k.limit {
		s := k.s
		k.finish(nil, filter.ErrTooLarge)
		s.Cancel()
		return
	}
	k.answer.Body = data.AppendTo(k.answer.Body)
	if end {
		k.finish(k.answer, nil)
	}
}

// OnTrailers ends the answer; a Call has no use for trailers.
func (k *call) OnTrailers(*http.HeaderMap) { k.finish(k.answer, nil) }

// OnReset ends the call.
func (k *call) OnReset(_ http.ResetReason, details string) { k.finish(nil, k.s.why(details)) }

// OnAboveHighWatermark does nothing: the body was given at once.
func (k *call) OnAboveHighWatermark() {}

// OnBelowLowWatermark does nothing.
func (k *call) OnBelowLowWatermark() {}

// why says as one of filter's errors why there is no answer.
func (s *Stream) why(details string) error {
	switch {
	case s.inf.Flags.Has(stream.UpstreamRequestTimeout):
		return filter.ErrTimeout
	case details == "cluster_not_found":
		return filter.ErrNoCluster
	}
	return filter.ErrReset
}

// own copies fields into memory of their own: one string that all of them share.
func own(h *http.HeaderMap) []http.Header {
	all := h.All()
	n := 0
	for i := range all {
		n += len(all[i].Name) + len(all[i].Value)
	}
	b := make([]byte, 0, n)
	for i := range all {
		b = append(append(b, all[i].Name...), all[i].Value...)
	}
	text := string(b)
	out := make([]http.Header, len(all))
	for i := range all {
		k, v := len(all[i].Name), len(all[i].Value)
		out[i] = http.Header{Name: text[:k], Value: text[k : k+v], ID: all[i].ID}
		text = text[k+v:]
	}
	return out
}
