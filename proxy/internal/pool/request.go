package pool

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Request asks a Pool for a stream. It is embedded in what sends the request, so that waiting allocates nothing. The caller sets
// the fields with capitals before Start and must not touch it until one of the Callbacks, or Cancel. owner: worker.
type Request struct {
	// Decoder gets the answer's events.
	Decoder codec.ResponseDecoder
	// Headers is the map that the answer's head is put into.
	Headers *http.HeaderMap
	// CB is told what became of the request for a stream.
	CB Callbacks

	pool       *Pool // while it waits
	next, prev *Request
}

// Callbacks are told what became of a Request: exactly one call, which may come from within Start.
type Callbacks interface {
	// OnPoolReady hands over a stream on c. The request's head has not been sent. The stream is dead as soon as it has ended: its
	// memory carries the connection's next stream.
	OnPoolReady(s codec.ClientStream, c *Conn)
	// OnPoolFailure: there will be no stream. reason is ResetOverflow, ResetLocalConnectionFailure,
	// ResetRemoteConnectionFailure or ResetConnectionTimeout; failure is the transport's account of it.
	OnPoolFailure(reason http.ResetReason, failure string, h *host.Host)
}

// Waiting tells whether r is in a pool's queue.
func (r *Request) Waiting() bool { return r.pool != nil }

// Cancel takes a waiting request back: it gets no callback. Otherwise it does nothing. The caller counts upstream_rq_cancelled.
func (r *Request) Cancel() {
	p := r.pool
	if p == nil {
		return
	}
	p.unqueue(r)
	p.checkEmpty()
}

// enqueue appends r to the queue.
func (p *Pool) enqueue(r *Request) {
	r.pool, r.prev, r.next = p, p.last, nil
	if p.last != nil {
		p.last.next = r
	} else {
		p.first = r
	}
	p.last = r
	p.waiting++
	p.host.RqPending.Add(1)
	p.w.Stats.Inc(p.s.Stats.Counter(stats.ClusterUpstreamRqPendingTotal))
	p.w.Stats.GaugeAdd(p.s.Stats.Gauge(stats.ClusterUpstreamRqPendingActive), 1)
}

func (p *Pool) unqueue(r *Request) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		p.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		p.last = r.prev
	}
	r.pool, r.next, r.prev = nil, nil, nil
	p.waiting--
	p.host.RqPending.Add(-1)
	p.breakers.Pending.Release()
	p.w.Stats.GaugeSub(p.s.Stats.Gauge(stats.ClusterUpstreamRqPendingActive), 1)
}

// failAll fails everything that waits now. What the failures start anew waits for the next connection.
func (p *Pool) failAll(reason http.ResetReason, failure string) {
	n := p.waiting
	for ; n > 0 && p.first != nil; n-- {
		r := p.first
		p.unqueue(r)
		p.w.Stats.Inc(p.s.Stats.Counter(stats.ClusterUpstreamRqPendingFailureEject))
		r.CB.OnPoolFailure(reason, failure, p.host)
	}
}
