package server

import (
	"maps"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/internal/version"
)

// buildNode completes the bootstrap's node: what this build is, which control planes and fleet tools read, so it is the Envoy that we
// stand in for. What the command line says of the node is not in the bootstrap's, which /config_dump shows, but in what the proxy
// calls itself.
func (s *Server) buildNode() {
	if s.boot.Node == nil {
		s.boot.Node = &corev3.Node{}
	}
	n := s.boot.Node
	major, minor, patch := version.Semantic()
	str := structpb.NewStringValue
	n.UserAgentName = "envoy"
	n.UserAgentVersionType = &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{
		Version: &typev3.SemanticVersion{MajorNumber: major, MinorNumber: minor, Patch: patch},
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"build.type": str("RELEASE"), "revision.sha": str(version.Revision()), "revision.status": str(version.Status()),
			"ssl.version": str("crypto-tls"), "dragoman.version": str(version.Release()),
		}},
	}}
	n.Extensions = s.ext.list()
}

// node returns what discovery requests and /server_info carry.
func (s *Server) node() *corev3.Node {
	b, o := s.boot.Node, s.cfg.Options
	n := &corev3.Node{Id: b.Id, Cluster: b.Cluster, Metadata: b.Metadata, DynamicParameters: b.DynamicParameters, Locality: b.Locality,
		UserAgentName: b.UserAgentName, UserAgentVersionType: b.UserAgentVersionType, Extensions: b.Extensions, ClientFeatures: b.ClientFeatures}
	if o.ServiceNode != "" {
		n.Id = o.ServiceNode
	}
	if o.ServiceCluster != "" {
		n.Cluster = o.ServiceCluster
	}
	if o.ServiceZone != "" {
		n.Locality = &corev3.Locality{Region: b.Locality.GetRegion(), Zone: o.ServiceZone, SubZone: b.Locality.GetSubZone()}
	}
	return n
}

// list names all extensions of this proxy, by category and name.
func (x *extensions) list() []*corev3.Extension {
	var out []*corev3.Extension
	add := func(category, name string, urls []string) {
		out = append(out, &corev3.Extension{Name: name, Category: category, TypeUrls: urls})
	}
	for _, e := range engineExtensions {
		add(e.category, e.name, e.urls)
	}
	addAll(add, "envoy.filters.http", x.http, func(f *ext.HTTPFilter) *ext.Info { return &f.Info })
	upstream := maps.Clone(x.http)
	maps.DeleteFunc(upstream, func(_ string, f *ext.HTTPFilter) bool { return !upstreamFilters[f.Name] })
	addAll(add, "envoy.filters.http.upstream", upstream, func(f *ext.HTTPFilter) *ext.Info { return &f.Info })
	addAll(add, "envoy.filters.network", x.network, func(f *ext.NetworkFilter) *ext.Info { return &f.Info })
	addAll(add, "envoy.filters.listener", x.listen, func(f *ext.ListenerFilter) *ext.Info { return &f.Info })
	slices.SortFunc(out, func(a, b *corev3.Extension) int {
		if c := strings.Compare(a.Category, b.Category); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return slices.CompactFunc(out, func(a, b *corev3.Extension) bool { return proto.Equal(a, b) })
}

// addAll adds the values of m, each once: it is known by each of its type URLs.
func addAll[T any](add func(category, name string, urls []string), category string, m map[string]*T, info func(*T) *ext.Info) {
	seen := map[*T]bool{}
	for _, url := range slices.Sorted(maps.Keys(m)) {
		if v := m[url]; !seen[v] {
			seen[v] = true
			add(category, info(v).Name, info(v).TypeURLs)
		}
	}
}

// logStart writes the lines with which Envoy starts.
func (s *Server) logStart() {
	if s.cfg.Options.CommandLine.Mode == "validate" {
		return
	}
	l := s.logger("main")
	l.Info("initializing epoch " + itoa(s.cfg.Options.RestartEpoch) + " (base id=" + itoa(int(s.cfg.Options.CommandLine.BaseID)) + ", hot restart version=" + s.hotRestartVersion() + ")")
	l.Info("statically linked extensions:")
	byCategory := map[string][]string{}
	for _, e := range s.ext.list() {
		byCategory[e.Category] = append(byCategory[e.Category], e.Name)
	}
	for _, c := range slices.Sorted(maps.Keys(byCategory)) {
		l.Info("  " + c + ": " + strings.Join(byCategory[c], ", "))
	}
}

// logConfiguration writes how much the bootstrap brings.
func (s *Server) logConfiguration(b *bootstrapv3.Bootstrap) {
	l := s.logger("config")
	l.Info("loading tracing configuration")
	l.Info("loading " + itoa(len(b.GetStaticResources().GetSecrets())) + " static secret(s)")
}
