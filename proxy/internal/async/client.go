// Package async is the proxy's own HTTP client on its own clusters: what filters, xDS and gRPC services send their requests with.
//
// A request runs through a router of its own, so that host selection, pools, circuit breakers, retries, timeouts and the cluster's
// stats are those of an ordinary request; what the router itself counts is under "http.async-client." as in Envoy. A Stream
// belongs to the worker that it was started on (the main loop is one). It never calls back from within a call to it.
package async

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/router"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Client sends requests. It is immutable and shared by all workers.
type Client struct {
	clusters *cluster.Manager
	chain    *fm.Chain
	stats    astats.GroupBase // stats.Router
	forward  string
}

// Deps is what a Client needs of its surroundings.
type Deps struct {
	Clusters *cluster.Manager
	// Root is the root of all stats.
	Root astats.Scope
	// LocalAddress is what goes into x-forwarded-for, "" for nothing.
	LocalAddress string
	Runtime      route.RuntimeReader
}

// New returns a Client. owner: main loop.
func New(d Deps) *Client {
	c := &Client{clusters: d.Clusters, forward: d.LocalAddress, stats: d.Root.Scope("http.async-client").Group(stats.Router)}
	r := &router.Factory{Config: router.Config{DynamicStats: true, Clusters: d.Clusters, Stats: c.stats, Runtime: d.Runtime}}
	c.chain = &fm.Chain{Entries: []fm.Entry{{Name: "envoy.filters.http.router", Factory: r}}}
	return c
}

// Options say how to send a request.
type Options struct {
	Cluster string
	// Timeout is that of the whole exchange from the end of the request, 0 for none.
	Timeout time.Duration
	// ForwardedFor appends the proxy's own address to x-forwarded-for.
	ForwardedFor bool
	// Retry is when to try again; nil: never.
	Retry *route.RetryPolicy
	// BufferLimit bounds what is kept of the request for a retry, 0: not bounded.
	BufferLimit int
	// chain replaces the client's own router; nil mostly.
	chain *fm.Chain
}

// Handler gets the answer's events, on the stream's worker, never from within a call to the Stream. After an event with end, or
// OnReset, comes none. A handler may reset the stream in any of them.
type Handler interface {
	// OnHeaders gets the head, which is valid until the stream's last event, and a local reply's too: see Stream.Reply.
	OnHeaders(h *http.HeaderMap, end bool)
	// OnData gets body bytes, which are borrowed: who keeps them moves them out of data.
	OnData(data *buffer.Buffer, end bool)
	OnTrailers(h *http.HeaderMap)
	// OnReset: the answer broke off. details says why, in the words of response_code_details.
	OnReset(reason http.ResetReason, details string)
	// OnAboveHighWatermark and OnBelowLowWatermark: the upstream does not keep up with the request, or does again.
	OnAboveHighWatermark()
	OnBelowLowWatermark()
}

// Start returns a new stream to a cluster. Nothing is sent before SendHeaders. The only error is filter.ErrNoCluster.
// owner: w.
func (c *Client) Start(w *event.Worker, o *Options, hd Handler) (*Stream, error) {
	slot := c.clusters.Lookup(o.Cluster)
	if slot == nil || slot.Load() == nil {
		w.Stats.Inc(c.stats.Counter(stats.RouterNoCluster))
		return nil, filter.ErrNoCluster
	}
	s := locals.Get(w).get()
	s.begin(c, o, hd, slot)
	return s, nil
}
