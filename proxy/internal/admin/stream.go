package admin

import (
	"iter"
	"time"
)

// maxPass is how long one piece of a streamed page may keep the main loop.
const maxPass = 300 * time.Microsecond

// Writer is what a streamed page is written to.
type Writer struct {
	// Buf is the piece that is being written; append to it.
	Buf []byte

	mono  func() int64
	limit int
	start int64
	yield func(struct{}) bool
	gone  bool
}

// Text appends a text.
func (w *Writer) Text(s string) { w.Buf = append(w.Buf, s...) }

// Item ends an item of the page, before or after which the writing may pause. It returns false if the rest is not wanted any more:
// return then.
func (w *Writer) Item() bool {
	if w.gone {
		return false
	}
	if len(w.Buf) < w.limit && w.mono()-w.start < int64(maxPass) {
		return true
	}
	if !w.yield(struct{}{}) {
		w.gone = true
	}
	return !w.gone
}

// stream is a Body that f writes.
type stream struct {
	w    *Writer
	f    func(w *Writer)
	next func() (struct{}, bool)
	stop func()
	done bool
}

// Stream returns a Body that f writes as straight-line code. f runs on the main loop, in turns with it: whenever a piece is full or
// has taken long enough it pauses in Item, and what it looks at may have changed when it goes on. mono is the main loop's clock.
func Stream(mono func() int64, f func(w *Writer)) Body {
	return &stream{w: &Writer{mono: mono}, f: f}
}

// Next runs f for one piece.
func (s *stream) Next(dst []byte, limit int) ([]byte, bool) {
	if s.done {
		return dst, false
	}
	w := s.w
	w.Buf, w.limit, w.start = dst, len(dst)+limit, w.mono()
	if s.next == nil {
		s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
			w.yield = yield
			s.f(w)
		})
	}
	if _, more := s.next(); !more {
		s.done = true
	}
	out := w.Buf
	w.Buf = nil
	return out, !s.done
}

// Close ends a page that is not wanted any more.
func (s *stream) Close() {
	s.done = true
	if s.stop != nil {
		s.stop()
	}
}

// closer is a Body that must be told when nobody reads on.
type closer interface{ Close() }

// Drop gives a page up that may not have been read to its end.
func Drop(b Body) {
	if c, ok := b.(closer); ok {
		c.Close()
	}
}
