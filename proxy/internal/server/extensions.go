package server

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/internal/gap"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/router"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// extensions finds extensions by the messages that configure them. It is built once.
type extensions struct {
	s       *Server
	http    map[string]*ext.HTTPFilter
	network map[string]*ext.NetworkFilter
	listen  map[string]*ext.ListenerFilter
	byRoute map[string]*ext.HTTPFilter
	gaps    map[protoreflect.FullName]*gap.Table // of their messages
	off     map[string]bool                      // --disable-extensions: category/name
}

func newExtensions(s *Server, set ext.Set) (*extensions, error) {
	x := &extensions{s: s, http: map[string]*ext.HTTPFilter{}, network: map[string]*ext.NetworkFilter{},
		listen: map[string]*ext.ListenerFilter{}, byRoute: map[string]*ext.HTTPFilter{}, gaps: map[protoreflect.FullName]*gap.Table{},
		off: map[string]bool{}}
	if s != nil {
		for _, n := range s.cfg.Options.CommandLine.DisabledExtensions {
			x.off[n] = true
		}
	}
	if r := x.router(); !x.off["envoy.filters.http/"+r.Name] {
		set.HTTPFilters = append([]ext.HTTPFilter{r}, set.HTTPFilters...)
	}
	for i := range set.HTTPFilters {
		f := &set.HTTPFilters[i]
		if err := register(x.http, f.TypeURLs, f, func(o *ext.HTTPFilter) string { return o.Name }); err != nil {
			return nil, err
		}
		urls := f.RouteTypeURLs
		if urls == nil {
			urls = f.TypeURLs
		}
		for _, u := range urls {
			x.byRoute[u] = f
		}
		x.refuse(f.Messages(), f.Refused)
	}
	for i := range set.NetworkFilters {
		f := &set.NetworkFilters[i]
		if err := register(x.network, f.TypeURLs, f, func(o *ext.NetworkFilter) string { return o.Name }); err != nil {
			return nil, err
		}
		x.refuse(f.TypeURLs, f.Refused)
	}
	for i := range set.ListenerFilters {
		f := &set.ListenerFilters[i]
		if err := register(x.listen, f.TypeURLs, f, func(o *ext.ListenerFilter) string { return o.Name }); err != nil {
			return nil, err
		}
		x.refuse(f.TypeURLs, f.Refused)
	}
	return x, nil
}

// has tells whether the extension is there that a message configures; of a message that configures none it is true.
func (x *extensions) has(message string) bool {
	return x.http[message] != nil || x.byRoute[message] != nil || x.network[message] != nil || x.listen[message] != nil ||
		slices.ContainsFunc(engineExtensions, func(e engineExtension) bool { return slices.Contains(e.urls, message) }) ||
		slices.Contains(engineMessages, message) || !config.OfEnvoy(message)
}

// Has returns a function that tells whether a proxy with the extensions in set has the one that a message configures; of a message
// that configures none it tells true.
func Has(set ext.Set) (func(message string) bool, error) {
	x, err := newExtensions(nil, set)
	if err != nil {
		return nil, err
	}
	return x.has, nil
}

// refuse keeps which fields of an extension's messages are refused.
func (x *extensions) refuse(messages, rows []string) {
	for _, t := range gap.ForExtension(messages, rows) {
		x.gaps[protoreflect.FullName(t.Message())] = t
	}
}

// payload decodes what configures an extension, and refuses what the extension does not have.
func (x *extensions) payload(a *anypb.Any) (proto.Message, error) {
	m, err := payload(a)
	if err == nil {
		err = x.check(m)
	}
	return m, err
}

// check refuses the fields of an extension's message that the extension does not have. The paths begin at its typed_config.
func (x *extensions) check(m proto.Message) error {
	if m == nil {
		return nil
	}
	if t := x.gaps[m.ProtoReflect().Descriptor().FullName()]; t != nil {
		return config.Refuse(t, m, "typed_config.")
	}
	return nil
}

