package hcm

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

var _ h1.Counter = (*Conn)(nil)

// OnDroppedUnderscores counts request headers that the HTTP/1 codec dropped because of their names.
func (h *Conn) OnDroppedUnderscores(n int) {
	h.w.Stats.Add(h.cfg.H1Stats.Counter(stats.HTTP1DroppedHeadersWithUnderscores), uint64(n))
}
