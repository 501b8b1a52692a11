package doubt

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// named doubts a cluster that there is not. what becomes of it is said in effect.
func (w *walker) named(name, effect string, below ...any) {
	if name == "" || w.void[ofCluster] || w.clusters[name] != nil || strings.HasPrefix(name, "DFPCluster:") { // made by a dynamic forward proxy
		return
	}
	w.add(ofCluster, config.Error{Msg: "there is no cluster '" + name + "', and no CDS that could bring it: " + effect,
		Suggestion: config.Nearest(name, w.names)}, below...)
}

func (w *walker) tcpProxy(v *configfile.Value) {
	const effect = "connections are closed at once"
	w.named(v.Str("cluster"), effect, "cluster")
	for i, c := range v.Get("weighted_clusters").List("clusters") {
		w.named(c.Str("name"), effect, "weighted_clusters", "clusters", i, "name")
	}
}

func (w *walker) aggregate(v *configfile.Value) {
	for i, c := range v.List("clusters") {
		w.named(c.Text, "it is left out", "clusters", i)
	}
}

// httpURI is an HttpUri: a cluster beside a URI.
func (w *walker) httpURI(v *configfile.Value) {
	if v.Get("uri") != nil {
		w.named(v.Str("cluster"), "each request to it fails", "cluster")
	}
}

// grpcService looks at a cluster that gRPC is spoken with.
func (w *walker) grpcService(v *configfile.Value) {
	name := v.Str("cluster_name")
	w.named(name, "each call fails", "cluster_name")
	if c := w.clusters[name]; c != nil && http1Only(c) {
		w.add(sure, config.Error{Msg: "the cluster '" + name + "' speaks HTTP/1.1, and gRPC needs HTTP/2: it lacks explicit_http_config.http2_protocol_options " +
			"in typed_extension_protocol_options"}, "cluster_name")
	}
}

// http1Only tells whether a cluster can do nothing but HTTP/1.
func http1Only(c *configfile.Value) bool {
	if c.Get("http2_protocol_options") != nil || c.Get("upstream_config") != nil || c.Str("protocol_selection") == "USE_DOWNSTREAM_PROTOCOL" {
		return false
	}
	options := c.Get("typed_extension_protocol_options")
	if options == nil || len(options.Items) == 0 {
		return true
	}
	explicit := options.At("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config")
	return explicit != nil && len(explicit.Keys) == 1 && explicit.Get("http_protocol_options") != nil
}

// cluster looks at a static cluster.
func (w *walker) cluster(v *configfile.Value) {
	const unused, used = "envoy.upstreams.http.http_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	if options := v.Get("typed_extension_protocol_options"); options.Get(unused) != nil {
		w.add(sure, config.Error{Msg: "nothing uses options of this name", Suggestion: used}, "typed_extension_protocol_options", unused)
	}
	if v.Get("cluster_type") != nil {
		return
	}
	switch v.Str("type") {
	case "", "STATIC", "0":
	case "STRICT_DNS", "1", "LOGICAL_DNS", "2":
		w.withoutSNI(v)
		w.hostNames(v)
	default:
		return
	}
	if !hasEndpoints(v) && !goesNowhere(v.Str("name")) {
		w.add(sure, config.Error{Msg: "the cluster '" + v.Str("name") + "' has no endpoints: requests to it are answered with 503, connections closed"}, "name")
	}
}

// hostNames looks at the hosts of a cluster that are looked up.
func (w *walker) hostNames(c *configfile.Value) {
	for i, e := range c.Get("load_assignment").List("endpoints") {
		for j, h := range e.List("lb_endpoints") {
			host := h.At("endpoint", "address", "socket_address").Str("address")
			if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, ":/") {
				w.add(sure, config.Error{Msg: "no host is called '" + host + "': a name stands here by itself, its port in port_value"},
					"load_assignment", "endpoints", i, "lb_endpoints", j, "endpoint", "address", "socket_address", "address")
			}
		}
	}
}

func hasEndpoints(c *configfile.Value) bool {
	for _, e := range c.Get("load_assignment").List("endpoints") {
		for i, k := range e.Keys {
			if k == "load_balancer_endpoints" || k == "leds_cluster_locality_config" || k == "lb_endpoints" && len(e.Items[i].Items) > 0 {
				return true
			}
		}
	}
	return false
}

// goesNowhere tells whether a cluster's name says that it is meant to have no endpoints, as Istio's BlackHoleCluster, Envoy Gateway's
// EmptyCluster and Kuma's ..._no_destination_inbound.
func goesNowhere(name string) bool {
	name = strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(name))
	return slices.ContainsFunc(nowhere, func(word string) bool { return strings.Contains(name, word) })
}

var nowhere = []string{"blackhole", "empty", "none", "null", "nodestination", "nowhere", "noop", "deny", "drop", "reject", "block", "discard", "dummy", "unused",
	"invalid", "missing", "notfound", "sink"}

