// Package router is the terminal HTTP filter: it takes a request's route, picks a host, gets a stream from a pool, and carries
// the exchange, with timeouts, retries and the replies that it makes when there is nothing to carry.
//
// A Router belongs to one stream and its worker; routers and attempts are reused through worker-local lists.
package router

import (
	"math"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
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
	// StrictHeaders are x-envoy-* headers whose values must parse.
	StrictHeaders []string
	// Clusters finds clusters by name, for cluster_header.
	Clusters *cluster.Manager
	// Stats is stats.Router.
	Stats astats.GroupBase
	// Runtime answers runtime keys; nil: defaults.
	Runtime route.RuntimeReader
}

// Factory makes routers. It is the filter.Factory of envoy.filters.http.router.
type Factory struct{ Config Config }

// Sides says that the router makes responses and does not see them pass.
func (f *Factory) Sides() filter.Sides { return filter.Decoder }

// New returns a router for one stream.
func (f *Factory) New(d network.Dispatcher) filter.Filter {
	w := d.(interface{ Worker() *event.Worker }).Worker()
	r := locals.Get(w).get()
	r.cfg, r.w = &f.Config, w
	return r
}

// Router is one request's. owner: the stream's worker.
type Router struct {
	filter.PassThrough
	cfg *Config
	w   *event.Worker
	l   *local
	cb  fm.Terminal

	rt      *route.Entry
	cluster *cluster.Cluster
	head    *http.HeaderMap
	try     *attempt // the current attempt
	final   *attempt // the attempt whose response is being sent
	tries   []*host.Host
	pick    lb.Context

	timeout time.Duration
	perTry  time.Duration
	timer   event.Timer // of the whole request
	backoff event.Timer

	body     buffer.Buffer // the request so far, kept for retries
	trailers *http.HeaderMap
	retry    retryState

	attempts  int
	ended     bool // the whole request is here
	sent      bool // a response's head went to the client
	done      bool
	above     bool // the client does not keep up
	held      bool // we hold the client back
	keepBody  bool
	inTimeout bool
	waiting   bool // in back-off
	watch     func(bool)
}

// DecodeHeaders begins the request.
func (r *Router) DecodeHeaders(h *http.HeaderMap, end bool) filter.HeadersStatus {
	r.cb = r.CB.(fm.Terminal)
	r.head, r.ended = h, end
	r.body.Init(&r.w.Bufs)
	rt, _ := r.cb.Route().(*route.Entry)
	r.count(stats.RouterRqTotal)
	if rt == nil {
		r.count(stats.RouterNoRoute)
		r.cb.Info().Flags.Set(stream.NoRouteFound)
		r.reply(404, "", "route_not_found")
		return filter.HeadersStopIteration
	}
	r.rt = rt
	switch rt.Kind {
	case route.Forward:
		r.forward(h, end)
	case route.Direct:
		r.count(stats.RouterRqDirectResponse)
		r.direct()
	case route.Redirect:
		r.count(stats.RouterRqRedirect)
		r.redirect(h)
	default:
		r.count(stats.RouterNoRoute)
		r.reply(404, "", "route_not_found")
	}
	return filter.HeadersStopIteration
}

// count counts what became of a request.
func (r *Router) count(i astats.CounterIndex) { r.w.Stats.Inc(r.cfg.Stats.Counter(i)) }

// forward sends the request to a cluster.
func (r *Router) forward(h *http.HeaderMap, end bool) {
	info := r.cb.Info()
	slot := r.rt.Slot
	if slot == nil && r.rt.ClusterHeader != "" && r.cfg.Clusters != nil {
		if name, ok := h.GetName(r.rt.ClusterHeader); ok {
			slot = r.cfg.Clusters.Lookup(name)
		}
	}
	var c *cluster.Cluster
	if slot != nil {
		c = slot.Load()
	}
	if c == nil {
		r.count(stats.RouterNoCluster)
		info.Flags.Set(stream.NoClusterFound)
		r.reply(r.rt.NotFoundCode, "", "cluster_not_found")
		return
	}
	r.cluster = c
	info.ClusterName, info.ClusterNameRaw = c.ObservabilityName(), c.Name()
	if c.MaintenanceMode() {
		info.Flags.Set(stream.UpstreamOverflow)
		r.w.Stats.Inc(c.Stats().Counter(stats.ClusterUpstreamRqMaintenanceMode))
		r.chargeLocal(503)
		r.replyWith(503, "maintenance mode", "maintenance_mode", overloaded)
		return
	}
	r.timeouts(h)
	r.retry.begin(r, h)
	r.keepBody = r.retry.on != 0 && !end
	r.rewrite(h)
	r.start(false)
	if end {
		r.requestEnded()
	}
}

