package h2

import (
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	hstats "github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// guard counts frames that cost the peer little and us much (Envoy's protocol constraints).
type guard struct {
	empty      uint32 // consecutive
	priorities uint64
	updates    uint64
	faults     uint64
	opened     uint64 // streams whose head was sent
	dataFrames uint64 // sent

	// Frames in the write buffer. It tells only its bytes, so that what was drained is found by position: markAt is a
	// position of the past, and markFrames and markControl the totals there. When the buffer has drained beyond it, the
	// frames before it are known to be gone. That counts too many, by less than twice, until the buffer has drained once.
	written, drained        uint64
	stuck                   uint8 // dispatches in which nothing was drained
	frames, control         uint64
	markAt                  uint64
	markFrames, markControl uint64
	goneFrames, goneControl uint64
}

// guardEmpty counts frames that carry nothing.
func (s *session) guardEmpty(length uint32, end bool) bool {
	if length > 0 || end {
		s.guard.empty = 0
		return true
	}
	s.guard.empty++
	if s.guard.empty <= s.opts.MaxInboundEmptyFrames {
		return true
	}
	s.abort(errFloodEmpty)
	return false
}

func (s *session) guardPriority() {
	s.guard.priorities++
	if s.guard.priorities > uint64(s.opts.MaxInboundPriority)*(1+s.guard.opened) {
		s.abort(errFloodPriority)
	}
}

func (s *session) guardUpdate() bool {
	g := &s.guard
	g.updates++
	if g.updates > 5+2*(g.opened+uint64(s.opts.MaxInboundUpdates)*g.dataFrames) {
		s.abort(errFloodUpdates)
		return false
	}
	return true
}

// fault counts a frame that was wrong but not wrong enough to end the connection.
func (s *session) fault() {
	s.guard.faults++
	if s.guard.faults > maxFaults+s.guard.opened {
		s.fail(errTooManyFaults)
	}
}

// sentFrames, sentControl and sentData account for a frame of n bytes that was written.
func (s *session) sentFrames(n int) {
	s.guard.frames++
	s.guard.written += uint64(n)
}

func (s *session) sentControl(n int) {
	s.guard.control++
	s.sentFrames(n)
}

func (s *session) sentData(n int) {
	s.guard.dataFrames++
	s.sentFrames(n)
}

// The worker flushes at the end of a pass, and dispatches at most maxReads times in one. Frames are a flood only if they have waited
// longer than that, or if they are burstFactor times the limit.
const (
	maxReads    = 4
	burstFactor = 16
)

// checkOutbound ends the connection if too many frames wait to be sent: the peer makes us answer, and does not read. It is asked
// before new bytes are looked at.
func (s *session) checkOutbound() {
	g, o := &s.guard, s.opts
	if g.written == g.drained {
		return
	}
	s.settleOutbound()
	factor := uint64(burstFactor)
	if g.stuck > maxReads {
		factor = 1
	}
	switch {
	case g.control-g.goneControl > factor*uint64(o.MaxOutboundControlFrames):
		s.abort(errFloodControl)
	case g.frames-g.goneFrames > factor*uint64(o.MaxOutboundFrames):
		s.abort(errFloodOutbound)
	}
}

// settleOutbound finds out which frames have left the write buffer.
func (s *session) settleOutbound() {
	g := &s.guard
	waiting := min(uint64(s.out.Buffered()), g.written)
	if drained := g.written - waiting; drained != g.drained {
		g.drained, g.stuck = drained, 0
	} else if g.stuck <= maxReads {
		g.stuck++
	}
	switch {
	case waiting == 0:
		g.goneFrames, g.goneControl = g.frames, g.control
	case g.drained >= g.markAt:
		g.goneFrames, g.goneControl = g.markFrames, g.markControl
	default:
		return
	}
	g.markAt, g.markFrames, g.markControl = g.written, g.frames, g.control
}

func (s *session) inc(i stats.CounterIndex) {
	if r := s.pool.Stats; r != nil {
		r.Inc(s.opts.Stats.Counter(i))
	}
}

// errStats are the counters of the errors that have one.
var errStats = map[string]stats.CounterIndex{
	"rx_messaging_error":                            hstats.HTTP2RxMessagingError,
	"header_overflow":                               hstats.HTTP2HeaderOverflow,
	"header_list_size_too_large":                    hstats.HTTP2HeaderListSizeTooLarge,
	"stream_refused_errors":                         hstats.HTTP2StreamRefusedErrors,
	"requests_rejected_with_underscores_in_headers": hstats.HTTP2RequestsRejectedWithUnderscoresInHeaders,
	"inbound_empty_frames_flood":                    hstats.HTTP2InboundEmptyFramesFlood,
	"inbound_priority_frames_flood":                 hstats.HTTP2InboundPriorityFramesFlood,
	"inbound_window_update_frames_flood":            hstats.HTTP2InboundWindowUpdateFramesFlood,
	"outbound_flood":                                hstats.HTTP2OutboundFlood,
	"outbound_control_flood":                        hstats.HTTP2OutboundControlFlood,
}

// count counts an error.
func (s *session) count(err *codec.Err) {
	if i, ok := errStats[err.Stat]; ok {
		s.inc(i)
	}
}

// active moves the gauge of open streams.
func (s *session) active(n int64) {
	if r := s.pool.Stats; r != nil {
		r.GaugeAdd(s.opts.Stats.Gauge(hstats.HTTP2StreamsActive), n)
	}
}

// pending moves the gauge of body bytes that wait for a window.
func (s *session) pending(n int64) {
	if r := s.pool.Stats; r != nil && n != 0 {
		r.GaugeAdd(s.opts.Stats.Gauge(hstats.HTTP2PendingSendBytes), n)
	}
}
