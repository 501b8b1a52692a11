package scripttest

import (
	"fmt"
	"strings"
)

// Config is a bootstrap by its parts, each in YAML's flow style: one listener, one virtual host, one cluster "up" of all upstreams.
type Config struct {
	// HCM, RouteConfig, VirtualHost, Cluster and Router are further fields of these messages, "field: value" each.
	HCM, RouteConfig, VirtualHost, Cluster, Router []string
	// HTTPOptions are fields of the HttpProtocolOptions of the cluster.
	HTTPOptions []string
	// Listener are further fields of the listener.
	Listener []string
	// Routes; nil: all requests go to the cluster.
	Routes []string
	// RouteSpecifier is a field of the connection manager that stands in place of route_config; "": route_config stands.
	RouteSpecifier string
	// Clusters are further clusters, and Bootstrap further fields of the bootstrap.
	Clusters, Bootstrap []string
	// Upstreams is how many endpoints the cluster has; 0: 1.
	Upstreams int
	// Mode is what peers speak. Mode.Start sets it.
	Mode Mode
}

// YAML is the bootstrap.
func (c Config) YAML() string {
	routes := c.Routes
	if routes == nil {
		routes = []string{"{match: {prefix: /}, route: {cluster: up}}"}
	}
	if c.Mode.Down.Streams() && !strings.Contains(strings.Join(c.HCM, " "), "http2_protocol_options") {
		c.HCM = append([]string{"http2_protocol_options: {allow_connect: true}"}, c.HCM...)
	}
	endpoints := make([]string, max(c.Upstreams, 1))
	for i := range endpoints {
		endpoints[i] = fmt.Sprintf("{endpoint: {address: UPSTREAM_%d}}", i)
	}
	and := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return ", " + strings.Join(list, ", ")
	}
	const ext = "type.googleapis.com/envoy.extensions.filters."
	router := `{name: r, typed_config: {"@type": ` + ext + `http.router.v3.Router` + and(c.Router) + `}}`
	specifier := c.RouteSpecifier
	if specifier == "" {
		specifier = `route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], routes: [` + strings.Join(routes, ", ") + `]` + and(c.VirtualHost) + `}]` +
			and(c.RouteConfig) + `}`
	}
	hcm := `{"@type": ` + ext + `network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, http_filters: [` + router +
		`], ` + specifier + and(c.HCM) + `}`
	cluster := `{name: up, load_assignment: {cluster_name: up, endpoints: [{lb_endpoints: [` + strings.Join(endpoints, ", ") + `]}]}` + and(append(c.Mode.Up.upstream(c.HTTPOptions), c.Cluster...)) + `}`
	return `{static_resources: {listeners: [{name: l, address: LISTEN, filter_chains: [{filters: [{name: h, typed_config: ` + hcm + `}]` + c.Mode.Down.downstream() + `}]` +
		and(c.Listener) + `}], clusters: [` + strings.Join(append([]string{cluster}, c.Clusters...), ", ") + `]}` + and(c.Bootstrap) + `}`
}
