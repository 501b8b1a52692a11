package proxy

import (
	"fmt"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// ResourceFile is a file of xDS resources, a DiscoveryResponse as path_config_source names them. Its path says in which form it is.
type ResourceFile struct {
	Path string
	Data []byte
}

// CheckResources tells what a proxy with the bootstrap base would refuse of files of resources when it takes them: all files together, so
// that a listener may name a cluster of another file. Listeners, clusters, secrets and routes are built; of other resources the text and
// the field rules are looked at. An empty base stands for a bootstrap that is not known, which may have any cluster. If base itself is
// wrong, nothing is built: Check tells why. Nothing listens and nothing stays behind, as for Check.
func CheckResources(base string, o LoadOptions, files []ResourceFile, opts ...Option) *Report {
	r := &Report{Problems: []Problem{}}
	c := &resourceCheck{boot: &bootstrapv3.Bootstrap{}, most: o.MaxProblems}
	if c.most <= 0 {
		c.most = config.DefaultMaxErrors
	}
	usable := true
	if base == "" {
		c.boot.Node = &corev3.Node{Id: "any", Cluster: "any"}
	} else {
		_, err := config.Parse(base, o.Data, c.boot, config.Options{AllowUnknownFields: o.AllowUnknownFields, Env: o.Env, ConfigYAML: o.ConfigYAML})
		usable, c.known = err == nil, true
		cds := c.boot.GetDynamicResources().GetCdsConfig()
		c.clusters = cds == nil || cds.GetPathConfigSource() != nil || cds.GetPath() != "" //nolint:staticcheck // deprecated, still read by Envoy
	}
	if c.boot.StaticResources == nil {
		c.boot.StaticResources = &bootstrapv3.Bootstrap_StaticResources{}
	}
	for _, f := range files {
		c.read(f, r)
	}
	if len(c.places) == 0 || !usable {
		return r
	}
	raw, err := proto.Marshal(c.boot)
	if err != nil {
		return r
	}
	whole := Check("resources.pb", LoadOptions{Data: raw, AllowUnknownFields: true, MaxProblems: o.MaxProblems}, opts...)
	for i := range whole.Problems {
		if p := c.located(&whole.Problems[i]); p != nil {
			c.add(r, *p)
		}
	}
	return r
}

// resourceCheck puts resources into a bootstrap, and remembers where they come from.
type resourceCheck struct {
	boot     *bootstrapv3.Bootstrap
	clusters bool // all of them are known
	known    bool // the bootstrap is
	most     int
	places   []resourcePlace
}

// resourcePlace is where the bootstrap has a resource of a file.
type resourcePlace struct {
	path string // in the bootstrap
	in   string // in the file
	pos  *config.Positions
}

// read takes a file apart. One with a mistake in its text has nothing to build.
func (c *resourceCheck) read(f ResourceFile, r *Report) {
	o := config.Options{MaxErrors: c.most, AllowUnknownFields: true} // as Envoy, which counts those of dynamic resources
	o.OnUnknownField = func(e *config.Error) {
		if len(r.Notes) < c.most {
			r.Notes = append(r.Notes, *e)
		}
	}
	m, pos, err := config.ParseDiscoveryResponse(f.Path, f.Data, o)
	if err != nil {
		r.More += config.More(err)
		for _, p := range config.List(err) {
			if p.File == "" {
				p.File = f.Path
			}
			c.add(r, p)
		}
		return
	}
	for i, a := range m.Resources {
		in := fmt.Sprintf("resources[%d]", i)
		if xdstype.Name(a.TypeURL) == xdstype.Name(xdstype.DeltaResource) {
			w, err := xdstype.ParseResource(a.Value)
			if err != nil {
				continue
			}
			a, in = w.Any, in+".resource"
		}
		x, err := (&anypb.Any{TypeUrl: a.TypeURL, Value: a.Value}).UnmarshalNew()
		if err != nil {
			continue // the reader has told
		}
		if path := c.put(x); path != "" {
			c.places = append(c.places, resourcePlace{path, in, pos})
		}
	}
}

func (c *resourceCheck) add(r *Report, p Problem) {
	if len(r.Problems) >= c.most {
		r.More++
		return
	}
	r.Problems = append(r.Problems, p)
}

// put makes a resource part of the bootstrap and says where; "" if the bootstrap has no place for it, or has one of its name, which stays.
func (c *resourceCheck) put(m proto.Message) string {
	s := c.boot.StaticResources
	switch x := m.(type) {
	case *listenerv3.Listener:
		if slices.ContainsFunc(s.Listeners, func(l *listenerv3.Listener) bool { return l.GetName() == x.GetName() && x.GetName() != "" }) {
			return ""
		}
		if !c.clusters {
			anyCluster(x)
		}
		s.Listeners = append(s.Listeners, x)
		return fmt.Sprintf("static_resources.listeners[%d]", len(s.Listeners)-1)
	case *clusterv3.Cluster:
		if slices.ContainsFunc(s.Clusters, func(l *clusterv3.Cluster) bool { return l.GetName() == x.GetName() }) {
			return ""
		}
		s.Clusters = append(s.Clusters, x)
		return fmt.Sprintf("static_resources.clusters[%d]", len(s.Clusters)-1)
	case *tlsv3.Secret:
		s.Secrets = append(s.Secrets, x)
		return fmt.Sprintf("static_resources.secrets[%d]", len(s.Secrets)-1)
	case *routev3.RouteConfiguration:
		l, err := holder(x)
		if err != nil {
			return ""
		}
		s.Listeners = append(s.Listeners, l)
		return fmt.Sprintf("static_resources.listeners[%d].filter_chains[0].filters[0].typed_config.route_config", len(s.Listeners)-1)
	}
	return ""
}

// anyCluster lets the routes of a listener name clusters that there are not: an unknown one would hide what else is wrong.
func anyCluster(l *listenerv3.Listener) {
	for _, fc := range append(slices.Clip(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		for _, f := range fc.GetFilters() {
			m := &hcmv3.HttpConnectionManager{}
			if a := f.GetTypedConfig(); a.MessageIs(m) && a.UnmarshalTo(m) == nil && m.GetRouteConfig() != nil {
				m.GetRouteConfig().ValidateClusters = wrapperspb.Bool(false)
				if a, err := anypb.New(m); err == nil {
					f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: a}
				}
			}
		}
	}
}

// holder is a listener that has routes in it. Routes of RDS may name clusters that there are not, unless they say otherwise.
func holder(rc *routev3.RouteConfiguration) (*listenerv3.Listener, error) {
	rc = proto.CloneOf(rc)
	if rc.ValidateClusters == nil {
		rc.ValidateClusters = wrapperspb.Bool(false)
	}
	router, err := anypb.New(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	m, err := anypb.New(&hcmv3.HttpConnectionManager{StatPrefix: "routes", RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: rc},
		HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}}})
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{}}}},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{Name: "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: m}}}}}}, nil
}

// elsewhere tells whether a message is of a thing that may come from elsewhere: of clusters by CDS, or of the bootstrap that is not known.
func (c *resourceCheck) elsewhere(msg string) bool {
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(msg, s) })
	}
	return !c.clusters && has("unknown") && has("cluster") ||
		!c.known && has("ads must be configured", "unknown static secret", "statically defined non-eds cluster", "unknown grpc client cluster")
}

// located gives a problem of the bootstrap its place in the file; nil if it is of none.
func (c *resourceCheck) located(p *Problem) *Problem {
	if c.elsewhere(strings.ToLower(p.Msg)) {
		return nil
	}
	for _, x := range c.places {
		rest, ok := strings.CutPrefix(p.Path, x.path)
		if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		out := *p
		out.Path, out.File, out.Line, out.Col = x.in+rest, "", 0, 0
		return x.pos.Error(out.Path, out)
	}
	return nil
}
