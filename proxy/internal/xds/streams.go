package xds

import (
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// Streams is the source of subscriptions to control planes over gRPC: one stream for all types (ADS), or one for each subscription.
// owner: main loop.
type Streams struct {
	Main    *event.Worker
	Store   *stats.Store
	Options config.Options
	// Client gives what requests are sent with. It is asked for from Start on.
	Client func() *async.Client
	// Node is who we are, a serialized envoy.config.core.v3.Node. It is set before Start.
	Node []byte
	// Inline reads responses on the main loop, for the simulation.
	Inline bool
	// Warn is told, in Envoy's words, of streams that end and of updates that are rejected; nil: nobody.
	Warn func(text string)

	ads   *mux
	own   []*mux       // of single subscriptions
	early []*streamSub // subscriptions that wait for Start, or Listen
	// started: streams may be opened. listening: so may subscriptions that only listeners need.
	started, listening bool
	reads              sync.WaitGroup
}

// adsPaths are the methods of ADS, in state of the world and in deltas.
var adsPaths = [2]string{
	"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
	"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
}

// methods are the services of single types, and the word in the names of their two methods.
var methods = map[string][2]string{
	xdstype.Cluster:         {"cluster.v3.ClusterDiscoveryService", "Clusters"},
	xdstype.Endpoint:        {"endpoint.v3.EndpointDiscoveryService", "Endpoints"},
	xdstype.Listener:        {"listener.v3.ListenerDiscoveryService", "Listeners"},
	xdstype.Route:           {"route.v3.RouteDiscoveryService", "Routes"},
	xdstype.ScopedRoute:     {"route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes"},
	xdstype.VirtualHost:     {"route.v3.VirtualHostDiscoveryService", "VirtualHosts"},
	xdstype.Secret:          {"secret.v3.SecretDiscoveryService", "Secrets"},
	xdstype.Runtime:         {"runtime.v3.RuntimeDiscoveryService", "Runtime"},
	xdstype.ExtensionConfig: {"extension.v3.ExtensionConfigDiscoveryService", "ExtensionConfigs"},
}

// pathOf is the method by which one type is asked for.
func pathOf(typeURL string, delta bool) string {
	m := methods[typeURL]
	verb := "Stream"
	if delta {
		verb = "Delta"
	}
	return "/envoy.service." + m[0] + "/" + verb + m[1]
}

// SetADS says where the aggregated discovery service is. It comes before all subscriptions; the source is checked before Start.
func (s *Streams) SetADS(a *corev3.ApiConfigSource) {
	to := newTarget(a)
	path := adsPaths[0]
	if to.delta {
		path = adsPaths[1]
	}
	s.ads = newMux(s, to, path, s.Store.Root())
}

// Start opens streams: what they need, the clusters of the bootstrap, is there.
func (s *Streams) Start() {
	s.started = true
	if s.ads != nil {
		s.ads.link.connect()
	}
	s.begin()
}

// Listen lets those subscriptions begin that only listeners need: there are clusters now.
func (s *Streams) Listen() {
	s.listening = true
	s.begin()
}

func (s *Streams) begin() {
	list := s.early
	s.early = nil
	for _, x := range list {
		if !x.closed {
			x.begin()
		}
	}
}

// may tells whether a subscription to a type may begin.
func (s *Streams) may(typeURL string) bool {
	forListeners := typeURL == xdstype.Route || typeURL == xdstype.ScopedRoute || typeURL == xdstype.ExtensionConfig
	return s.started && (s.listening || !forListeners)
}

// Subscribe subscribes by ads or api_config_source. The source was checked.
func (s *Streams) Subscribe(from *corev3.ConfigSource, typeURL string, names []string, st sub.Stats, cb sub.Callbacks) sub.Subscription {
	x := &streamSub{s: s, names: slices.Clone(names), stats: st, cb: cb, wait: defaultFetchTimeout}
	if d := from.GetInitialFetchTimeout(); d != nil {
		x.wait = d.AsDuration()
	}
	x.timer.Fn = x.timeout
	if a := from.GetApiConfigSource(); a != nil {
		to := newTarget(a)
		m := newMux(s, to, pathOf(typeURL, to.delta), st.Scope)
		s.own = append(s.own, m)
		x.m, x.alone = m, true
	} else {
		x.m = s.ads
	}
	x.k = x.m.unplaced(typeURL)
	x.begin()
	return x
}

// Pause holds requests of ADS for some types back until resume is called, so that what changes meanwhile is asked for at once.
func (s *Streams) Pause(typeURLs ...string) (resume func()) {
	if s.ads == nil {
		return func() {}
	}
	var list []*kind
	for _, u := range typeURLs {
		k := s.ads.byURL[u]
		if k == nil { // it will have its place when somebody subscribes
			k = s.ads.unplaced(u)
		}
		k.pause()
		list = append(list, k)
	}
	return func() {
		for _, k := range list {
			k.resume()
		}
	}
}

// Close ends all streams and subscriptions. owner: main loop.
func (s *Streams) Close() {
	if s.ads != nil {
		s.ads.close()
	}
	for _, m := range s.own {
		m.close()
	}
	s.own = nil
}

// Wait waits for responses that are being read. The main loop has ended.
func (s *Streams) Wait() { s.reads.Wait() }

func (s *Streams) warn(text string) {
	if s.Warn != nil {
		s.Warn(text)
	}
}

// defaultFetchTimeout is how long the start waits for a first answer, if the source does not say.
const defaultFetchTimeout = 15 * time.Second

// streamSub is one subscription to a mux. owner: main loop.
type streamSub struct {
	s      *Streams
	m      *mux
	k      *kind
	names  []string // none: all
	stats  sub.Stats
	cb     sub.Callbacks
	wait   time.Duration // for the first answer, 0: for ever
	timer  event.Timer
	alone  bool // the mux is its own
	began  bool
	seen   bool // it was shown something
	noted  bool // it is among those that a response is shown to last
	closed bool
}

// begin begins to ask, if the time has come.
func (x *streamSub) begin() {
	if !x.s.may(x.k.url) {
		x.s.early = append(x.s.early, x)
		return
	}
	x.began = true
	x.s.Main.Stats.Inc(x.stats.Attempt)
	if x.wait > 0 {
		x.s.Main.Arm(&x.timer, x.wait)
	}
	x.m.kind(x.k.url).add(x)
	if x.alone {
		x.m.link.connect()
	}
}

// SetNames changes which resources are wanted.
func (x *streamSub) SetNames(list []string) {
	if x.closed {
		return
	}
	if !x.began {
		x.names = slices.Clone(list)
		return
	}
	resume := x.pauseOwn()
	x.k.remove(x)
	x.names, x.seen = slices.Clone(list), false
	x.k.add(x)
	resume()
}

func (x *streamSub) pauseOwn() func() {
	x.k.pause()
	return x.k.resume
}

// Close ends the subscription.
func (x *streamSub) Close() {
	if x.closed {
		return
	}
	x.closed = true
	x.s.Main.Remove(&x.timer)
	if x.began {
		x.k.remove(x)
	}
	if x.alone {
		x.m.close()
		x.s.own = slices.DeleteFunc(x.s.own, func(m *mux) bool { return m == x.m })
	}
}

// answered ends the wait for the first answer.
func (x *streamSub) answered() { x.s.Main.Disarm(&x.timer) }

// timeout is the end of the wait for the first answer.
func (x *streamSub) timeout() {
	st := x.s.Main.Stats
	st.Inc(x.stats.FetchTimeout)
	st.Inc(x.stats.Attempt)
	x.cb.OnFailure(sub.FetchTimeout, nil)
}

// unreachable tells that there is no stream for now.
func (x *streamSub) unreachable() {
	st := x.s.Main.Stats
	st.Inc(x.stats.Failure)
	st.Inc(x.stats.Attempt)
	if !x.closed {
		x.cb.OnFailure(sub.ConnectionFailure, nil)
	}
}
