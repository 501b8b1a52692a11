package fault

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// Headers by which a request says what is to happen to it.
const (
	headerDelay        = "x-envoy-fault-delay-request"
	headerDelayPercent = "x-envoy-fault-delay-request-percentage"
	headerAbort        = "x-envoy-fault-abort-request"
	headerAbortGRPC    = "x-envoy-fault-abort-grpc-request"
	headerAbortPercent = "x-envoy-fault-abort-request-percentage"
	headerLimit        = "x-envoy-fault-throughput-response"
	headerLimitPercent = "x-envoy-fault-throughput-response-percentage"
)

// factory is the configured filter, shared by all workers.
type factory struct {
	*settings
	stats   stats.GroupBase
	runtime ext.Runtime
	active  atomic.Int64
	callers callers
}

// New returns the filter of one stream.
func (f *factory) New(d network.Dispatcher) filter.Filter {
	return &injector{f: f, s: f.settings, d: d}
}

// Sides says that the filter looks at requests and responses.
func (f *factory) Sides() filter.Sides { return filter.Both }

// injector is one stream's.
type injector struct {
	filter.PassThrough
	f       *factory
	s       *settings
	d       network.Dispatcher
	head    *http.HeaderMap
	caller  string        // the downstream cluster; "": unknown, or not asked for
	timer   network.Timer // of the delay
	slow    *throttle     // of the response; nil: none
	waiting bool
	active  bool
}

// DecodeHeaders injects what is to be injected.
func (i *injector) DecodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	if s, ok := i.CB.RouteConfig().(*settings); ok {
		i.s = s
	}
	i.head = h
	if !i.concerns(h) {
		return filter.HeadersContinue
	}
	if i.s.byCluster {
		i.caller = h.Get(http.EnvoyDownstreamServiceCluster)
	}
	i.setLimit(h)
	if d := i.delay(h); d > 0 && i.enter() {
		i.note(delaysInjected, stream.DelayInjected)
		i.waiting = true
		i.timer = i.CB.NewTimer(i.afterDelay)
		i.timer.Arm(d)
		return filter.HeadersStopIteration
	}
	if i.abort(h) {
		return filter.HeadersStopIteration
	}
	return filter.HeadersContinue
}

// concerns tells whether the request is one that faults are meant for.
func (i *injector) concerns(h *http.HeaderMap) bool {
	if i.s.cluster != "" {
		if r := i.CB.Route(); r == nil || r.Cluster() != i.s.cluster {
			return false
		}
	}
	if i.s.nodes != nil && !i.s.nodes[h.Get(http.EnvoyDownstreamServiceNode)] {
		return false
	}
	for _, m := range i.s.headers {
		if !m.Match(h) {
			return false
		}
	}
	return true
}

// DecodeData and DecodeTrailers wait for the delay's end.
func (i *injector) DecodeData(*buffer.Buffer, bool) filter.DataStatus {
	if i.waiting {
		return filter.DataStopIterationAndWatermark
	}
	return filter.DataContinue
}

// DecodeTrailers waits for the delay's end.
func (i *injector) DecodeTrailers(*http.HeaderMap) filter.TrailersStatus {
	if i.waiting {
		return filter.TrailersStopIteration
	}
	return filter.TrailersContinue
}

// afterDelay goes on: a delay may be followed by an abort.
func (i *injector) afterDelay() {
	i.waiting = false
	if !i.abort(i.head) {
		i.CB.ContinueDecoding()
	}
}

// hit decides by chance. A fault that a header asks for has its share bounded by another header.
func (i *injector) hit(key string, f fraction, byHeader bool, header string) bool {
	if byHeader {
		if n, ok := number(i.head, header); ok {
			f.numerator = min(f.numerator, n)
		}
	}
	return i.f.runtime.Enabled(key, f.numerator, i.CB.Random(), f.denominator)
}

// hitFor is hit, where the downstream cluster has a key of its own: either may let it happen.
func (i *injector) hitFor(key, own string, f fraction, byHeader bool, header string) bool {
	if i.hit(key, f, byHeader, header) {
		return true
	}
	return i.caller != "" && i.hit(i.key(own), f, byHeader, header)
}

// value asks a runtime key, and then the downstream cluster's own.
func (i *injector) value(key, own string, def uint64) uint64 {
	v := i.f.runtime.Uint(key, def)
	if i.caller != "" {
		v = i.f.runtime.Uint(i.key(own), v)
	}
	return v
}

// key is the runtime key of the downstream cluster.
func (i *injector) key(own string) string { return "fault.http." + i.caller + own }

