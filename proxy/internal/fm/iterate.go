package fm

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
)

// The functions of this file carry a message through the chain in either direction. Positions count filters in the order of
// the direction: decoding goes through the chain as configured, encoding from its end. Position len(acts) is the far end.

func (d *direction) side() (filter.Sides, int) {
	if d.decode {
		return filter.Decoder, 0
	}
	return filter.Encoder, 1
}

// at returns the filter at a position, nil if it takes no part in the direction.
func (s *Stream) at(d *direction, pos int) (*active, *half) {
	side, k := d.side()
	if !d.decode {
		pos = len(s.acts) - 1 - pos
	}
	a := &s.acts[pos]
	if a.sides&side == 0 {
		return nil, nil
	}
	return a, &a.halves[k]
}

// position is the inverse of at.
func (s *Stream) position(d *direction, a *active) int {
	for i := range s.acts {
		if &s.acts[i] == a {
			if d.decode {
				return i
			}
			return len(s.acts) - 1 - i
		}
	}
	return 0
}

func (s *Stream) headersOf(d *direction) *http.HeaderMap {
	if d.decode {
		return s.reqHeaders
	}
	return s.respHeaders
}

func (s *Stream) trailersOf(d *direction) *http.HeaderMap {
	if d.decode {
		return s.reqTrailers
	}
	return s.respTrailers
}

func callHeaders(d *direction, f filter.Filter, h *http.HeaderMap, end bool) filter.HeadersStatus {
	if d.decode {
		return f.DecodeHeaders(h, end)
	}
	return f.EncodeHeaders(h, end)
}

func callData(d *direction, f filter.Filter, b *buffer.Buffer, end bool) filter.DataStatus {
	if d.decode {
		return f.DecodeData(b, end)
	}
	return f.EncodeData(b, end)
}

func callTrailers(d *direction, f filter.Filter, h *http.HeaderMap) filter.TrailersStatus {
	if d.decode {
		return f.DecodeTrailers(h)
	}
	return f.EncodeTrailers(h)
}

func (hf *half) finish(d *direction, f filter.Filter) {
	if hf.complete {
		return
	}
	hf.complete = true
	if d.decode {
		f.DecodeComplete()
	} else {
		f.EncodeComplete()
	}
}

// headers carries the head from position pos on. end: nothing follows.
func (s *Stream) headers(d *direction, pos int, end bool) {
	gen := s.gen
	h := s.headersOf(d)
	for ; pos < len(s.acts) && !d.skip; pos++ {
		a, hf := s.at(d, pos)
		if a == nil {
			continue
		}
		hf.inCall, hf.headersSeen = true, true
		st := callHeaders(d, a.f, h, end)
		if s.gen != gen || d.stopped {
			return
		}
		hf.inCall = false
		added := hf.added.Len() > 0 || end && s.trailersOf(d) != nil
		switch st {
		case filter.HeadersContinue:
		case filter.HeadersContinueAndDontEndStream:
			if !end {
				s.bug(a, "HeadersContinueAndDontEndStream without an end of stream")
				return
			}
			hf.noMore = true
			if !added {
				end = false
			}
		case filter.HeadersStopIteration:
			hf.headersHeld, hf.endHeld = true, end
			s.takeAdded(hf)
			return
		case filter.HeadersStopAllIterationAndBuffer, filter.HeadersStopAllIterationAndWatermark:
			hf.headersHeld, hf.stopAll, hf.endHeld = true, true, end
			hf.watermark = st == filter.HeadersStopAllIterationAndWatermark
			s.takeAdded(hf)
			return
		default:
			s.bug(a, "unknown headers status")
			return
		}
		if added && end {
			// The filter gave a message without a body one: its head goes on, then what was added.
			s.headers(d, pos+1, false)
			if s.gen != gen || d.stopped {
				return
			}
			s.tail(d, pos+1, &hf.added, true)
			return
		}
		if end {
			hf.finish(d, a.f)
		}
		if hf.added.Len() > 0 {
			s.headers(d, pos+1, false)
			if s.gen == gen && !d.stopped {
				s.data(d, pos+1, &hf.added, false)
			}
			return
		}
	}
	s.headersOut(d, h, end)
}

// takeAdded keeps what a filter added in a callback in which it stopped.
func (s *Stream) takeAdded(hf *half) {
	if hf.added.Len() > 0 {
		hf.held.Move(&hf.added)
	}
}

// tail passes data (if any) and trailers (if there are), ending the message.
func (s *Stream) tail(d *direction, pos int, data *buffer.Buffer, end bool) {
	gen := s.gen
	trailers := s.trailersOf(d) != nil
	if data.Len() > 0 || end && !trailers {
		s.data(d, pos, data, end && !trailers)
		if s.gen != gen || d.stopped {
			return
		}
	}
	if end && trailers {
		s.trailers(d, pos)
	}
}

