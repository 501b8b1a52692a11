package proxy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// everywhere has a mistake of each kind in each part of a bootstrap.
const everywhere = `
node: {idd: x}
admin: {address: {socket_address: {address: nowhere, port_value: 0}}}
stats_config: {stats_tags: [{tag_name: a, regex: "("}]}
overload_manager: {resource_monitors: [{name: envoy.resource_monitors.bogus}]}
layered_runtime: {layers: [{name: a, admin_layer: {}}, {name: a, static_layer: {}}, {name: b, admin_layer: {}}]}
static_resources:
  clusters:
  - {name: a, connect_timeout: 5, lb_policy: MAGLEV, maglev_lb_config: {table_size: 4}}
  - {name: a, lb_policy: NOPE}
  - {name: b, type: EDS, filters: [{name: x}]}
  - {name: c, cluster_type: {name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [a]}}}
  listeners:
  - name: l
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config:
            virtual_hosts:
            - name: v
              domains: ["*", "*"]
              routes:
              - {match: {prefix: /}, route: {cluster: nope}}
              - {match: {prefix: /}, route: {cluster: neither}}
              - {match: {safe_regex: {regex: "("}}, direct_response: {status: 99}}
              - {match: {prefix: /}, route: {cluster: more}} # of a single one, the second cluster a would be taken for the one that is missing
          http_filters:
          - {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          - {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
`

func TestCheckTellsEverythingAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, []byte(everywhere), 0o600); err != nil {
		t.Fatal(err)
	}
	r := proxy.Check(path, proxy.LoadOptions{})
	const (
		hcm = "static_resources.listeners[0].filter_chains[0].filters[0].typed_config"
		vh  = hcm + ".route_config.virtual_hosts[0]"
	)
	want := []string{
		"2 unknown_field node.idd",
		"3 invalid admin.address.socket_address.address",
		"4 invalid stats_config.stats_tags[0].regex",
		"5 unknown_type overload_manager.resource_monitors[0]",
		"6 invalid layered_runtime.layers[1].name",
		"6 invalid layered_runtime.layers[2].admin_layer",
		"9 wrong_type static_resources.clusters[0].connect_timeout",
		"9 invalid static_resources.clusters[0].maglev_lb_config.table_size",
		"10 invalid static_resources.clusters[1].name",
		"10 wrong_type static_resources.clusters[1].lb_policy",
		"11 invalid static_resources.clusters[2].eds_cluster_config",
		"11 unsupported static_resources.clusters[2].filters",
		"12 unsupported static_resources.clusters[3].cluster_type.typed_config",
		"20 rule " + hcm + ".stat_prefix",
		"24 invalid " + vh + ".domains[1]",
		"26 invalid " + vh + ".routes[0].route.cluster",
		"27 invalid " + vh + ".routes[1].route.cluster",
		"28 invalid " + vh + ".routes[2].match.safe_regex.regex",
		"28 rule " + vh + ".routes[2].direct_response.status",
		"29 invalid " + vh + ".routes[3].route.cluster",
		"31 invalid " + hcm + ".http_filters[0]",
	}
	var got []string
	for _, p := range r.Problems {
		if p.File != path || p.Line < 1 || p.Col < 1 || p.Msg == "" {
			t.Errorf("no place in %+v", p)
		}
		got = append(got, strings.Join([]string{strconv.Itoa(p.Line), string(p.Kind), p.Path}, " "))
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("not told: %s", w)
		}
	}
	for i, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("told for nothing: %s", r.Problems[i].Error())
		}
	}
	if !slices.IsSortedFunc(r.Problems, func(a, b proxy.Problem) int { return a.Line - b.Line }) {
		t.Errorf("not in the order of the file: %s", got)
	}
}

func TestCheckIsStructured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	text := `static_resources: {clusters: [{name: c, cluster_type: {name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [a]}}}], secret: []}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(proxy.Check(path, proxy.LoadOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"problems":[{"file":"PATH","line":1,"col":89,"path":"static_resources.clusters[0].cluster_type.typed_config","kind":"unsupported",` +
		`"message":"could not find @type 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig': not supported yet, an extension of Envoy that this build does not have",` +
		`"extension":"envoy.extensions.clusters.aggregate.v3.ClusterConfig"},` +
		`{"file":"PATH","line":1,"col":182,"path":"static_resources.secret","kind":"unknown_field","message":"no such field: 'secret': message envoy.config.bootstrap.v3.Bootstrap.StaticResources has unknown fields","suggestion":"secrets"}]}`
	if s := strings.ReplaceAll(string(got), path, "PATH"); s != want {
		t.Errorf("got %s", s)
	}
}

