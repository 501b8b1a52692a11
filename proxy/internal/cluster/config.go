package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/upstream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// Deps are what clusters are built with. They belong to the main loop.
type Deps struct {
	Main    *event.Worker
	Workers []*event.Worker
	Store   *stats.Store
	// Resolver answers for STRICT_DNS and LOGICAL_DNS clusters. NewResolver makes one for those that name servers of their own;
	// equal ones share it.
	Resolver    dns.Resolver
	NewResolver func(o dns.Options) dns.Resolver
	// Source opens EDS subscriptions.
	Source sub.Source
	// Transport makes the transport sockets of a cluster; scope is the cluster's. A nil factory is plain bytes. Without it only
	// raw buffers are possible.
	Transport func(cluster string, ts *corev3.TransportSocket, scope apistats.Scope) (pool.TransportFactory, error)
	// HTTPFilters makes what goes into pool.Options.Filters, of a list in field; it is a pointer, which may be nil. Without it there
	// can be no filters.
	HTTPFilters func(list []*hcmv3.HttpFilter, field string, scope apistats.Scope) (any, error)
	// Policies makes what goes into pool.Options.Policies; nil if there is nothing. The error is relative to o.
	Policies func(o *httpv3.HttpProtocolOptions) (any, error)
	// LoadBalancers are the extensions for load_balancing_policy.
	LoadBalancers []upstream.LoadBalancer
	// Runtime answers runtime keys; nil: defaults.
	Runtime Runtime
	// Headers makes what changes the head of a request by additions and removals (health checks).
	Headers func(add []*corev3.HeaderValueOption, remove []string) (health.Edit, error)
	// EventLog opens the file at path for the events of health checks.
	EventLog func(path string) (health.Log, error)
	// BindConfig is cluster_manager.upstream_bind_config, for clusters that have none.
	BindConfig *corev3.BindConfig
	// LocalCluster is cluster_manager.local_cluster_name, the cluster that this proxy belongs to, and Here the place of the node: both are for
	// zone aware routing. "": there is none.
	LocalCluster string
	Here         host.Locality

	near      *lb.Near // nil as long as the local cluster is not known
	published func(c *Cluster)
	shared    interned
	resolvers map[string]dns.Resolver
}

// Build makes a cluster from its configuration. It has its hosts already if it is static; others find theirs when they are
// started. The error names the field, and uses Envoy's words where Envoy refuses the same.
func Build(cfg *clusterv3.Cluster, d *Deps) (*Cluster, error) { return build(cfg, d, nil) }

// build is Build for a cluster that takes over the hosts of prev which it has too.
func build(cfg *clusterv3.Cluster, d *Deps, prev *Cluster) (*Cluster, error) {
	var errs config.Errors
	errs.Collect("", config.Refuse(clusterGaps, cfg, ""))
	errs.Collect("", combined(cfg, d))
	opts, err := buildOptions(cfg, d)
	errs.Collect("", err)
	popts, err := buildPoolOptions(cfg, d)
	errs.Collect("", err)
	limits, err := buildLimits(cfg.GetCircuitBreakers())
	errs.Collect("circuit_breakers", err)
	checked, err := buildHealth(cfg, d, popts)
	errs.Collect("", err)
	a, err := buildAssignment(cfg, opts.Type)
	errs.Collect("", err)
	if errs.Len() > 0 { // what would come later is looked at for its errors only
		_, err := newSource(&Cluster{name: cfg.GetName(), opts: &opts}, cfg, d, &assignment{})
		errs.Collect("", err)
		transport, err := buildTransport(cfg, d, discarded(d))
		errs.Collect("", err)
		closeTransport(transport)
		return nil, errs.Err()
	}
	opts.LB.PanicThreshold = panicThreshold(d.Runtime, opts.LB.PanicThreshold)
	limitsFromRuntime(d.Runtime, cfg.GetName(), &limits)
	name := cfg.GetName()
	if prev != nil {
		name = prev.name // the same, and streams hold it: there shall be one of it in memory
	}
	c := &Cluster{name: name, prev: prev, observability: cfg.GetAltStatName(), workers: int32(len(d.Workers))}
	if m := readMetadata(cfg.GetMetadata()); m != nil {
		c.meta = m.Spaces
	}
	c.opts = d.shared.options(opts)
	c.settings.Options = d.shared.pool(popts)
	c.settings.Limits = d.shared.limits(limits)
	if c.settings.Transport, err = buildTransport(cfg, d, c.scope(d)); err != nil {
		return nil, err
	}
	if c.settings.Transport == nil && c.settings.Protocol == pool.Auto {
		return nil, rejected("typed_extension_protocol_options", "ALPN configured for cluster "+c.name+" which has a non-ALPN transport socket")
	}
	if c.source, err = newSource(c, cfg, d, a); err != nil {
		closeTransport(c.settings.Transport)
		return nil, err
	}
	logs, err := openEventLogs(cfg, d)
	if err != nil {
		closeTransport(c.settings.Transport)
		return nil, err
	}
	c.settings.Stats = c.scope(d).Group(stats.Cluster)
	c.track(d)
	if checked != nil {
		c.checks = newChecks(c, d, checked, logs)
	}
	c.apply(d, a)
	c.matched(d, a.all()...)
	c.fromRuntime(d.Runtime)
	return c, nil
}