// withoutSNI looks at a cluster whose hosts are names: a server that is found by name chooses its certificate by name, mostly.
func (w *walker) withoutSNI(c *configfile.Value) {
	tls := c.At("transport_socket", "typed_config")
	if ending(tls.Str("@type")) != ".tls.v3.UpstreamTlsContext" || tls.Str("sni") != "" || tls.Str("auto_host_sni") == "true" || !namedHosts(c) {
		return
	}
	if common := tls.Get("common_tls_context"); common != nil && slices.ContainsFunc(common.Keys, func(k string) bool { return strings.Contains(k, "tls_certificate") }) {
		return // mutual TLS: both sides are of one hand
	}
	options := c.Get("upstream_http_protocol_options")
	if t := c.At("typed_extension_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"); t != nil {
		options = t.Get("upstream_http_protocol_options")
	}
	if options.Str("auto_sni") == "true" || options.Str("override_auto_sni_header") != "" {
		return
	}
	w.add(sure, config.Error{Msg: "the server is not told by which name it is asked (sni, auto_host_sni or auto_sni): one of several names cannot choose its certificate"},
		"transport_socket", "typed_config")
}

// namedHosts tells whether all hosts of a cluster have names of the Internet: of a server inside, who asks knows what it serves.
func namedHosts(c *configfile.Value) bool {
	n := 0
	for _, e := range c.Get("load_assignment").List("endpoints") {
		for _, h := range e.List("lb_endpoints") {
			host := strings.TrimSuffix(h.At("endpoint", "address", "socket_address").Str("address"), ".")
			top := host[strings.LastIndexByte(host, '.')+1:]
			if _, err := netip.ParseAddr(host); err == nil || len(top) == len(host) || slices.Contains(inside, top) {
				return false
			}
			n++
		}
	}
	return n > 0
}

// inside are the last labels of names that are not of the Internet.
var inside = []string{"svc", "local", "internal", "localhost", "localdomain", "lan", "intranet", "corp", "home", "private", "consul", "test", "arpa"}

// validations are what of a validation context says which peer is the right one, or that none need be.
var validations = []string{"trusted_ca", "system_root_certs", "ca_certificate_provider_instance", "custom_validator_config", "verify_certificate_spki",
	"verify_certificate_hash", "trust_chain_verification"}

// upstreamTLS looks at TLS that verifies nobody. What a control plane or another library decides is left alone, and who writes
// trust_chain_verification has thought of it.
func (w *walker) upstreamTLS(v *configfile.Value) {
	w.versions(v, "TLSV1_2")
	if !elsewhere(v) && !has(v, validations) {
		w.add(sure, config.Error{Msg: "the server's certificate is not verified: common_tls_context.validation_context.trusted_ca (or system_root_certs: {}) does it"})
	}
}

// asking are validations with which clients are asked for their certificates at all.
var asking = append(validations[:6:6], "match_typed_subject_alt_names", "match_subject_alt_names")

// downstreamTLS looks at TLS for clients, and at client certificates that are required and never asked for.
func (w *walker) downstreamTLS(v *configfile.Value) {
	w.versions(v, "TLSV1_3")
	if v.Str("require_client_certificate") == "true" && !elsewhere(v) && !has(v, asking) {
		w.add(sure, config.Error{Msg: "require_client_certificate checks nothing without common_tls_context.validation_context.trusted_ca: clients without a certificate are let in"},
			"require_client_certificate")
	}
}

// elsewhere tells whether a control plane or another library decides about peers' certificates.
func elsewhere(v *configfile.Value) bool {
	common := v.Get("common_tls_context")
	return common != nil && slices.ContainsFunc(common.Keys, func(k string) bool {
		return k == "custom_handshaker" || k != "validation_context" && strings.Contains(k, "validation_context")
	})
}

// has tells whether the validation context has one of some fields.
func has(v *configfile.Value, fields []string) bool {
	c := v.At("common_tls_context", "validation_context")
	return c != nil && slices.ContainsFunc(c.Keys, func(k string) bool { return slices.Contains(fields, k) })
}

// versions looks at the versions of a TLS context, whose greatest is most if nothing else is said.
func (w *walker) versions(v *configfile.Value, most string) {
	p := v.At("common_tls_context", "tls_params")
	least, most, implied := "TLSV1_2", most, true
	if x := strings.ToUpper(p.Str("tls_minimum_protocol_version")); slices.Contains(versionsOfTLS, x) {
		least = x
	}
	if x := strings.ToUpper(p.Str("tls_maximum_protocol_version")); slices.Contains(versionsOfTLS, x) {
		most, implied = x, false
	}
	if least <= most {
		return
	}
	field, x := "tls_maximum_protocol_version", config.Error{Msg: "no handshake succeeds: the greatest version is below the least, " + version(least)}
	if implied {
		field, x = "tls_minimum_protocol_version", config.Error{Msg: "no handshake succeeds: this is above the greatest version, which is " + version(most) +
			" for upstreams if nothing else is said", Advice: "tls_maximum_protocol_version: " + version(least)}
	}
	w.add(sure, x, "common_tls_context", "tls_params", field)
}

// version is the name of one of versionsOfTLS.
func version(upper string) string { return strings.Replace(upper, "V", "v", 1) }
