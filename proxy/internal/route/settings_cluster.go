package route

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	specifierv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/router/cluster_specifiers/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// cluster compiles how a route finds its cluster.
func (c *compiler) cluster(e *Entry, a *routev3.RouteAction, resp [][]mutation) error {
	switch s := a.ClusterSpecifier.(type) {
	case *routev3.RouteAction_Cluster:
		return config.At("cluster", c.bind(e, s.Cluster))
	case *routev3.RouteAction_ClusterHeader:
		e.ClusterHeader = strings.ToLower(s.ClusterHeader)
		return nil
	case *routev3.RouteAction_WeightedClusters:
		return c.weighted(e, s.WeightedClusters, resp)
	case *routev3.RouteAction_ClusterSpecifierPlugin:
		p, ok := c.plugins[s.ClusterSpecifierPlugin]
		if !ok {
			return fmt.Errorf("Unknown cluster specifier plugin name: %s is used in the route", s.ClusterSpecifierPlugin) //nolint:staticcheck // Envoy's text
		}
		return c.plugin(e, p)
	case *routev3.RouteAction_InlineClusterSpecifierPlugin:
		p, err := specifier(s.InlineClusterSpecifierPlugin)
		if err != nil {
			return config.At("inline_cluster_specifier_plugin", err)
		}
		return c.plugin(e, p)
	}
	return errors.New("cluster_specifier is required")
}

func (c *compiler) bind(e *Entry, name string) error {
	if c.validate && !c.Exists(name) {
		return c.noCluster("cluster", name)
	}
	e.Slot = c.Slot(name)
	return nil
}

// noCluster is the error about a cluster that does not exist.
func (c *compiler) noCluster(what, name string) error {
	e := &config.Error{Msg: "route: unknown " + what + " '" + name + "'"}
	if c.Meant != nil {
		c.Meant(e, name)
	}
	return e
}

// specifiers decodes cluster_specifier_plugins. One that is optional and unknown is nil.
func specifiers(list []*routev3.ClusterSpecifierPlugin) (map[string]proto.Message, error) {
	out := map[string]proto.Message{}
	var errs config.Errors
	for i, p := range list {
		m, err := specifier(p)
		errs.Collect(fmt.Sprintf("cluster_specifier_plugins[%d]", i), err)
		out[p.GetExtension().GetName()] = m
	}
	return out, errs.Err()
}

func specifier(p *routev3.ClusterSpecifierPlugin) (proto.Message, error) {
	x := p.GetExtension()
	m, _, err := config.Unpack(x.GetTypedConfig(), nil)
	if err != nil && !p.IsOptional {
		return nil, err
	}
	switch m.(type) {
	case *specifierv3.MatcherClusterSpecifier:
		return m, nil
	}
	if p.IsOptional {
		return nil, nil
	}
	return nil, config.Unregistered(x.GetName(), x.GetTypedConfig())
}

// plugin makes an entry choose its cluster as an extension says.
func (c *compiler) plugin(e *Entry, p proto.Message) error {
	m, ok := p.(*specifierv3.MatcherClusterSpecifier)
	if !ok {
		e.choose = nowhere{}
		return nil
	}
	none := e.clone()
	x := &byMatcher{none: none}
	none.refresh = x
	var err error
	x.tree, err = match.New(m.GetClusterMatcher(), match.Options[*Entry]{Action: func(name string, a *anypb.Any) (*Entry, error) {
		m, _, err := config.Unpack(a, nil)
		if err != nil {
			return nil, err
		}
		to, ok := m.(*specifierv3.ClusterAction)
		if !ok {
			return nil, config.Unregistered(name, a)
		}
		one := e.clone()
		one.Slot, one.refresh = c.Slot(to.Cluster), x
		return one, nil
	}})
	e.choose = x
	return config.At("cluster_matcher", err)
}

func (c *compiler) weighted(e *Entry, wc *routev3.WeightedCluster, resp [][]mutation) error {
	w := &Weighted{RuntimePrefix: wc.RuntimeKeyPrefix, HeaderName: strings.ToLower(wc.GetHeaderName())}
	if wc.GetUseHashPolicy().GetValue() {
		w.UseHash = e.HashPolicy
	}
	var errs config.Errors
	for i, x := range wc.Clusters {
		path := fmt.Sprintf("weighted_clusters.clusters[%d]", i)
		if x.Weight == nil {
			errs.Collect(path+".weight", errors.New("Field 'weight' is missing")) //nolint:staticcheck // Envoy's text
		}
		one, err := c.choice(e, x, resp)
		errs.Collect(path, err)
		w.choices = append(w.choices, choice{weight: uint64(x.GetWeight().GetValue()), key: wc.RuntimeKeyPrefix + "." + x.Name, entry: one})
		w.total += uint64(x.GetWeight().GetValue())
	}
	switch {
	case errs.Len() > 0:
		return errs.Err()
	case w.total == 0:
		return config.At("weighted_clusters", errors.New("Sum of weights in the weighted_cluster must be greater than 0.")) //nolint:staticcheck // Envoy's text
	case w.total > 1<<32-1:
		return config.At("weighted_clusters", errors.New("The sum of weights of all weighted clusters of route exceeds 4294967295")) //nolint:staticcheck // Envoy's text
	}
	e.choose = w
	return nil
}

// choice is the entry of one of a route's weighted clusters.
func (c *compiler) choice(e *Entry, x *routev3.WeightedCluster_ClusterWeight, resp [][]mutation) (*Entry, error) {
	one := e.clone()
	var errs config.Errors
	switch {
	case x.ClusterHeader != "" && x.Name != "":
		errs.Collect("", errors.New("Only one of name or cluster_header can be specified")) //nolint:staticcheck // Envoy's text
	case x.ClusterHeader != "":
		one.ClusterHeader = strings.ToLower(x.ClusterHeader)
	case x.Name == "":
		errs.Collect("", errors.New("At least one of name or cluster_header need to be specified")) //nolint:staticcheck // Envoy's text
	default:
		errs.Collect("name", c.bind(one, x.Name))
	}
	a, b, err := c.level(x)
	errs.Collect("", err)
	filters, err := c.filterConfigs(x.TypedPerFilterConfig)
	errs.Collect("typed_per_filter_config", err)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	// A cluster's own changes come first, whatever order the others are in.
	one.ClusterHeaders, one.ResponseHeaders = first(a, nil), first(b, c.join(resp))
	one.ClusterHost = x.GetHostRewriteLiteral()
	if len(x.TypedPerFilterConfig) > 0 {
		one.filters, one.disabled = map[string]*filterConfig{}, map[string]bool{}
		maps.Copy(one.filters, e.filters)
		maps.Copy(one.disabled, e.disabled)
		one.use(filters)
	}
	return one, nil
}
