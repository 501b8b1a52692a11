package fm

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
)

// DecodeHeaders takes the request's head.
func (s *Stream) DecodeHeaders(h *http.HeaderMap, end bool) {
	s.reqHeaders = h
	s.headers(&s.dec, 0, end)
}

// DecodeData takes body bytes of the request.
func (s *Stream) DecodeData(data *buffer.Buffer, end bool) {
	if s.dec.stopped {
		data.Reset()
		return
	}
	s.data(&s.dec, 0, data, end)
}

// DecodeTrailers takes the request's trailers.
func (s *Stream) DecodeTrailers(h *http.HeaderMap) {
	if s.dec.stopped {
		return
	}
	s.reqTrailers = h
	s.trailers(&s.dec, 0)
}

// Encode1xx takes an informational head of the terminal filter through the encoding filters.
func (s *Stream) Encode1xx(h *http.HeaderMap) {
	gen := s.gen
	if !s.enc.skip {
		for pos := 0; pos < len(s.acts); pos++ {
			a, _ := s.at(&s.enc, pos)
			if a == nil {
				continue
			}
			st := a.f.Encode1xx(h)
			if s.gen != gen || s.enc.stopped {
				return
			}
			switch st {
			case filter.HeadersContinue:
			case filter.HeadersStopIteration:
				return
			default:
				s.bug(a, "an informational response is neither held nor ended")
				return
			}
		}
	}
	s.owner.Send1xx(h)
}

// EncodeHeaders takes the response's head of the terminal filter.
func (s *Stream) EncodeHeaders(h *http.HeaderMap, end bool) {
	if s.enc.stopped || s.respHeaders != nil {
		return
	}
	s.respHeaders = h
	s.headers(&s.enc, 0, end)
}

// EncodeData takes body bytes of the response.
func (s *Stream) EncodeData(data *buffer.Buffer, end bool) {
	if s.enc.stopped {
		data.Reset()
		return
	}
	s.data(&s.enc, 0, data, end)
}

// EncodeTrailers takes the response's trailers.
func (s *Stream) EncodeTrailers(h *http.HeaderMap) {
	if s.enc.stopped {
		return
	}
	s.respTrailers = h
	s.trailers(&s.enc, 0)
}

func (s *Stream) headersOut(d *direction, h *http.HeaderMap, end bool) {
	if d.decode {
		d.ended = d.ended || end
		return
	}
	s.responseStarted = true
	d.ended = end
	s.owner.SendHeaders(h, end)
}

func (s *Stream) dataOut(d *direction, data *buffer.Buffer, end bool) {
	if d.decode {
		data.Reset()
		d.ended = d.ended || end
		return
	}
	d.ended = end
	s.owner.SendData(data, end)
}

func (s *Stream) trailersOut(d *direction, h *http.HeaderMap) {
	d.ended = true
	if !d.decode {
		s.owner.SendTrailers(h)
	}
}

// LocalReply answers the request from inside. If the response has begun, the stream is reset instead.
func (s *Stream) LocalReply(r *filter.LocalReply) {
	if s.destroyed || s.localReply {
		return
	}
	if s.responseStarted {
		s.owner.Reset(http.ResetLocal)
		return
	}
	gen := s.gen
	s.localReply = true
	s.dec.stopped = true
	s.dropHeld(&s.dec)
	reset := false
	for i := range s.acts {
		if s.acts[i].f.OnLocalReply(r) == filter.LocalReplyContinueAndReset {
			reset = true
		}
		if s.gen != gen {
			return
		}
	}
	if reset {
		s.owner.Reset(http.ResetLocal)
		return
	}
	// What encoding filters hold of an upstream's response makes room for the reply.
	s.dropHeld(&s.enc)
	h, body := s.owner.PrepareLocalReply(r)
	s.respHeaders, s.respTrailers = nil, nil
	s.EncodeHeaders(h, body == "")
	if s.gen != gen || body == "" || s.enc.stopped {
		return
	}
	var b buffer.Buffer
	b.Init(&s.owner.Worker().Bufs)
	b.AppendString(body)
	s.EncodeData(&b, true)
	b.Reset()
}

func (s *Stream) dropHeld(d *direction) {
	_, k := d.side()
	for i := range s.acts {
		hf := &s.acts[i].halves[k]
		s.unpause(d, hf)
		hf.held.Reset()
		hf.ahead.Reset()
		hf.added.Reset()
		hf.headersHeld, hf.stopAll, hf.endHeld, hf.trailersHeld = false, false, false, false
	}
}

func (s *Stream) responseTooLarge() {
	if s.responseStarted {
		s.owner.Reset(http.ResetLocal)
		return
	}
	s.LocalReply(&filter.LocalReply{Code: 500, Body: "Internal Server Error", Details: "response_payload_too_large", GRPCStatus: -1})
}