func register[T any](m map[string]*T, urls []string, v *T, name func(*T) string) error {
	for _, u := range urls {
		if old := m[u]; old != nil {
			return fmt.Errorf("extensions %s and %s both claim the configuration message %s", name(old), name(v), u)
		}
		m[u] = v
	}
	return nil
}

// router is the terminal filter, an extension like any other but for the engine's Terminal callbacks.
func (x *extensions) router() ext.HTTPFilter {
	return ext.HTTPFilter{
		Info: ext.Info{Name: "envoy.filters.http.router", TypeURLs: []string{routerMessage},
			Posture: ext.RobustToUntrustedDownstreamAndUpstream, Refused: routerRefused},
		Terminal: true,
		New: func(m proto.Message, ctx ext.FactoryContext) (filter.Factory, error) {
			p := m.(*routerv3.Router)
			chain, err := x.upstreamChain(p.UpstreamHttpFilters, "upstream_http_filters", true, ctx.Scope())
			if err != nil {
				return nil, err
			}
			logs, err := x.s.accessLogs(p.UpstreamLog)
			if err != nil {
				return nil, config.At("upstream_log", err)
			}
			o := p.GetUpstreamLogOptions()
			return router.NewFactory(router.Config{
				UpstreamChain: chain, UpstreamLogs: logs, UpstreamLogReady: o.GetFlushUpstreamLogOnUpstreamStream(),
				UpstreamLogInterval:  o.GetUpstreamLogFlushInterval().AsDuration(),
				SuppressEnvoyHeaders: p.SuppressEnvoyHeaders, RespectExpectedTimeout: p.RespectExpectedRqTimeout,
				DynamicStats: p.DynamicStats == nil || p.DynamicStats.Value, StrictHeaders: p.StrictCheckHeaders, Clusters: x.s.clusters,
				SuppressGRPCFailureStats: p.SuppressGrpcRequestFailureCodeStats,
				Stats:                    ctx.Scope().Group(stats.Router), Runtime: x.s.runtime, Spill: x.s.spill, Shadows: x.s.calls,
			}), nil
		},
	}
}

// shortURL is a type URL without its host.
func shortURL(u string) string { return u[strings.LastIndexByte(u, '/')+1:] }

// httpFilter builds an HTTP filter from its configuration.
func (x *extensions) httpFilter(scope astats.Scope, name string, a *anypb.Any) (filter.Factory, bool, error) {
	f := x.http[shortURL(config.PayloadURL(a))]
	if f == nil {
		if f = x.byRoute[shortURL(a.GetTypeUrl())]; f == nil || len(f.TypeURLs) == 0 {
			return nil, false, x.unknownHTTP(name, a)
		}
		var err error
		if a, err = otherMessage(a, f.TypeURLs[0], "what it has for routes, in typed_per_filter_config"); err != nil {
			return nil, false, err
		}
	}
	m, err := x.payload(a)
	if err != nil {
		return nil, false, err
	}
	ctx := &factoryContext{s: x.s, scope: scope}
	if f.NewSync != nil {
		mk, err := f.NewSync(m, ctx)
		if err != nil {
			return nil, false, err
		}
		return fm.NewSyncFactory(mk, scope), f.Terminal, nil
	}
	factory, err := f.New(m, ctx)
	return factory, f.Terminal, err
}

