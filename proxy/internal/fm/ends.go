package fm

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
)

// The functions of this file are the two ends of a chain: what enters it and what has passed it.

// DecodeHeaders takes the request's head.
func (s *Stream) DecodeHeaders(h *http.HeaderMap, end bool) {
	if s.dec.stopped {
		return
	}
	s.dec.headers, s.dec.received = h, end
	s.headers(&s.dec, 0, end)
}

// DecodeData takes body bytes of the request.
func (s *Stream) DecodeData(data *buffer.Buffer, end bool) {
	if s.dec.stopped {
		data.Reset()
		return
	}
	s.dec.gotBody = s.dec.gotBody || data.Len() > 0
	s.dec.received = end
	s.data(&s.dec, 0, data, end)
}

// DecodeTrailers takes the request's trailers.
func (s *Stream) DecodeTrailers(h *http.HeaderMap) {
	if s.dec.stopped {
		return
	}
	s.dec.trailers, s.dec.received = h, true
	s.trailers(&s.dec, 0)
}

// Encode1xx takes an informational head of the terminal filter through the encoding filters.
func (s *Stream) Encode1xx(h *http.HeaderMap) {
	if s.enc.stopped || s.enc.headers != nil || s.pending != nil {
		return
	}
	if !s.enc.skip {
		gen := s.gen
		for pos := 0; pos < len(s.acts); pos++ {
			a, _ := s.at(&s.enc, pos)
			if a == nil {
				continue
			}
			s.depth++
			st := a.f.Encode1xx(h)
			if s.leave(&s.enc, gen) {
				return
			}
			if s.pending != nil {
				s.settle()
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
	if s.enc.stopped || s.enc.headers != nil || s.pending != nil {
		return
	}
	s.enc.headers, s.enc.received = h, end
	s.headers(&s.enc, 0, end)
}

// EncodeData takes body bytes of the response.
func (s *Stream) EncodeData(data *buffer.Buffer, end bool) {
	if s.enc.stopped || s.enc.received || s.pending != nil {
		data.Reset()
		return
	}
	s.enc.received = end
	s.data(&s.enc, 0, data, end)
}

// EncodeTrailers takes the response's trailers.
func (s *Stream) EncodeTrailers(h *http.HeaderMap) {
	if s.enc.stopped || s.enc.received || s.pending != nil {
		return
	}
	s.enc.trailers, s.enc.received = h, true
	s.trailers(&s.enc, 0)
}

func (s *Stream) headersOut(d *direction, h *http.HeaderMap, end bool) {
	d.ended = end
	if d.decode {
		return
	}
	s.responseStarted = true
	s.owner.SendHeaders(h, end)
}

func (s *Stream) dataOut(d *direction, data *buffer.Buffer, end bool) {
	if d.ended || d.decode {
		data.Reset()
		d.ended = d.ended || end
		return
	}
	d.ended = end
	s.owner.SendData(data, end)
}

func (s *Stream) trailersOut(d *direction, h *http.HeaderMap) {
	if d.ended {
		return
	}
	d.ended = true
	if !d.decode {
		s.owner.SendTrailers(h)
	}
}
