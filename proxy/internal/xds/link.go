package xds

import (
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// How long a link waits before it tries again: twice as long each time, of which chance takes a part, as Envoy does.
const (
	baseBackOff = 500 * time.Millisecond
	maxBackOff  = 30 * time.Second
)

// The rate limit of requests, where one is asked for without numbers.
const (
	defaultTokens = 100
	defaultFill   = 10.0 // a second
)

// closeWarnAfter is how long a link may fail in the same way before that is worth a warning.
const closeWarnAfter = 30 * time.Second

// target says where a control plane is and how it is talked to.
type target struct {
	cluster, authority string
	metadata           []http.Header
	limitBytes         int
	base, max          time.Duration // of the backoff
	tokens             float64       // of the rate limit, 0: none
	fill               float64       // a second
	delta              bool
	nodeOnce           bool
}

// newTarget reads a source. One that is refused gives what is never used.
func newTarget(a *corev3.ApiConfigSource) target {
	var g *corev3.GrpcService
	if list := a.GetGrpcServices(); len(list) > 0 {
		g = list[0]
	}
	t := target{cluster: g.GetEnvoyGrpc().GetClusterName(), authority: g.GetEnvoyGrpc().GetAuthority(), base: baseBackOff, max: maxBackOff,
		limitBytes: int(g.GetEnvoyGrpc().GetMaxReceiveMessageLength().GetValue()),
		delta:      a.GetApiType() == corev3.ApiConfigSource_DELTA_GRPC, nodeOnce: a.GetSetNodeOnFirstMessageOnly()}
	for _, h := range g.GetInitialMetadata() {
		t.metadata = append(t.metadata, http.Header{Name: strings.ToLower(h.GetKey()), Value: h.GetValue()})
	}
	if b := g.GetRetryPolicy().GetRetryBackOff(); b != nil {
		t.base = b.GetBaseInterval().AsDuration()
		if t.max = 10 * t.base; b.GetMaxInterval() != nil {
			t.max = max(t.base, b.GetMaxInterval().AsDuration())
		}
	}
	if r := a.GetRateLimitSettings(); r != nil {
		t.tokens, t.fill = defaultTokens, defaultFill
		if n := r.GetMaxTokens(); n != nil {
			t.tokens = float64(n.GetValue())
		}
		if n := r.GetFillRate(); n != nil {
			t.fill = n.GetValue()
		}
	}
	return t
}

// link is the gRPC stream of a mux. It connects, and again when it broke, and says how that went. owner: main loop.
type link struct {
	m      *mux
	to     target
	path   string // of the method
	g      *async.GRPC
	tries  event.Timer
	next   time.Duration // how long the next wait is at most
	gen    int           // counts streams
	held   bool
	closed bool

	scope      apistats.Scope
	counts     apistats.GroupBase
	identifier apistats.TextID

	tokens   float64
	filledAt int64
	refill   event.Timer

	// How it ended last, for one that keeps failing.
	failed bool
	status int
	text   string
	since  int64
}

func (l *link) init(m *mux, to target, path string, scope apistats.Scope) {
	l.m, l.to, l.path, l.next, l.tokens = m, to, path, to.base, to.tokens
	l.tries.Fn = l.connect
	l.refill.Fn = m.drain
	if scope != nil {
		l.scope = scope.Scope("control_plane")
		l.counts = l.scope.Group(stats.ControlPlane)
		l.identifier = l.scope.Text(stats.ControlPlaneIdentifier)
	}
}

// up tells whether there is a stream.
func (l *link) up() bool { return l.g != nil }

// connect opens the stream.
func (l *link) connect() {
	s := l.m.s
	if l.closed || l.g != nil {
		return
	}
	g, err := s.Client().GRPC(s.Main, &async.GRPCOptions{Cluster: l.to.cluster, Path: l.path, Authority: l.to.authority, Metadata: l.to.metadata,
		LimitBytes: l.to.limitBytes}, (*linkAnswer)(l))
	if err != nil {
		l.m.down()
		l.again()
		return
	}
	l.g = g
	l.gen++
	l.gauge(stats.ControlPlaneConnectedState, 1)
	l.m.connected()
}

// again waits and connects.
func (l *link) again() {
	s := l.m.s
	wait := time.Duration(0)
	if l.next > 0 {
		wait = time.Duration(s.Main.Rand.Uint64() % uint64(l.next))
	}
	l.next = min(2*l.next, l.to.max)
	s.Main.Arm(&l.tries, wait)
}

func (l *link) close() {
	if l.closed {
		return
	}
	l.closed = true
	main := l.m.s.Main
	main.Remove(&l.tries)
	main.Remove(&l.refill)
	if l.g != nil {
		l.g.Close()
		l.g = nil
	}
	if l.scope != nil {
		l.scope.Release(stats.ControlPlane)
		l.scope.ReleaseText(stats.ControlPlaneIdentifier)
	}
}

func (l *link) gauge(i apistats.GaugeIndex, n int) {
	if l.scope != nil {
		l.m.s.Store.SetGauge(l.counts.Gauge(i), uint64(n))
	}
}

// hold stops what comes in, or lets it go on.
func (l *link) hold(hold bool) {
	if l.g != nil && l.held != hold {
		l.held = hold
		l.g.Hold(hold)
	}
}

// allow takes a token of the rate limit. If there is none, the mux is asked to go on when there will be.
func (l *link) allow() bool {
	if l.to.tokens == 0 {
		return true
	}
	main := l.m.s.Main
	now := main.Now()
	l.tokens = min(l.to.tokens, l.tokens+time.Duration(now-l.filledAt).Seconds()*l.to.fill)
	l.filledAt = now
	if l.tokens >= 1 {
		l.tokens--
		return true
	}
	if l.scope != nil {
		main.Stats.Inc(l.counts.Counter(stats.ControlPlaneRateLimitEnforced))
	}
	main.Arm(&l.refill, time.Duration(float64(time.Second)/max(l.to.fill, 1e-3)))
	return false
}

// linkAnswer is a link as its stream sees it.
type linkAnswer link

// OnMessage hands a response on.
func (a *linkAnswer) OnMessage(b []byte) {
	l := (*link)(a)
	l.next, l.failed = l.to.base, false
	l.m.receive(b)
}

// OnClose tells of the end, and connects again.
func (a *linkAnswer) OnClose(status int, message string) {
	l := (*link)(a)
	l.g, l.held = nil, false
	l.gauge(stats.ControlPlaneConnectedState, 0)
	l.tell(status, message)
	l.m.down()
	l.again()
}

// tell logs the end of a stream. What often passes by itself is not worth a warning until it has lasted.
func (l *link) tell(status int, message string) {
	s := l.m.s
	const deadlineExceeded = 4
	name := l.path[strings.LastIndexByte(l.path, '/')+1:]
	closed := func(how string) string {
		return fmt.Sprintf("%s gRPC config stream to %s closed%s: %d, %s", name, l.to.cluster, how, status, message)
	}
	if status == async.GRPCOK {
		return
	}
	if status != async.GRPCUnavailable && status != async.GRPCUnknown && status != deadlineExceeded {
		s.warn(closed(""))
		return
	}
	now := s.Main.Now()
	lasted := time.Duration(now - l.since)
	switch {
	case !l.failed:
		l.failed, l.status, l.text, l.since = true, status, message, now
	case l.status != status:
		s.warn(closed("") + fmt.Sprintf(" (previously %d, %s since %ds ago)", l.status, l.text, int(lasted.Seconds())))
		l.status, l.text, l.since = status, message, now
	case lasted >= closeWarnAfter:
		s.warn(closed(fmt.Sprintf(" since %ds ago", int(lasted.Seconds()))))
	default:
		l.text = message
	}
}