func TestCheckOfWhatIsRight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	text := `static_resources: {clusters: [{name: c, type: STATIC, new: 1, max_requests_per_connection: 1}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := proxy.Check(path, proxy.LoadOptions{AllowUnknownFields: true})
	if !r.OK() || len(r.Notes) != 2 || r.Notes[0].Kind != proxy.UnknownField || r.Notes[1].Kind != proxy.Deprecated {
		t.Errorf("%+v", r)
	}
	if r := proxy.Check(filepath.Join(t.TempDir(), "none.yaml"), proxy.LoadOptions{}); r.OK() || r.Problems[0].Kind != proxy.Unreadable {
		t.Errorf("%+v", r)
	}
}

// What is missing is told once, though both the source and what it is for are looked at.
func TestCheckTellsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	text := `{node: {id: x, cluster: x}, static_resources: {clusters: [{name: c, connect_timeout: 1s}]},
dynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: c, stat_prefix: c}}]}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := proxy.Check(path, proxy.LoadOptions{}); len(r.Problems) != 1 || r.Problems[0].Path != "dynamic_resources.ads_config.grpc_services[0].google_grpc" || r.Problems[0].Kind != proxy.Unsupported {
		t.Errorf("%+v", r.Problems)
	}
}

// What is wrong with a TLS context stands below the typed_config, and is told of each source.
func TestCheckFindsTheFieldsOfTLS(t *testing.T) {
	const sds = `{name: x, sds_config: {api_config_source: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: c, stat_prefix: c}}]}}}`
	const tls = "static_resources.clusters[1].transport_socket.typed_config."
	for _, c := range []struct {
		context string
		want    []string
	}{
		{
			`common_tls_context: {tls_certificate_sds_secret_configs: [SDS], combined_validation_context: {default_validation_context: {}, validation_context_sds_secret_config: SDS}}`,
			[]string{
				"common_tls_context.combined_validation_context.validation_context_sds_secret_config.sds_config.api_config_source.grpc_services[0].google_grpc",
				"common_tls_context.tls_certificate_sds_secret_configs[0].sds_config.api_config_source.grpc_services[0].google_grpc",
			},
		},
		{`common_tls_context: {validation_context_sds_secret_config: {name: none}}`, []string{"common_tls_context.validation_context_sds_secret_config.name"}},
		{`common_tls_context: {key_log: {path: x}}`, []string{"common_tls_context.key_log"}},
		{`common_tls_context: {validation_context: {system_root_certs: {}}}`, []string{"common_tls_context.validation_context.system_root_certs"}},
		{`common_tls_context: {tls_params: {ecdh_curves: [x]}}`, []string{"common_tls_context.tls_params.ecdh_curves"}},
		{`common_tls_context: {tls_certificates: [{pkcs12: {filename: x}}]}`, []string{"common_tls_context.tls_certificates[0].pkcs12"}},
		{`allow_renegotiation: true`, []string{"allow_renegotiation"}},
	} {
		path := filepath.Join(t.TempDir(), "envoy.yaml")
		text := `{node: {id: x, cluster: x}, static_resources: {clusters: [{name: c, connect_timeout: 1s}, {name: d, connect_timeout: 1s,
transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, ` +
			strings.ReplaceAll(c.context, "SDS", sds) + `}}}]}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range proxy.Check(path, proxy.LoadOptions{}).Problems {
			got = append(got, strings.TrimPrefix(p.Path, tls))
			if p.Line != 2 || p.Col < 150 { // behind the @type, not at the transport_socket
				t.Errorf("%s: at %d:%d", p.Path, p.Line, p.Col)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.context, got, c.want)
		}
	}
}

// The words say once what was found, what may stand there, and what else has to do with it.
func TestCheckWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"static_resources:\n\tclusters: []\n", ":2:1: invalid YAML: found character that cannot start any token: a tab; only spaces indent"},
		{"static_resources: {clusters: [{name: @a}]}\n", "cannot start any token: '@'; a text that begins so needs quotes"},
		{"admin: {address: {socket_address: {address: 127.0.0.1, port_value: http}}}\n", "invalid number: 'http'; allowed: an integer from 0 to 65535"},
		{
			"static_resources: {clusters: [{name: c, connect_timeout: -1s}]}\n",
			"Invalid duration: Expected positive duration; found '-1s'; allowed: a duration greater than 0s, in seconds with the unit, such as \"1.5s\"",
		},
		{
			`static_resources: {clusters: [{name: c}], listeners: [
{address: {socket_address: {address: 127.0.0.1, port_value: 1234}}, filter_chains: [FILTER]},
{address: {socket_address: {address: 127.0.0.1, port_value: 1234}}, filter_chains: [FILTER]}]}`,
			"is set to 'false' for the listener; the existing one is static_resources.listeners[0] at FILE:2:1",
		},
	} {
		path := filepath.Join(t.TempDir(), "envoy.yaml")
		text := strings.ReplaceAll(c.text, "FILTER", `{filters: [{name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: c}}]}`)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := proxy.Check(path, proxy.LoadOptions{})
		if len(r.Problems) != 1 || !strings.HasSuffix(strings.ReplaceAll(r.Problems[0].Error(), path, "FILE"), c.want) {
			t.Errorf("%q: %+v, want %s", c.text, r.Problems, c.want)
		}
	}
}

// What Envoy takes and nobody means is a note.
func TestCheckNotesWhatStandsTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	text := strings.ReplaceAll(`static_resources:
  clusters:
  - name: c
    lb_policy: ROUND_ROBIN
    lb_policy: RANDOM
  listeners:
  - {name: same, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [FILTER]}
  - {name: other, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [FILTER]}
  - {name: same, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [FILTER]}
`, "FILTER", `{filters: [{name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: c}}]}`)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := proxy.Check(path, proxy.LoadOptions{})
	var got []string
	for _, n := range r.Notes {
		got = append(got, strings.ReplaceAll(n.Error(), path, "FILE"))
	}
	want := []string{
		"FILE:5:5: the key 'lb_policy' stands twice: this value is used, and not the one at 4:5, as in Envoy",
		"FILE:9:12: static_resources.listeners[2].name: a listener named 'same' stands before: this one is left out, as in Envoy",
	}
	if !r.OK() || !slices.Equal(got, want) {
		t.Errorf("%v %q", r.Problems, got)
	}
}

// A listener at the address of the admin interface is told: the text is right, and the proxy would not start.
func TestCheckNotesTheAdminsAddress(t *testing.T) {
	for _, c := range []struct {
		admin, listener, more string
		want                  bool
	}{
		{"{socket_address: {address: 127.0.0.1, port_value: 7001}}", "{socket_address: {address: 127.0.0.1, port_value: 7001}}", "", true},
		{"{socket_address: {address: 127.0.0.1, port_value: 7001}}", "{socket_address: {address: 127.0.0.1, port_value: 7002}}", "", false},
		{"{socket_address: {address: 127.0.0.1, port_value: 7001}}", "{socket_address: {address: 127.0.0.1, port_value: 7002}}",
			", additional_addresses: [{address: {socket_address: {address: 127.0.0.1, port_value: 7001}}}]", true},
		{"{socket_address: {address: 127.0.0.1, port_value: 7001}}", "{socket_address: {address: 127.0.0.1, port_value: 7001}}", ", bind_to_port: false", false},
		{"{socket_address: {address: 127.0.0.1, port_value: 0}}", "{socket_address: {address: 127.0.0.1, port_value: 0}}", "", false},
		{"{pipe: {path: a.sock}}", "{pipe: {path: a.sock}}", "", true},
	} {
		path := filepath.Join(t.TempDir(), "envoy.yaml")
		text := "admin:\n  address: " + c.admin + "\nstatic_resources:\n  clusters: [{name: c}]\n  listeners:\n  - {name: l, address: " + c.listener + c.more +
			`, filter_chains: [{filters: [{name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: c}}]}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := proxy.Check(path, proxy.LoadOptions{})
		var got string
		for _, n := range r.Notes {
			got += strings.ReplaceAll(n.Error(), path, "FILE")
		}
		if !r.OK() || c.want != (strings.HasPrefix(got, "FILE:6:") && strings.Contains(got, "static_resources.listeners[0].address: the admin interface has the address ") &&
			strings.Contains(got, " too (FILE:2:12): one of them cannot listen")) || !c.want && got != "" {
			t.Errorf("%+v: %v %q", c, r.Problems, got)
		}
	}
}

// A control plane stands behind a cluster of the bootstrap that needs no control plane itself.
func TestCheckControlPlanes(t *testing.T) {
	const source = `{resource_api_version: V3, api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: NAME}}]}}`
	for name, ok := range map[string]bool{"fixed": true, "found": false, "nobody": false} {
		path := filepath.Join(t.TempDir(), "envoy.yaml")
		text := `{node: {id: x, cluster: x}, dynamic_resources: {cds_config: ` + strings.Replace(source, "NAME", name, 1) + `}, static_resources: {clusters: [
{name: fixed, connect_timeout: 1s}, {name: found, type: EDS, connect_timeout: 1s, eds_cluster_config: {eds_config: ` + strings.Replace(source, "NAME", "fixed", 1) + `}}]}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list := proxy.Check(path, proxy.LoadOptions{}).Problems
		if ok && len(list) == 0 || !ok && len(list) == 1 && list[0].Path == "dynamic_resources.cds_config.api_config_source.grpc_services[0].envoy_grpc.cluster_name" {
			continue
		}
		t.Errorf("%s: %+v", name, list)
	}
}
