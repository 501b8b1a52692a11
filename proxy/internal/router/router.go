// Package router is the terminal HTTP filter: it takes a request's route, picks a host, gets a stream from a pool, and carries
// the exchange, with timeouts, retries and the replies that it makes when there is nothing to carry.
//
// A Router belongs to one stream and its worker; routers and attempts are reused through worker-local lists.
package router

import (
	"math"
	"time"

	aaccesslog "github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/spill"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Config is what the router filter was configured to do.
type Config struct {
	// SuppressEnvoyHeaders keeps x-envoy-* out of what is sent either way.
	SuppressEnvoyHeaders bool
	// RespectExpectedTimeout takes x-envoy-expected-rq-timeout-ms as the request's timeout.
	RespectExpectedTimeout bool
	// DynamicStats counts per response code.
	DynamicStats bool
	// SuppressGRPCFailureStats counts no codes of gRPC requests.
	SuppressGRPCFailureStats bool
	// StrictHeaders are x-envoy-* headers whose values must parse.
	StrictHeaders []string
	// Clusters finds clusters by name, for cluster_header.
	Clusters *cluster.Manager
	// Stats is stats.Router.
	Stats astats.GroupBase
	// Runtime answers runtime keys; nil: defaults.
	Runtime route.RuntimeReader
	// Spill keeps bodies that are too large for memory, where routes ask for it; nil: memory only.
	Spill *spill.Store
	// Shadows starts the copies of mirrored requests; nil: there are none.
	Shadows Shadows
	// UpstreamLogs log each attempt when it ends, if UpstreamLogReady when it has its stream, too, and every UpstreamLogInterval (0:
	// never).
	UpstreamLogs        aaccesslog.Loggers
	UpstreamLogReady    bool
	UpstreamLogInterval time.Duration
	// UpstreamChain is the filters that attempts go through unless their cluster has its own; nil: none.
	UpstreamChain *fm.Chain

	shadows *fm.Chain // the router of copies: as configured, but it counts elsewhere
}

// Factory makes routers. It is the filter.Factory of envoy.filters.http.router.
type Factory struct{ Config Config }

// NewFactory returns a Factory.
func NewFactory(c Config) *Factory {
	f := &Factory{Config: c}
	if c.Shadows != nil {
		c.Stats, c.Shadows = c.Shadows.Stats(), nil
		f.Config.shadows = &fm.Chain{Entries: []fm.Entry{{Name: "envoy.filters.http.router", Factory: &Factory{Config: c}}}}
	}
	return f
}

// Close gives back what the configuration holds. owner: main loop.
func (f *Factory) Close() { accesslog.ReleaseAll(f.Config.UpstreamLogs) }

// Sides says that the router makes responses and does not see them pass.
func (f *Factory) Sides() filter.Sides { return filter.Decoder }

// New returns a router for one stream.
func (f *Factory) New(d network.Dispatcher) filter.Filter {
	w := d.(interface{ Worker() *event.Worker }).Worker()
	r := locals.Get(w).get()
	r.cfg = &f.Config
	return r
}

// Router is one request's. owner: the stream's worker.
type Router struct {
	filter.PassThrough
	w *event.Worker
	l *local

	timer   event.Timer  // of the whole request
	backoff *event.Timer // made when it is needed
	watch   func(bool)
	body    buffer.Buffer // the request so far, kept for retries
	*aside                // never nil; see more

	routerState
}

// aside is what few requests need; the others share one that is empty.
type aside struct {
	tries   []*host.Host      // hosts that were tried, if that matters
	slow    []*attempt        // attempts that go on beside the current one (hedging)
	shadows []*shadow         // copies that have not been sent whole (mirroring)
	cookies []string          // that hash policies made for the client
	answer  filter.LocalReply // of a route that answers itself
}

// routerState is what is zero at the beginning of each request.
type routerState struct {
	cfg  *Config
	cb   fm.Terminal
	info *stream.Info

	rt       *route.Entry
	cluster  *cluster.Cluster
	host     *host.Host // of the last attempt
	head     *http.HeaderMap
	trailers *http.HeaderMap
	try      *attempt // the current attempt
	final    *attempt // the attempt whose response is being sent
	// answered is the attempt whose response has arrived whole: encoding filters may hold its head until the stream's end.
	answered *attempt
	retry    retryState
	keeper   *keeper     // nil mostly
	prios    *priorities // nil mostly
	names    pool.Names
	policies *route.ClusterPolicies // the cluster's; nil mostly
	also     alsoState
	// hash is what the hash policies said, if hashed.
	hash uint64

	timeout     time.Duration
	perTry      time.Duration
	perTryIdle  time.Duration
	maxDuration time.Duration // of an attempt
	completed   int64         // when the whole request was here

	attempts  int32
	hashed    bool
	ended     bool // the whole request is here
	headOnly  bool // it is a head without a body
	sent      bool // a response's head went to the client
	informed  bool // an informational one did
	done      bool
	above     bool // the client does not keep up
	held      bool // we hold the client back
	keepBody  bool
	waiting   bool // in back-off
	internal  bool // the client is
	grpc      bool
	altCode   bool // timeouts are answered with 204
	timedOut  bool // the last attempt was
	resent    bool // the request was sent again without a retry policy
	websocket bool
	connect   bool
	hedge     bool // a per-try timeout does not end the attempt
}

// DecodeHeaders begins the request.
func (r *Router) DecodeHeaders(h *http.HeaderMap, end bool) filter.HeadersStatus {
	r.cb = r.CB.(fm.Terminal)
	r.info = r.cb.Info()
	r.head, r.ended = h, end
	r.body.Init(&r.w.Bufs)
	r.internal = h.Has(http.EnvoyInternal) && h.Get(http.EnvoyInternal) == "true"
	r.count(stats.RouterRqTotal)
	rt, _ := r.cb.Route().(*route.Entry)
	if rt == nil {
		r.count(stats.RouterNoRoute)
		r.info.Flags.Set(stream.NoRouteFound)
		r.reply(404, "", "route_not_found")
		return filter.HeadersStopIteration
	}
	r.rt = rt
	switch rt.Kind {
	case route.Direct, route.Redirect:
		r.count(stats.RouterRqDirectResponse)
		r.direct(h)
	default:
		r.forward(h, end)
	}
	return filter.HeadersStopIteration
}

// count counts what became of a request.
func (r *Router) count(i astats.CounterIndex) { r.w.Stats.Inc(r.cfg.Stats.Counter(i)) }

// inc counts in the cluster.
func (r *Router) inc(i astats.CounterIndex) { r.w.Stats.Inc(r.cluster.Stats().Counter(i)) }

// target finds the route's cluster, nil if there is none now.
func (r *Router) target(h *http.HeaderMap) *cluster.Cluster {
	slot := r.rt.Slot
	if slot == nil && r.rt.ClusterHeader != "" && r.cfg.Clusters != nil {
		if name, ok := h.GetName(r.rt.ClusterHeader); ok {
			slot = r.cfg.Clusters.Lookup(name)
		}
	}
	if slot == nil {
		return nil
	}
	return slot.Load()
}

// forward sends the request to a cluster.
func (r *Router) forward(h *http.HeaderMap, end bool) {
	c := r.target(h)
	if c == nil {
		r.count(stats.RouterNoCluster)
		r.info.Flags.Set(stream.NoClusterFound)
		r.reply(r.rt.NotFoundCode, "", "cluster_not_found")
		return
	}
	r.cluster = c
	r.info.ClusterName, r.info.ClusterNameRaw = c.ObservabilityName(), c.Name()
	r.also.begin(r, h)
	r.grpc = h.Has(http.ContentType) && isGRPC(h.Get(http.ContentType))
	if !r.strict(h) {
		return
	}
	if c.MaintenanceMode() {
		r.info.Flags.Set(stream.UpstreamOverflow)
		r.chargeLocal(503, true)
		r.inc(stats.ClusterUpstreamRqMaintenanceMode)
		r.replyWith(503, "maintenance mode", "maintenance_mode", overloaded)
		return
	}
	if p := c.Pools().Policies; p != nil {
		r.policies, _ = p.(*route.ClusterPolicies)
	}
	r.attempts, r.info.Attempts = 1, 1
	if o := c.Pools(); o.AutoSNI || o.AutoSAN {
		r.name(h, o.Options)
	}
	r.hedging(h)
	r.timeouts(h)
	if r.rt.AttemptsInRequest {
		h.SetConst(http.EnvoyAttemptCount, "1")
	}
	r.retry.begin(r, h)
	r.headOnly = end
	r.keepBody = (r.retry.on != 0 || r.rt.InternalRedirect != nil) && !end
	if o := r.rt.RetryBuffer; o != nil && r.keepBody && r.retry.on != 0 && r.upstreamChain() == nil {
		r.keeping(o)
	}
	r.rewrite(h)
	// The host is for the request as the upstream gets it: hash policies see what the route has made of it.
	to := r.choose(false)
	if to == nil {
		r.noHost()
		return
	}
	r.websocket = h.Has(http.Upgrade) && http.EqualFold(h.Get(http.Upgrade), "websocket")
	r.connect = h.Get(http.Method) == "CONNECT"
	mirrors := r.rt.Mirrors
	if own := r.policies; own != nil && own.Mirrors != nil {
		mirrors = own.Mirrors
	}
	if mirrors != nil {
		r.mirror(mirrors, end)
	}
	r.start(to)
	if r.websocket && !end {
		r.handshakes()
	}
	if end {
		r.requestEnded()
	}
}

// start makes an attempt on a host: its pool, a stream of it.
func (r *Router) start(h *host.Host) {
	a := r.prepare(h)
	if c := r.upstreamChain(); c != nil {
		a.filtered(c)
	}
	if r.rt.Connect != nil && r.raw() {
		a.dial()
	} else {
		a.startPool(r.cluster.PoolFor(r.w, h, r.priority(), r.info.Protocol, r.names))
	}
	if a.chained {
		a.feed()
	}
}

// prepare begins an attempt on a host that has not asked for a stream yet.
func (r *Router) prepare(h *host.Host) *attempt {
	r.host = h
	if r.retry.policy != nil {
		r.remember(h)
	}
	a := r.l.attempt()
	a.begin(r, h)
	r.try = a
	return a
}

// again makes another attempt after the back-off.
func (r *Router) again() {
	r.attempts++
	r.info.Attempts = int(r.attempts)
	h := r.choose(true)
	if h == nil {
		r.noHost()
		return
	}
	if r.rt.AttemptsInRequest {
		r.head.SetConst(http.EnvoyAttemptCount, r.number(int(r.attempts)))
	}
	if r.rt.TimeoutRetryHeader {
		v := "false"
		if r.timedOut {
			v = "true"
		}
		r.head.SetConst(http.EnvoyIsTimeoutRetry, v)
	}
	var elapsed time.Duration
	if r.completed > 0 {
		elapsed = time.Duration(r.w.Now() - r.completed)
	}
	r.timeoutHeaders(r.head, elapsed)
	r.start(h)
}

// moveTo makes c the request's cluster: it may have been updated since.
func (r *Router) moveTo(c *cluster.Cluster) {
	if c == r.cluster {
		return
	}
	taken := r.retry.taken
	r.retry.end(r)
	r.cluster = c
	r.info.ClusterName, r.info.ClusterNameRaw = c.ObservabilityName(), c.Name()
	if taken {
		r.retry.taken = true
		c.Resources(r.priority()).Retries.Force()
	}
}

// retarget finds the cluster for the next attempt: the route's as it is now, or with refresh_cluster_on_retry the one that its
// specifier names now. false: there is none, and the request was answered.
func (r *Router) retarget() bool {
	refreshed := false
	if p := r.retry.policy; p != nil && p.RefreshCluster {
		if e := r.rt.Refreshed(&route.Request{Headers: r.head, Info: r.info, Runtime: r.cfg.Runtime}); e != nil {
			r.rt, refreshed = e, true
		}
	}
	c := r.target(r.head)
	switch {
	case c != nil:
		r.moveTo(c)
	case refreshed:
		r.info.ClusterName, r.info.ClusterNameRaw = "", ""
		r.info.Flags.Set(stream.NoHealthyUpstream)
		r.reply(503, "no healthy upstream", "no_healthy_upstream")
		return false
	}
	return true
}

// DecodeData sends body bytes to the attempt, keeping a copy while a retry is possible.
func (r *Router) DecodeData(data *buffer.Buffer, end bool) filter.DataStatus {
	r.ended = r.ended || end
	if r.done || r.cluster == nil {
		data.Reset()
		return filter.DataStopIterationNoBuffer
	}
	if len(r.shadows) > 0 {
		r.shadowData(data, end)
	}
	switch {
	case r.keeper != nil:
		r.keeper.add(data, end)
	case r.keepBody && !r.keep(data):
		return filter.DataStopIterationNoBuffer
	case r.try != nil:
		r.try.data(data, end)
	}
	data.Reset()
	if end && !r.done {
		r.requestEnded()
	}
	return filter.DataStopIterationNoBuffer
}

// keep copies data for a retry. Past the limit the retry is given up, silently if an attempt is under way, with 507 if none is
// (the body would be lost). false: the request was answered.
func (r *Router) keep(data *buffer.Buffer) bool {
	limit, ok := r.bufferLimit()
	if ok && r.body.Len()+data.Len() > limit {
		r.abandoned(&overBuffer)
		if r.try == nil && r.waiting {
			r.endConnection()
			r.reply(507, "exceeded request buffer limit while retrying upstream", "request_payload_exceeded_retry_buffer_limit")
			return false
		}
		r.keepBody = false
		r.retry.on = 0
		if a := r.try; a != nil && a.waiting && r.attempts > 1 {
			a.later().Move(&r.body) // it has not sent what was kept
		}
		r.body.Reset()
		return true
	}
	if r.try == nil {
		r.body.Move(data)
		return true
	}
	// The attempt's codec takes data away; what is kept must be a copy.
	for _, run := range data.Slices(nil, math.MaxInt) {
		r.body.Append(run)
	}
	return true
}

// endConnection makes the client's connection end with the request, which is answered in its middle.
func (r *Router) endConnection() {
	if e, ok := r.cb.Owner().(fm.Ender); ok {
		e.EndConnection()
	}
}

// DecodeTrailers ends the request.
func (r *Router) DecodeTrailers(t *http.HeaderMap) filter.TrailersStatus {
	r.ended = true
	r.trailers = t
	if r.done || r.cluster == nil {
		return filter.TrailersStopIteration
	}
	if len(r.shadows) > 0 {
		r.shadowTrailers(t)
	}
	if r.keeper != nil {
		r.keeper.goOn()
	} else if r.try != nil {
		r.try.sendTrailers(t)
	}
	if !r.done {
		r.requestEnded()
	}
	return filter.TrailersStopIteration
}

// requestEnded starts the clock: the route's timeout counts from the request's end.
func (r *Router) requestEnded() {
	r.completed = r.w.Now()
	if r.done || r.timeout == 0 || r.timer.Armed() {
		return
	}
	r.w.Arm(&r.timer, r.timeout)
}

// OnStreamComplete notes what attempts that are under way took on the wire, for access logs.
func (r *Router) OnStreamComplete() {
	if r.cluster == nil {
		return
	}
	r.underWay(func(a *attempt) {
		if a.open {
			a.countWire()
		}
	})
}

// OnDestroy gives up what is under way.
func (r *Router) OnDestroy() {
	r.done = true
	r.w.Disarm(&r.timer)
	r.w.Disarm(r.backoff)
	if a := r.try; a != nil {
		r.try = nil
		a.drop()
	}
	if a := r.final; a != nil {
		r.final = nil
		a.drop()
	}
	r.dropSlow(nil)
	if len(r.shadows) > 0 {
		r.leaveShadows(Shadow.Cancel)
	}
	if a := r.answered; a != nil {
		r.answered = nil
		if a.chained {
			a.endFilters()
		}
		a.l.putAttempt(a)
	}
	r.body.Reset()
	if r.keeper != nil {
		r.keeper.close()
	}
	r.retry.end(r)
	r.l.put(r)
}

// hold stops and lets go of the client while the upstream does not keep up.
func (r *Router) hold(on bool) {
	if r.held == on {
		return
	}
	r.held = on
	r.cb.ReadDisable(on)
}

// onClient is told when the client does not keep up with the response.
func (r *Router) onClient(above bool) {
	r.above = above
	if a := r.final; a != nil {
		a.readDisable(above || a.choked)
	}
}

// StaticMetadata gives access to the metadata of the cluster and of the last attempt's host.
func (r *Router) StaticMetadata(kind stream.MetadataKind, namespace string) map[string]any {
	switch {
	case kind == stream.ClusterMetadata && r.cluster != nil:
		return r.cluster.Metadata()[namespace]
	case kind == stream.HostMetadata && r.host != nil:
		if m := r.host.Metadata(); m != nil {
			return m.Spaces[namespace]
		}
	}
	return nil
}

func isGRPC(contentType string) bool {
	const g = "application/grpc"
	return len(contentType) >= len(g) && contentType[:len(g)] == g && (len(contentType) == len(g) || contentType[len(g)] == '+')
}

// Next: proxy/internal/cluster/pick.go