func number(h *http.HeaderMap, name string) (uint64, bool) {
	v, ok := h.GetName(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}

// maxDelay bounds delays: nobody waits longer than a day for a test.
const maxDelay = 24 * time.Hour

// delay is how long the request is to wait.
func (i *injector) delay(h *http.HeaderMap) time.Duration {
	d := i.s.delay
	if d == nil || !i.hitFor(i.s.keys.delayPercent, ".delay.fixed_delay_percent", d.share, d.byHeader, headerDelayPercent) {
		return 0
	}
	ms := uint64(d.fixed / time.Millisecond)
	if d.byHeader {
		n, ok := number(h, headerDelay)
		if !ok {
			return 0
		}
		ms = n
	}
	ms = i.value(i.s.keys.delayDuration, ".delay.fixed_duration_ms", ms)
	return min(time.Duration(min(ms, uint64(maxDelay/time.Millisecond)))*time.Millisecond, maxDelay)
}

// abort answers the request if it is to be aborted.
func (i *injector) abort(h *http.HeaderMap) bool {
	a := i.s.abort
	if a == nil || !i.hitFor(i.s.keys.abortPercent, ".abort.abort_percent", a.share, a.byHeader, headerAbortPercent) {
		return false
	}
	code, grpc := i.status(a, h)
	if code == 0 || !i.enter() {
		return false
	}
	i.note(abortsInjected, stream.FaultInjected)
	i.CB.SendLocalReply(&filter.LocalReply{Code: code, Body: a.body, Details: "fault_filter_abort", GRPCStatus: grpc})
	return true
}

// status is what an aborted request is answered with: an HTTP status, or a gRPC status with 200. 0: there is nothing to answer with.
func (i *injector) status(a *abort, h *http.HeaderMap) (code, grpc int) {
	code, grpc = a.code, a.grpc
	if a.byHeader {
		if n, ok := number(h, headerAbort); ok && n >= 200 && n < 600 {
			code = int(n)
		}
		if n, ok := number(h, headerAbortGRPC); ok && n <= 1<<31-1 {
			grpc = int(n)
		}
	}
	if code != 0 {
		n := i.value(i.s.keys.abortHTTP, ".abort.http_status", uint64(code))
		if n < 200 || n > 599 {
			return 0, -1
		}
		return int(n), -1
	}
	if grpc >= 0 {
		return 200, int(i.value(i.s.keys.abortGRPC, ".abort.grpc_status", uint64(grpc)) & 0x7fffffff)
	}
	return 0, -1
}

// enter counts the stream among those with a fault, unless there are too many. Several faults of a stream count once.
func (i *injector) enter() bool {
	if i.active {
		return true
	}
	st := i.CB.Stats()
	if uint64(i.f.active.Load()) >= i.f.runtime.Uint(i.s.keys.maxActive, i.s.maxActive) {
		st.Inc(i.f.stats.Counter(faultsOverflow))
		return false
	}
	i.active = true
	i.f.active.Add(1)
	st.GaugeAdd(i.f.stats.Gauge(activeFaults), 1)
	return true
}

// note counts a fault.
func (i *injector) note(c stats.CounterIndex, f stream.Flag) {
	i.CB.Stats().Inc(i.f.stats.Counter(c))
	if i.caller != "" {
		i.f.callers.count(i.d, i.CB.Stats(), i.caller, c)
	}
	i.CB.Info().Flags.Set(f)
	for k, v := range i.s.metadata {
		i.CB.Info().Metadata().Set("envoy.filters.http.fault", k, v)
	}
}

// setLimit slows the response down if it is to be.
func (i *injector) setLimit(h *http.HeaderMap) {
	l := i.s.limit
	if l == nil || !i.hit(i.s.keys.limitPercent, l.share, l.byHeader, headerLimitPercent) {
		return
	}
	rate := l.kibPerSec
	if l.byHeader {
		rate, _ = number(h, headerLimit)
	}
	if rate == 0 || !i.enter() {
		return
	}
	i.CB.Stats().Inc(i.f.stats.Counter(responseRLInjected))
	i.slow = newThrottle(i.CB, rate)
}

// EncodeData keeps bytes for their time.
func (i *injector) EncodeData(data *buffer.Buffer, end bool) filter.DataStatus {
	if i.slow == nil {
		return filter.DataContinue
	}
	i.slow.add(data.Len(), end)
	return filter.DataStopIterationAndWatermark
}

// EncodeTrailers come after the bytes that wait.
func (i *injector) EncodeTrailers(*http.HeaderMap) filter.TrailersStatus {
	if i.slow == nil || i.slow.waiting == 0 {
		return filter.TrailersContinue
	}
	i.slow.ended = true
	return filter.TrailersStopIteration
}

// OnDestroy ends what is under way.
func (i *injector) OnDestroy() {
	if i.timer != nil {
		i.timer.Disarm()
	}
	if i.slow != nil {
		i.slow.timer.Disarm()
	}
	if i.active {
		i.active = false
		i.f.active.Add(-1)
		i.CB.Stats().GaugeSub(i.f.stats.Gauge(activeFaults), 1)
	}
}