// discarded is the scope of what is built only to find out what is wrong with it.
func discarded(d *Deps) apistats.Scope { return stats.NewStore().Root() }

func (c *Cluster) scope(d *Deps) apistats.Scope {
	return d.Store.Root().Scope("cluster").Scope(c.ObservabilityName())
}

// rejected is an error of one field, in relation to the cluster.
func rejected(path, msg string) error { return &config.Error{Path: path, Msg: msg} }

func notYet(path string) error { return rejected(path, "not supported yet") }

// buildTransport makes what makes the transport sockets; nil: plain bytes.
func buildTransport(cfg *clusterv3.Cluster, d *Deps, scope apistats.Scope) (pool.TransportFactory, error) {
	var errs config.Errors
	other, err := buildSocket(cfg.GetName(), "transport_socket", cfg.GetTransportSocket(), d, scope)
	errs.Collect("", err)
	if len(cfg.GetTransportSocketMatches()) == 0 {
		return other, errs.Err()
	}
	t := &transports{other: other}
	for i, m := range cfg.GetTransportSocketMatches() {
		path := fmt.Sprintf("transport_socket_matches[%d].transport_socket", i)
		if m.GetTransportSocket() == nil {
			errs.Collect("", rejected(path, "Didn't find a registered implementation for '' with type URL: ''"))
			continue
		}
		f, err := buildSocket(cfg.GetName(), path, m.GetTransportSocket(), d, scope)
		errs.Collect("", err)
		t.matches = append(t.matches, transportMatch{name: m.GetName(), match: m.GetMatch().AsMap(), factory: f})
	}
	if err := errs.Err(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func buildSocket(cluster, path string, ts *corev3.TransportSocket, d *Deps, scope apistats.Scope) (pool.TransportFactory, error) {
	if ts == nil || isRawBuffer(ts) {
		return nil, nil
	}
	if d.Transport == nil {
		return nil, notYet(path)
	}
	f, err := d.Transport(cluster, ts, scope)
	return f, config.At(path, err)
}

func isRawBuffer(ts *corev3.TransportSocket) bool {
	return config.PayloadURL(ts.GetTypedConfig()) == "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"
}

// buildOptions reads what concerns the choice of hosts.
func buildOptions(cfg *clusterv3.Cluster, d *Deps) (o Options, err error) {
	var errs config.Errors
	o.Type, err = buildType(cfg)
	errs.Collect("", err)
	errs.Collect("", buildLB(cfg, d, &o))
	errs.Collect("", buildDNS(cfg, &o.DNS))
	if o.Type == OriginalDST && len(cfg.GetLbSubsetConfig().GetSubsetSelectors()) > 0 {
		errs.Collect("lb_subset_config", errors.New("cluster: LB policy CLUSTER_PROVIDED cannot be combined with lb_subset_config"))
	}
	if cfg.GetEdsClusterConfig() != nil && o.Type != EDS && err == nil {
		errs.Collect("eds_cluster_config", errors.New("eds_cluster_config set in a non-EDS cluster"))
	}
	common := cfg.GetCommonLbConfig()
	o.MergeWindow = duration(common.GetUpdateMergeWindow(), time.Second)
	o.DrainOnChange = common.GetCloseConnectionsOnHostSetChange()
	o.CloseOnHealthFailure = cfg.GetCloseConnectionsOnHostHealthFailure()
	o.IgnoreHealthOnRemoval = cfg.GetIgnoreHealthOnHostRemoval()
	o.Eyeballs = buildEyeballs(cfg.GetUpstreamConnectionOptions().GetHappyEyeballsConfig())
	o.ExcludeUnchecked = common.GetIgnoreNewHostsUntilFirstHc()
	o.NoWarm = cfg.GetWaitForWarmOnInit() != nil && !cfg.GetWaitForWarmOnInit().GetValue()
	return o, errs.Err()
}

// typeNames are the names of the built-in types as cluster_type has them.
var typeNames = map[string]Type{
	"envoy.cluster.static": Static, "envoy.cluster.strict_dns": StrictDNS, "envoy.cluster.logical_dns": LogicalDNS,
	"envoy.cluster.eds": EDS, "envoy.cluster.original_dst": OriginalDST,
}

// knownTypes are the further ones that Envoy has.
var knownTypes = map[string]bool{
	"envoy.clusters.aggregate": true, "envoy.clusters.composite": true,
	"envoy.clusters.dynamic_forward_proxy": true, "envoy.clusters.redis": true, "envoy.clusters.reverse_connection": true,
	"envoy.clusters.dynamic_modules": true, "envoy.clusters.mcp_multicluster": true,
}

func buildType(cfg *clusterv3.Cluster) (Type, error) {
	if ct := cfg.GetClusterType(); ct != nil {
		if x, err := dnsCluster(cfg); err != nil {
			return noType, config.At("cluster_type.typed_config", err)
		} else if x.GetAllAddressesInSingleEndpoint() {
			return LogicalDNS, nil
		} else if x != nil {
			return StrictDNS, nil
		}
		if isOriginalDst(ct.GetTypedConfig()) {
			return originalDstType(cfg, ct.GetName())
		}
		if a := ct.GetTypedConfig(); a.GetTypeUrl() != "" && !a.MessageIs(&structpb.Struct{}) { // which says which it is; a Struct leaves it to the name
			return noType, config.At("cluster_type", unknownFactory(a))
		}
		t, ok := typeNames[ct.GetName()]
		if !ok {
			if !knownTypes[ct.GetName()] {
				return noType, rejected("cluster_type", "Didn't find a registered cluster factory implementation for name: '"+ct.GetName()+"'")
			}
			return noType, &config.Error{Path: "cluster_type", Msg: ct.GetName() + ": not supported yet", Kind: config.Unsupported, Extension: ct.GetName()}
		}
		if t == OriginalDST {
			return originalDstType(cfg, ct.GetName())
		}
		return t, nil
	}
	switch cfg.GetType() {
	case clusterv3.Cluster_STATIC:
		return Static, nil
	case clusterv3.Cluster_STRICT_DNS:
		return StrictDNS, nil
	case clusterv3.Cluster_LOGICAL_DNS:
		return LogicalDNS, nil
	case clusterv3.Cluster_EDS:
		return EDS, nil
	case clusterv3.Cluster_ORIGINAL_DST:
		return originalDstType(cfg, cfg.GetType().String())
	}
	return noType, rejected("type", cfg.GetType().String()+": not supported yet")
}

// unknownFactory is the error about a configuration of a cluster_type that is of no type of cluster.
func unknownFactory(a *anypb.Any) error {
	typ := a.GetTypeUrl()[strings.LastIndexByte(a.GetTypeUrl(), '/')+1:]
	return &config.Error{Msg: "Didn't find a registered cluster factory implementation for type: '" + typ + "'"}
}

func duration(d *durationpb.Duration, def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	return d.AsDuration()
}

func number(n *wrapperspb.UInt32Value, def uint32) uint32 {
	if n == nil {
		return def
	}
	return n.GetValue()
}

// fingerprint is what two equal configurations have in common, and hardly two others.
func fingerprint(m proto.Message) (raw []byte, err error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}
