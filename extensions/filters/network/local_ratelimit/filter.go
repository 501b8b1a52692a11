package local_ratelimit //nolint:revive // Envoy's name

import (
	"math"
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// bucket is a token bucket that fills all the time. Its state is the time at which it was, or would have been, empty: what it holds
// is how long ago that is, by what a token costs.
type bucket struct {
	emptyAt atomic.Int64 // ns of the monotonic clock
	most    int64        // ns: how long ago it may be
	cost    int64        // ns
}

// init makes it full.
func (b *bucket) init(tokens, cost int64) {
	b.cost = cost
	b.most = math.MaxInt64 / 2
	if tokens < b.most/cost {
		b.most = tokens * cost
	}
	b.emptyAt.Store(math.MinInt64 / 2)
}

// take takes a token, or returns false if there is none.
func (b *bucket) take(now int64) bool {
	for {
		was := b.emptyAt.Load()
		at := max(was, now-b.most) + b.cost
		if at > now {
			return false
		}
		if b.emptyAt.CompareAndSwap(was, at) {
			return true
		}
	}
}

// filter is one connection.
type filter struct {
	cfg     *config
	refused bool
}

// OnNewConnection implements network.ReadFilter.
func (f *filter) OnNewConnection(cb network.ReadCallbacks) network.FilterStatus {
	c := f.cfg
	enabled := c.enabled
	if c.key != "" {
		enabled = c.runtime.Bool(c.key, enabled)
	}
	if !enabled || c.bucket.take(cb.Now()) {
		return network.Continue
	}
	f.refused = true
	cb.Stats().Inc(c.stats.Counter(limited))
	if w, ok := cb.Connection().(interface{ StreamInfo() *stream.Info }); ok {
		w.StreamInfo().Flags.Set(stream.UpstreamRetryLimitExceeded) // the flag that Envoy gives it
	}
	cb.Connection().Close(network.NoFlush, "local_ratelimit_close_over_limit")
	return network.StopIteration
}

// OnData implements network.ReadFilter.
func (f *filter) OnData(*buffer.Buffer, bool) network.FilterStatus {
	if f.refused {
		return network.StopIteration
	}
	return network.Continue
}

// Indifferent implements network.Indifferent.
func (f *filter) Indifferent() bool { return !f.refused }

// OnEvent implements network.ReadFilter.
func (f *filter) OnEvent(network.ConnEvent) {}
