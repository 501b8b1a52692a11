package fm

import "github.com/dragoman-proxy/dragoman/api/buffer"

// The functions of this file keep what filters hold, bound it, and let it go.

// queue keeps bytes before a filter that takes none now. After its end they are nobody's.
func (s *Stream) queue(d *direction, hf *half, data *buffer.Buffer, end bool) {
	if hf.flags&(sawEnd|aheadEnd|aheadTrailers) != 0 {
		data.Reset()
		return
	}
	s.keeps(hf).ahead.Move(data)
	hf.flags |= queued
	if end {
		hf.flags |= aheadEnd
	}
	s.checkLimit(d, hf)
}

// takeQueued gives a filter what has waited for it, if it takes it now.
func (s *Stream) takeQueued(d *direction, pos int, hf *half) {
	gen := s.gen
	for hf.flags&(queued|open|inCall|passing) == queued|open {
		was := hf.flags
		hf.flags &^= queued | aheadEnd | aheadTrailers
		if hf.aheadLen() > 0 || was&aheadEnd != 0 {
			s.data(d, pos, &s.keeps(hf).ahead, was&aheadEnd != 0)
			if s.gone(d, gen) {
				return
			}
		}
		if was&aheadTrailers != 0 {
			s.trailers(d, pos)
			if s.gone(d, gen) {
				return
			}
		}
	}
}

// keep is what follows a callback that stops: the filter may keep more than before, or less.
func (s *Stream) keep(d *direction, pos int, hf *half) {
	gen := s.gen
	s.relax(d, hf)
	if s.gone(d, gen) {
		return
	}
	s.checkLimit(d, hf)
	if !s.gone(d, gen) {
		s.takeQueued(d, pos, hf)
	}
}

// release passes on all that the filter at pos holds, then more (nil: nothing), then gives the filter what has waited for it.
func (s *Stream) release(d *direction, pos int, hf *half, more *buffer.Buffer) {
	gen := s.gen
	for {
		hf.flags = hf.flags&^again | passing
		s.passOn(d, pos, hf, more)
		if s.gone(d, gen) {
			return
		}
		more = nil
		s.relax(d, hf)
		if s.gone(d, gen) {
			return
		}
		if hf.flags&again == 0 {
			break
		}
	}
	hf.flags &^= passing
	s.takeQueued(d, pos, hf)
}

// passOn is one round of release: head, bytes, end or trailers, in this order.
func (s *Stream) passOn(d *direction, pos int, hf *half, more *buffer.Buffer) {
	gen := s.gen
	body := &s.keeps(hf).going
	switch {
	case hf.held.Len() > 0:
		if more != nil {
			hf.held.Move(more)
		}
		body.Move(&hf.held)
	case more != nil:
		body = more
	}
	was := hf.flags
	hf.flags &^= headHeld | endHeld | trailersHeld
	if was&headHeld != 0 {
		only := was&endHeld != 0 && body.Len() == 0
		s.headers(d, pos+1, only)
		if s.gone(d, gen) {
			body.Reset()
			return
		}
		if only {
			return
		}
	}
	if body.Len() > 0 || was&endHeld != 0 {
		s.data(d, pos+1, body, was&endHeld != 0)
		if s.gone(d, gen) {
			return
		}
	}
	if was&trailersHeld != 0 {
		s.trailers(d, pos+1)
	}
}

// resume is a filter's Continue*: it lets go of what the filter holds.
func (s *Stream) resume(d *direction, a *active) {
	hf := d.half(a)
	if d.stopped || hf.flags&inCall != 0 || hf.flags&sawHead == 0 {
		return // nothing to let go of, or the callback's status decides
	}
	if hf.flags&passing != 0 {
		hf.flags |= again
		return
	}
	hf.flags |= open
	s.release(d, s.position(d, a), hf, nil)
}

// checkLimit is called when a filter keeps more than before.
func (s *Stream) checkLimit(d *direction, hf *half) {
	if s.limit == 0 || hf.flags&paused != 0 {
		return
	}
	n := hf.heldLen() + hf.aheadLen()
	if n <= s.limit {
		return
	}
	switch {
	case hf.flags&watermark != 0:
		if hf.flags&(sawEnd|aheadEnd|aheadTrailers) == 0 {
			s.pause(d, hf)
		}
	case hf.flags&inCall != 0:
		// Whether it is kept at all is known when the callback has returned.
	default:
		s.tooLarge(d)
	}
}

// over tells whether a filter would keep too much with n bytes more, and that is an error.
func (s *Stream) over(hf *half, n int) bool {
	return s.limit > 0 && hf.flags&watermark == 0 && hf.heldLen()+hf.aheadLen()+n > s.limit
}

// tooLarge answers a body that is more than a filter may buffer.
func (s *Stream) tooLarge(d *direction) {
	s.owner.TooLarge(d.decode)
	if d.decode {
		s.LocalReply(requestTooLarge)
	} else {
		s.LocalReply(responseTooLarge)
	}
}

// relax lets the sender go on once a filter keeps no more than half of the limit, as Envoy's low watermark.
func (s *Stream) relax(d *direction, hf *half) {
	if hf.flags&paused != 0 && (s.limit == 0 || hf.heldLen()+hf.aheadLen() <= s.limit/2) {
		s.unpause(d, hf)
	}
}

// setLimit changes the limit, which holds for what is kept already.
func (s *Stream) setLimit(bytes int) {
	s.limit = bytes
	gen := s.gen
	for _, d := range []*direction{&s.dec, &s.enc} {
		for i := range s.acts {
			if s.gone(d, gen) {
				break
			}
			hf := d.half(&s.acts[i])
			s.relax(d, hf)
			if !s.gone(d, gen) {
				s.checkLimit(d, hf)
			}
		}
	}
}

func (s *Stream) pause(d *direction, hf *half) {
	hf.flags |= paused
	if d.decode {
		s.owner.ReadDisable(true)
	} else {
		s.OnAboveHighWatermark()
	}
}

func (s *Stream) unpause(d *direction, hf *half) {
	hf.flags &^= paused
	if d.decode {
		s.owner.ReadDisable(false)
	} else {
		s.OnBelowLowWatermark()
	}
}

// dropHeld forgets what all filters hold in a direction that is over.
func (s *Stream) dropHeld(d *direction) {
	gen := s.gen
	for i := range s.acts {
		hf := d.half(&s.acts[i])
		hf.drop()
		hf.flags &^= headHeld | endHeld | trailersHeld | queued | aheadEnd | aheadTrailers
		if hf.flags&paused != 0 {
			s.unpause(d, hf)
			if s.gen != gen {
				return
			}
		}
	}
}

// buffered is what a filter holds in a direction, or what another one does.
func (s *Stream) buffered(d *direction, a *active) *buffer.Buffer {
	if b := d.half(a).front(); b != nil {
		return b
	}
	for i := range s.acts {
		if b := d.half(&s.acts[i]).front(); b != nil {
			return b
		}
	}
	return nil
}

func (h *half) front() *buffer.Buffer {
	switch {
	case h.heldLen() > 0:
		return &h.held
	case h.aheadLen() > 0:
		return &h.ahead
	}
	return nil
}