// data carries body bytes from position pos on.
func (s *Stream) data(d *direction, pos int, data *buffer.Buffer, end bool) {
	gen := s.gen
	for ; pos < len(s.acts) && !d.skip; pos++ {
		a, hf := s.at(d, pos)
		if a == nil {
			continue
		}
		if hf.stopAll {
			hf.ahead.Move(data)
			hf.endHeld = hf.endHeld || end
			s.checkLimit(d, a, hf, hf.ahead.Len())
			return
		}
		hf.inCall = true
		st := callData(d, a.f, data, end)
		if s.gen != gen || d.stopped {
			return
		}
		hf.inCall = false
		if hf.added.Len() > 0 {
			data.Move(&hf.added)
		}
		switch st {
		case filter.DataContinue:
			late := end && s.lateTrailers(d)
			if hf.headersHeld || hf.held.Len() > 0 {
				if hf.headersHeld {
					hf.headersHeld = false
					s.headers(d, pos+1, false)
					if s.gen != gen || d.stopped {
						return
					}
				}
				if hf.held.Len() > 0 {
					hf.held.Move(data)
					s.unpause(d, hf)
					s.pass(d, pos, a, hf, &hf.held, end)
					return
				}
			}
			if late {
				hf.finish(d, a.f)
				s.tail(d, pos+1, data, true)
				return
			}
			if end {
				hf.finish(d, a.f)
			}
		case filter.DataStopIterationAndBuffer, filter.DataStopIterationAndWatermark:
			hf.held.Move(data)
			hf.endHeld = hf.endHeld || end
			hf.watermark = st == filter.DataStopIterationAndWatermark
			s.checkLimit(d, a, hf, hf.held.Len())
			return
		case filter.DataStopIterationNoBuffer:
			data.Reset()
			hf.endHeld = hf.endHeld || end
			return
		default:
			s.bug(a, "unknown data status")
			return
		}
		if data.Len() == 0 && !end {
			return
		}
	}
	s.dataOut(d, data, end)
}

// lateTrailers tells whether a filter made trailers while it saw the end in data.
func (s *Stream) lateTrailers(d *direction) bool {
	k := 0
	if !d.decode {
		k = 1
	}
	return s.trailersOf(d) == &s.madeTrailers[k]
}

// pass hands bytes that a filter held on to the next one, and the trailers that it made.
func (s *Stream) pass(d *direction, pos int, a *active, hf *half, data *buffer.Buffer, end bool) {
	if end {
		hf.finish(d, a.f)
	}
	s.tail(d, pos+1, data, end)
}

// trailers carries trailers from position pos on.
func (s *Stream) trailers(d *direction, pos int) {
	gen := s.gen
	h := s.trailersOf(d)
	for ; pos < len(s.acts) && !d.skip; pos++ {
		a, hf := s.at(d, pos)
		if a == nil {
			continue
		}
		if hf.stopAll {
			hf.trailersHeld = true
			return
		}
		hf.inCall = true
		st := callTrailers(d, a.f, h)
		if s.gen != gen || d.stopped {
			return
		}
		hf.inCall = false
		s.takeAdded(hf)
		if st == filter.TrailersStopIteration {
			hf.trailersHeld = true
			return
		}
		if hf.headersHeld {
			hf.headersHeld = false
			s.headers(d, pos+1, false)
			if s.gen != gen || d.stopped {
				return
			}
		}
		if hf.held.Len() > 0 {
			s.unpause(d, hf)
			s.data(d, pos+1, &hf.held, false)
			if s.gen != gen || d.stopped {
				return
			}
		}
		hf.finish(d, a.f)
	}
	s.trailersOut(d, h)
}

// resume lets go of what the filter at pos holds.
func (s *Stream) resume(d *direction, a *active) {
	gen := s.gen
	_, k := d.side()
	hf := &a.halves[k]
	if hf.inCall || d.stopped || !hf.headersHeld && !hf.stopAll && hf.held.Len() == 0 && !hf.endHeld && !hf.trailersHeld {
		return
	}
	pos := s.position(d, a)
	unseen := hf.stopAll
	hf.stopAll = false
	end := hf.endHeld
	hf.endHeld = false
	hasTrailers := hf.trailersHeld
	hf.trailersHeld = false
	s.unpause(d, hf)
	if hf.headersHeld {
		hf.headersHeld = false
		only := end && hf.held.Len() == 0 && hf.ahead.Len() == 0
		if only {
			hf.finish(d, a.f)
		}
		s.headers(d, pos+1, only && !(s.trailersOf(d) != nil))
		if s.gen != gen || d.stopped || only && s.trailersOf(d) == nil {
			return
		}
	}
	if hf.held.Len() > 0 || end && !unseen {
		if end && !hasTrailers {
			hf.finish(d, a.f)
		}
		s.tail(d, pos+1, &hf.held, end && !unseen)
		if s.gen != gen || d.stopped {
			return
		}
	}
	switch {
	case unseen && (hf.ahead.Len() > 0 || end):
		s.data(d, pos, &hf.ahead, end)
		if s.gen == gen && !d.stopped && hasTrailers {
			s.trailers(d, pos)
		}
	case unseen && hasTrailers:
		s.trailers(d, pos)
	case hasTrailers:
		hf.finish(d, a.f)
		s.trailers(d, pos+1)
	}
}

func (s *Stream) bug(a *active, what string) {
	invariant.Bug("http filter returned an illegal status", "filter", a.entry.Name, "what", what)
	s.owner.Reset(http.ResetLocal)
}

// checkLimit is called with the bytes that a filter keeps.
func (s *Stream) checkLimit(d *direction, a *active, hf *half, n int) {
	if s.limit == 0 || n <= s.limit {
		return
	}
	if hf.watermark {
		s.pause(d, hf)
		return
	}
	if d.decode {
		s.LocalReply(&filter.LocalReply{Code: 413, Body: "Payload Too Large", Details: "request_payload_too_large", GRPCStatus: -1})
		return
	}
	s.responseTooLarge()
}

func (s *Stream) pause(d *direction, hf *half) {
	if hf.paused {
		return
	}
	hf.paused = true
	if d.decode {
		s.owner.ReadDisable(true)
	} else {
		s.OnAboveHighWatermark()
	}
}

func (s *Stream) unpause(d *direction, hf *half) {
	if !hf.paused {
		return
	}
	hf.paused = false
	if d.decode {
		s.owner.ReadDisable(false)
	} else {
		s.OnBelowLowWatermark()
	}
}