// start makes an attempt: a host, its pool, a stream of it.
func (r *Router) start(isRetry bool) {
	r.attempts++
	info := r.cb.Info()
	info.Attempts = r.attempts
	r.pick = lb.Context{W: r.w, Headers: r.head}
	ctx := &r.pick
	if isRetry {
		ctx.Exclude = r.retry.exclude(r)
	}
	if hp := r.rt.HashPolicy; hp != nil {
		ctx.Hash, ctx.HasHash = hp.Hash(&route.Request{Headers: r.head, Info: info})
	}
	h := r.cluster.Pick(ctx)
	if h == nil {
		info.Flags.Set(stream.NoHealthyUpstream)
		r.w.Stats.Inc(r.cluster.Stats().Counter(stats.ClusterUpstreamCxNoneHealthy))
		r.chargeLocal(503)
		r.reply(503, "no healthy upstream", "no_healthy_upstream")
		return
	}
	if r.rt.Retry != nil && r.rt.Retry.PreviousHosts {
		r.tries = append(r.tries, h)
	}
	if r.rt.AutoHostRewrite && h.Hostname != "" {
		r.head.SetConst(http.Authority, h.Hostname)
	}
	if r.rt.AttemptsInRequest {
		r.head.SetConst(http.EnvoyAttemptCount, r.number(r.attempts))
	}
	a := r.l.attempt()
	a.begin(r, h)
	r.try = a
	prio := 0
	if r.rt.HighPriority {
		prio = 1
	}
	a.startPool(r.cluster.Pool(r.w, h, prio, info.Protocol))
}

// DecodeData sends body bytes to the attempt, keeping a copy while a retry is possible.
func (r *Router) DecodeData(data *buffer.Buffer, end bool) filter.DataStatus {
	r.ended = r.ended || end
	if r.done || r.cluster == nil {
		data.Reset()
		return filter.DataStopIterationNoBuffer
	}
	if r.keepBody && !r.keep(data) {
		return filter.DataStopIterationNoBuffer
	}
	if r.try != nil {
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
	limit := r.cb.BufferLimit()
	if limit > 0 && r.body.Len()+data.Len() > limit {
		r.w.Stats.Inc(r.cluster.Stats().Counter(stats.ClusterRetryOrShadowAbandoned))
		if r.try == nil && r.waiting {
			r.reply(507, "exceeded request buffer limit while retrying upstream", "request_payload_exceeded_retry_buffer_limit")
			return false
		}
		r.keepBody = false
		r.retry.on = 0
		if a := r.try; a != nil && a.waiting && r.attempts > 1 {
			a.pending.Move(&r.body) // it has not sent what was kept
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

// DecodeTrailers ends the request.
func (r *Router) DecodeTrailers(t *http.HeaderMap) filter.TrailersStatus {
	r.ended = true
	r.trailers = t
	if r.done || r.cluster == nil {
		return filter.TrailersStopIteration
	}
	if r.try != nil {
		r.try.sendTrailers(t)
	}
	if !r.done {
		r.requestEnded()
	}
	return filter.TrailersStopIteration
}

// requestEnded starts the clock: the route's timeout counts from the request's end.
func (r *Router) requestEnded() {
	if r.done || r.timeout == 0 || r.timer.Armed() {
		return
	}
	r.w.Arm(&r.timer, r.timeout)
}

// OnDestroy gives up what is under way.
func (r *Router) OnDestroy() {
	r.done = true
	r.w.Disarm(&r.timer)
	r.w.Disarm(&r.backoff)
	if a := r.try; a != nil {
		r.try = nil
		a.abandon()
	}
	if a := r.final; a != nil {
		r.final = nil
		a.abandon()
	}
	r.body.Reset()
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
		a.readDisable(above)
	}
}

// Next: proxy/internal/cluster/pick.go