// otherMessage is a, of another message of an extension than the one that is wanted, as an empty one of these. Envoy finds extensions by
// either message, and reads the one for the other if it holds nothing.
func otherMessage(a *anypb.Any, wanted, is string) (*anypb.Any, error) {
	if len(a.GetValue()) > 0 {
		return nil, &config.Error{Kind: config.Invalid, Msg: "Unable to unpack as " + wanted, Advice: "this is " + is}
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(wanted)
	if err != nil {
		return nil, err
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/" + wanted}, config.Validate(mt.New().Interface(), nil, "")
}

// payload decodes what configures an extension. A TypedStruct that names a message which is compiled in gives that message; of any
// other type, it gives its struct: so an extension needs no message of its own.
func payload(a *anypb.Any) (proto.Message, error) {
	if url := config.PayloadURL(a); url != a.GetTypeUrl() {
		if _, err := protoregistry.GlobalTypes.FindMessageByURL(url); err != nil {
			m, err := a.UnmarshalNew()
			if err != nil {
				return nil, err
			}
			v := m.(interface{ GetValue() *structpb.Struct }).GetValue()
			if v == nil {
				v = &structpb.Struct{}
			}
			return v, nil
		}
	}
	m, _, err := config.Unpack(a, nil)
	return m, err
}

// buildCalls makes the client for requests of the proxy's own. It needs the clusters.
func (s *Server) buildCalls() {
	d := async.Deps{Clusters: s.clusters, Root: s.store.Root(), Runtime: s.runtime}
	if a := s.cfg.Options.LocalAddress; a.IsValid() {
		d.LocalAddress = a.String()
	}
	s.calls = async.New(d)
}

// unknownHTTP is the error about an HTTP filter that there is not; unknownNetwork and unknownListen are about the other filters.
func (x *extensions) unknownHTTP(name string, a *anypb.Any) *config.Error {
	e := config.Unregistered(name, a)
	switch url := shortURL(config.PayloadURL(a)); {
	case url == "":
		typed(e, name, x.http, func(f *ext.HTTPFilter) *ext.Info { return &f.Info })
	case x.isNetwork(url):
		e.Misplaced("a network filter", "filters of a filter chain")
	case x.listen[url] != nil:
		e.Misplaced("a listener filter", "listener_filters")
	}
	return e
}

func (x *extensions) unknownNetwork(name string, a *anypb.Any) *config.Error {
	e := config.Unregistered(name, a)
	switch url := shortURL(config.PayloadURL(a)); {
	case url == "":
		if typed(e, name, x.network, func(f *ext.NetworkFilter) *ext.Info { return &f.Info }); e.Suggestion == "" {
			for _, url := range ownNetwork {
				if config.SameExtension(name, "envoy.filters.network."+strings.Split(url, ".")[4]) {
					e.Typed(url)
				}
			}
		}
	case x.http[url] != nil:
		e.Misplaced("an HTTP filter", "http_filters of http_connection_manager")
	case x.listen[url] != nil:
		e.Misplaced("a listener filter", "listener_filters")
	}
	return e
}

func (x *extensions) unknownListen(name string, a *anypb.Any) *config.Error {
	e := config.Unregistered(name, a)
	switch url := shortURL(config.PayloadURL(a)); {
	case url == "":
		typed(e, name, x.listen, func(f *ext.ListenerFilter) *ext.Info { return &f.Info })
	case x.isNetwork(url):
		e.Misplaced("a network filter", "filters of a filter chain")
	case x.http[url] != nil:
		e.Misplaced("an HTTP filter", "http_filters of http_connection_manager")
	}
	return e
}

// ownNetwork are the messages of the engine's own network filters.
var ownNetwork = []string{
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
}

func (x *extensions) isNetwork(url string) bool {
	return x.network[url] != nil || slices.Contains(ownNetwork, url)
}

// typed says which message configures the extension of a name, if there is one.
func typed[T any](e *config.Error, name string, all map[string]*T, info func(*T) *ext.Info) {
	for _, f := range all {
		if i := info(f); config.SameExtension(name, i.Name) && len(i.TypeURLs) > 0 {
			e.Typed(i.TypeURLs[0])
			return
		}
	}
}

// routeConfig parses a filter's per-route configuration.
func (x *extensions) routeConfig(name string, a *anypb.Any) (any, error) {
	f := x.byRoute[shortURL(config.PayloadURL(a))]
	if f == nil {
		if f = x.http[shortURL(a.GetTypeUrl())]; f == nil || len(f.RouteTypeURLs) == 0 {
			return nil, config.Unregistered(name, a)
		}
		var err error
		if a, err = otherMessage(a, f.RouteTypeURLs[0], "what it has for all routes, in http_filters"); err != nil {
			return nil, err
		}
	}
	if f.NewRoute == nil {
		return nil, fmt.Errorf("The filter %s doesn't support virtual host or route specific configurations", name) //nolint:staticcheck // Envoy's text
	}
	m, err := x.payload(a)
	if err != nil {
		return nil, err
	}
	return f.NewRoute(m, &factoryContext{s: x.s, scope: x.s.store.Root()})
}

// unknownToRoutes tells whether a filter's per-route configuration is of no extension that there is.
func (x *extensions) unknownToRoutes(a *anypb.Any) bool {
	return x.byRoute[shortURL(config.PayloadURL(a))] == nil
}

// factoryContext is what extensions get.
type factoryContext struct {
	s     *Server
	scope astats.Scope
	// operators, if not nil, are what formats know instead of the server's.
	operators *format.Options
}

func (c *factoryContext) format() *format.Options {
	if c.operators != nil {
		return c.operators
	}
	return c.s.format
}

func (c *factoryContext) WithFormatters(list []proto.Message) (ext.FactoryContext, error) {
	all := make([]*corev3.TypedExtensionConfig, len(list))
	for i, m := range list {
		p, ok := m.(*corev3.TypedExtensionConfig)
		if !ok {
			return nil, fmt.Errorf("%T is no formatter extension", m)
		}
		all[i] = p
	}
	o, err := c.format().WithFormatters(all, nil)
	if err != nil {
		return nil, err
	}
	with := *c
	with.operators = o
	return &with, nil
}

func (c *factoryContext) Scope() astats.Scope     { return c.scope }
func (c *factoryContext) RootScope() astats.Scope { return c.s.store.Root() }
func (c *factoryContext) Clock() clock.Clock      { return c.s.cfg.Clock }
func (c *factoryContext) Post(f func())           { c.s.main.Post(f) }

func (c *factoryContext) EachWorker(f func(d network.Dispatcher)) {
	for _, w := range c.s.workers {
		w.Post(func() { f(w) })
	}
}

func (c *factoryContext) HasCluster(name string) bool { return c.s.hasCluster(name) }

func (c *factoryContext) LocalCluster() string { return c.s.node().GetCluster() }
func (c *factoryContext) HealthFailed() bool   { return c.s.failed.Load() }
func (c *factoryContext) Runtime() ext.Runtime { return c.s.runtime }

func (c *factoryContext) ClusterHosts(name string) (usable, all int, ok bool) {
	slot := c.s.clusters.Lookup(name)
	if slot == nil {
		return 0, 0, false
	}
	cl := slot.Load()
	if cl == nil {
		return 0, 0, false
	}
	for _, p := range cl.Table().Sets {
		usable += len(p.Healthy) + len(p.Degraded)
		all += len(p.Hosts)
	}
	return usable, all, true
}

func (c *factoryContext) HeaderMatcher(m proto.Message) (ext.HeaderMatcher, error) {
	p, ok := m.(*routev3.HeaderMatcher)
	if !ok {
		return nil, fmt.Errorf("%T is no header matcher", m)
	}
	f, err := route.HeaderMatcher(p)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (c *factoryContext) StringMatcher(m proto.Message) (ext.StringMatcher, error) {
	p, ok := m.(*matcherv3.StringMatcher)
	if !ok {
		return nil, fmt.Errorf("%T is no string matcher", m)
	}
	return route.StringMatcher(p)
}

func (c *factoryContext) Rewriter(m proto.Message) (ext.Rewriter, error) {
	p, ok := m.(*matcherv3.RegexMatchAndSubstitute)
	if !ok {
		return nil, fmt.Errorf("%T is no rewrite", m)
	}
	return route.NewRegexRewrite(p)
}

func (c *factoryContext) HeaderMutations(list []proto.Message) (ext.HeaderMutations, error) {
	all := make([]*rulesv3.HeaderMutation, len(list))
	for i, m := range list {
		p, ok := m.(*rulesv3.HeaderMutation)
		if !ok {
			return nil, fmt.Errorf("%T is no header mutation", m)
		}
		all[i] = p
	}
	m, err := route.HeaderMutations(all, c.format())
	if err != nil {
		return nil, err
	}
	return mutations{m}, nil
}

func (c *factoryContext) Format(text string) (ext.Formatter, error) {
	return newFormatter(text, c.format())
}
