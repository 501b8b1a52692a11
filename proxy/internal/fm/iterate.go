package fm

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
)

// The functions of this file carry a message through the chain in either direction. Positions count filters in the order of
// the direction: decoding goes through the chain as configured, encoding from its end. Position len(acts) is the far end.
//
// A filter that sees the head or the end holds it (headHeld, endHeld) while its callback runs, so that what it does in there
// (injecting, adding trailers) is one case with what it does later. Continue is then nothing but letting go.

// at returns the filter at a position, nil if it takes no part in the direction.
func (s *Stream) at(d *direction, pos int) (*active, *half) {
	if d.decode {
		if a := &s.acts[pos]; a.sides&filter.Decoder != 0 {
			return a, &a.halves[0]
		}
		return nil, nil
	}
	if a := &s.acts[len(s.acts)-1-pos]; a.sides&filter.Encoder != 0 {
		return a, &a.halves[1]
	}
	return nil, nil
}

// half returns a's part of a direction.
func (d *direction) half(a *active) *half {
	if d.decode {
		return &a.halves[0]
	}
	return &a.halves[1]
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
	return len(s.acts)
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

func callComplete(d *direction, f filter.Filter) {
	if d.decode {
		f.DecodeComplete()
	} else {
		f.EncodeComplete()
	}
}

// enter and leave surround a callback. leave tells whether there is nothing more to do in this direction: the stream is gone, or a
// local reply ends it. A reply that has waited for the callback is made now.
func (s *Stream) enter(h *half, f flags) {
	h.flags |= f | inCall
	s.depth++
}

func (s *Stream) leave(d *direction, gen uint32) bool {
	s.depth--
	if s.gen != gen {
		return true
	}
	if !d.stopped {
		return false
	}
	s.settle()
	return true
}

// gone tells the same elsewhere.
func (s *Stream) gone(d *direction, gen uint32) bool { return s.gen != gen || d.stopped }

// complete tells a filter that it has seen the whole message.
func (s *Stream) complete(d *direction, a *active, gen uint32) (left bool) {
	s.depth++
	callComplete(d, a.f)
	return s.leave(d, gen)
}

// headers carries the head from position pos on. end: nothing follows.
func (s *Stream) headers(d *direction, pos int, end bool) {
	h := d.headers
	if !d.skip {
		gen := s.gen
		for ; pos < len(s.acts); pos++ {
			a, hf := s.at(d, pos)
			if a == nil {
				continue
			}
			seen := sawHead | headHeld
			if end {
				seen |= sawEnd | endHeld
			}
			s.enter(hf, seen)
			st := callHeaders(d, a.f, h, end)
			if s.leave(d, gen) || end && s.complete(d, a, gen) {
				return
			}
			hf.flags &^= inCall
			if st != filter.HeadersContinue || hf.flags&^(open|passing|used) != seen || hf.heldLen() > 0 {
				s.afterHeaders(d, pos, a, hf, st, end)
				return
			}
			hf.flags = hf.flags&^(headHeld|endHeld) | open
		}
	}
	s.headersOut(d, h, end)
}

// afterHeaders does what a headers callback asks for, unless it is a plain Continue.
func (s *Stream) afterHeaders(d *direction, pos int, a *active, hf *half, st filter.HeadersStatus, end bool) {
	switch st {
	case filter.HeadersContinue:
		hf.flags |= open
		s.release(d, pos, hf, nil)
		return
	case filter.HeadersContinueAndDontEndStream:
		if !end {
			s.bug(a, "HeadersContinueAndDontEndStream without an end of stream")
			return
		}
		// The head goes on, and what was added; the end stays with the filter.
		kept := hf.flags & (endHeld | trailersHeld)
		hf.flags = hf.flags&^kept | open
		gen := s.gen
		s.release(d, pos, hf, nil)
		if !s.gone(d, gen) && hf.flags&(endHeld|trailersHeld) == 0 {
			hf.flags |= kept
		}
		return
	case filter.HeadersStopIteration:
		hf.flags |= open
	case filter.HeadersStopAllIterationAndBuffer:
		hf.flags &^= watermark
	case filter.HeadersStopAllIterationAndWatermark:
		hf.flags |= watermark
	default:
		s.bug(a, "unknown headers status")
		return
	}
	s.keep(d, pos, hf)
}

// data carries body bytes from position pos on, and leaves data empty.
func (s *Stream) data(d *direction, pos int, data *buffer.Buffer, end bool) {
	if !d.skip {
		gen := s.gen
		for ; pos < len(s.acts); pos++ {
			a, hf := s.at(d, pos)
			if a == nil {
				continue
			}
			if hf.flags&(open|inCall|passing|sawEnd|queued) != open {
				s.queue(d, hf, data, end)
				return
			}
			if end {
				s.enter(hf, sawEnd|endHeld)
			} else {
				s.enter(hf, 0)
			}
			st := callData(d, a.f, data, end)
			if s.leave(d, gen) || end && s.complete(d, a, gen) {
				data.Reset()
				return
			}
			hf.flags &^= inCall
			if st != filter.DataContinue || hf.flags&(headHeld|trailersHeld|queued|paused) != 0 || hf.heldLen() > 0 {
				s.afterData(d, pos, a, hf, st, data)
				return
			}
			if data.Len() == 0 && !end {
				return
			}
			hf.flags &^= endHeld
		}
	}
	s.dataOut(d, data, end)
}

// afterData does what a data callback asks for, unless it is a plain Continue.
func (s *Stream) afterData(d *direction, pos int, a *active, hf *half, st filter.DataStatus, data *buffer.Buffer) {
	switch st {
	case filter.DataContinue:
		// The last piece counts too: a filter that waits for the whole body gets none that is over the limit.
		if hf.flags&headHeld != 0 || hf.heldLen() > 0 {
			if s.over(hf, data.Len()) {
				s.tooLarge(d)
				data.Reset()
				return
			}
		}
		s.release(d, pos, hf, data)
		data.Reset()
		return
	case filter.DataStopIterationAndBuffer:
		hf.flags &^= watermark
		s.keeps(hf).held.Move(data)
	case filter.DataStopIterationAndWatermark:
		hf.flags |= watermark
		s.keeps(hf).held.Move(data)
	case filter.DataStopIterationNoBuffer:
		data.Reset()
	default:
		data.Reset()
		s.bug(a, "unknown data status")
		return
	}
	s.keep(d, pos, hf)
}

// trailers carries trailers from position pos on.
func (s *Stream) trailers(d *direction, pos int) {
	h := d.trailers
	if !d.skip {
		gen := s.gen
		for ; pos < len(s.acts); pos++ {
			a, hf := s.at(d, pos)
			if a == nil {
				continue
			}
			if hf.flags&(open|inCall|passing|sawEnd|queued) != open {
				if hf.flags&sawEnd == 0 {
					hf.flags |= queued | aheadTrailers
				}
				return
			}
			s.enter(hf, sawEnd|trailersHeld)
			st := callTrailers(d, a.f, h)
			if s.leave(d, gen) || s.complete(d, a, gen) {
				return
			}
			hf.flags &^= inCall
			switch {
			case st == filter.TrailersStopIteration:
				s.keep(d, pos, hf)
				return
			case st != filter.TrailersContinue:
				s.bug(a, "unknown trailers status")
				return
			case hf.flags&(headHeld|trailersHeld|queued|paused) != trailersHeld || hf.heldLen() > 0:
				s.release(d, pos, hf, nil)
				return
			}
			hf.flags &^= trailersHeld
		}
	}
	s.trailersOut(d, h)
}

// bug ends a stream one of whose filters breaks the contract.
func (s *Stream) bug(a *active, what string) {
	invariant.Bug("http filter returned an illegal status", "filter", a.entry.Name, "what", what)
	s.owner.Reset(http.ResetLocal)
}
