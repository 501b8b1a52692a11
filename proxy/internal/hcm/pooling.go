package hcm

import (
	"net/netip"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// local is what hcm keeps per worker.
type local struct {
	w    *event.Worker
	free []*Stream
	dead []*Stream
	// replies are heads of local replies that nobody needs.
	replies []*http.HeaderMap
	h1      h1.Pool
	h2      h2.Pool
	date    dateCache
	live    int

	match route.Request // of the lookup under way

	localAddr netip.Addr
	localStr  string
}

// maxFreeStreams bounds the streams that a worker keeps for reuse.
const maxFreeStreams = 1024

var locals = event.NewLocal(func(w *event.Worker) *local {
	l := &local{w: w}
	l.h2.Stats = w.Stats
	return l
})

// LiveStreams returns how many streams exist on w. Tests check that it returns to zero.
func LiveStreams(w *event.Worker) int { return locals.Get(w).live }

func (l *local) get() *Stream {
	l.live++
	return freelist.Take(&l.free, initStream)
}

func initStream(s *Stream) { s.idle.Fn = s.onIdle }

// arm arms one of the timers that few requests need; it stays with s for the next of them.
func (s *Stream) arm(t **event.Timer, expired func(*Stream), d time.Duration) {
	if *t == nil {
		*t = &event.Timer{Fn: func() { expired(s) }}
	}
	s.h.w.Arm(*t, d)
}

// replyHead returns an empty head for a reply of our own.
func (s *Stream) replyHead() *http.HeaderMap {
	if s.reply == nil {
		s.reply = freelist.Take(&s.h.l.replies, nil)
	}
	s.reply.Init(&s.arena)
	return s.reply
}

// bury takes s out of use at the end of the pass.
func (l *local) bury(s *Stream) {
	if len(l.dead) == 0 {
		l.w.QueueFlush(l)
	}
	l.dead = append(l.dead, s)
}

// Flush is the worker's call at the end of the pass: what died in it may be used again.
func (l *local) Flush() {
	for i, s := range l.dead {
		l.dead[i] = nil
		s.release()
		l.live--
		if len(l.free) < maxFreeStreams {
			l.free = append(l.free, s)
		} else {
			l.w.Remove(&s.idle)
			l.w.Remove(s.request)
			l.w.Remove(s.maxDuration)
			l.w.Remove(s.periodic)
		}
	}
	l.dead = l.dead[:0]
}

func (s *Stream) release() {
	s.req.Release()
	if s.reply != nil {
		s.reply.Release()
		if l := s.h.l; len(l.replies) < maxFreeStreams {
			l.replies = append(l.replies, s.reply)
		}
		s.reply = nil
	}
	s.arena.Release()
	s.h, s.enc, s.table, s.route = nil, nil, nil, nil
}
