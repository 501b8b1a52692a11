package fm

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// MaxSuspended bounds the filters written as straight-line code that wait at a time on one worker: each holds a stack.
const MaxSuspended = 4096

// SyncFactory makes filters from straight-line code: each is a coroutine on its stream's worker.
type SyncFactory struct {
	Make func(d network.Dispatcher) filter.Sync
	// Max is the bound of this factory's worker-wide share, MaxSuspended mostly.
	Max int
	// Suspended is the gauge of filters that wait, Overflow the counter of those that were not allowed to.
	Suspended stats.GaugeID
	Overflow  stats.CounterID
}

// NewSyncFactory returns a factory that counts in scope.
func NewSyncFactory(mk func(d network.Dispatcher) filter.Sync, scope stats.Scope) *SyncFactory {
	return &SyncFactory{Make: mk, Max: MaxSuspended, Suspended: scope.Gauge("suspended_filters"), Overflow: scope.Counter("suspended_filters_overflow")}
}

// Sides says that the code sees requests.
func (f *SyncFactory) Sides() filter.Sides { return filter.Decoder }

// New returns the filter of one stream.
func (f *SyncFactory) New(d network.Dispatcher) filter.Filter {
	body := f.Make(d)
	if body == nil {
		return nil
	}
	w := d.(interface{ Worker() *event.Worker }).Worker()
	return &syncFilter{f: f, body: body, w: w, l: suspended.Get(w)}
}

// waiting counts a worker's filters that wait.
type waiting struct{ n int }

var suspended = event.NewLocal(func(*event.Worker) *waiting { return &waiting{} })

// Suspended returns how many filters wait on w. Tests check that it returns to zero.
func Suspended(w *event.Worker) int { return suspended.Get(w).n }

// syncFilter runs straight-line code. owner: the stream's worker.
type syncFilter struct {
	filter.PassThrough
	f    *SyncFactory
	body filter.Sync
	w    *event.Worker
	l    *waiting
	co   *event.Coro

	call   filter.Canceler
	answer *filter.Answer
	err    error
	timer  event.Timer

	reply   *filter.LocalReply
	counted bool // it has one of the places
	refused bool // it did not get one
	gone    bool
}

// DecodeHeaders runs the code until it waits, or to its end.
func (s *syncFilter) DecodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	co := s.w.Go(func(c *event.Coro) {
		s.co = c
		s.reply = s.body.Decode(s, h)
		s.over()
	})
	switch {
	case s.gone:
		return filter.HeadersStopIteration
	case !co.Done():
		return filter.HeadersStopAllIterationAndWatermark
	case s.reply != nil:
		s.CB.SendLocalReply(s.reply)
		return filter.HeadersStopIteration
	}
	return filter.HeadersContinue
}

// resume goes on with the code after what it has waited for.
func (s *syncFilter) resume() {
	if s.gone || s.co == nil || !s.co.Resume() || s.gone {
		return
	}
	if s.reply != nil {
		s.CB.SendLocalReply(s.reply)
		return
	}
	s.CB.ContinueDecoding()
}

// over gives the place back. A request whose code could not wait is refused, whatever the code made of that: it has not done what it
// is there for.
func (s *syncFilter) over() {
	if s.counted {
		s.counted = false
		s.l.n--
		s.w.Stats.GaugeSub(s.f.Suspended, 1)
	}
	if s.refused && s.reply == nil {
		s.reply = tooMany
	}
}

var tooMany = &filter.LocalReply{Code: 503, Body: "too many suspended filters", Details: "suspended_filters_overflow", GRPCStatus: -1}

// mayWait takes a place among those that wait, for the first time that the code does.
func (s *syncFilter) mayWait() error {
	switch {
	case s.gone:
		return filter.ErrStreamReset
	case s.counted:
		return nil
	case s.l.n >= s.f.Max:
		s.w.Stats.Inc(s.f.Overflow)
		s.CB.Info().Flags.Set(stream.OverloadManager)
		s.refused = true
		return filter.ErrTooMany
	}
	s.counted = true
	s.l.n++
	s.w.Stats.GaugeAdd(s.f.Suspended, 1)
	return nil
}

// Callbacks returns what other filters get.
func (s *syncFilter) Callbacks() filter.Callbacks { return s.CB }

// Call sends a request and waits for its answer.
func (s *syncFilter) Call(c *filter.Call) (*filter.Answer, error) {
	if err := s.mayWait(); err != nil {
		return nil, err
	}
	s.call = s.CB.Send(c, func(a *filter.Answer, err error) {
		s.call, s.answer, s.err = nil, a, err
		s.resume()
	})
	if !s.co.Wait() || s.gone {
		return nil, filter.ErrStreamReset
	}
	a, err := s.answer, s.err
	s.answer, s.err = nil, nil
	return a, err
}

// Sleep waits for a while.
func (s *syncFilter) Sleep(d time.Duration) error {
	if err := s.mayWait(); err != nil {
		return err
	}
	if s.timer.Fn == nil {
		s.timer.Fn = s.resume
	}
	s.w.Arm(&s.timer, d)
	if !s.co.Wait() || s.gone {
		return filter.ErrStreamReset
	}
	return nil
}

// OnDestroy ends the code: what it waits for returns ErrStreamReset.
func (s *syncFilter) OnDestroy() {
	s.gone = true
	if c := s.call; c != nil {
		s.call = nil
		c.Cancel()
	}
	s.w.Remove(&s.timer)
	if s.co != nil {
		s.co.Stop()
	}
	s.over()
}
