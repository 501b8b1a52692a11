package config_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The expectation is what Envoy 1.40 printed for this bootstrap; only its maps are in order here.
func TestPrintBootstrap(t *testing.T) {
	const in = `
node: {id: "a<b>&'\"\\\té\u2028😀\x7f", metadata: {z: 1.5, a: 5, m: {q: [1, null, true, "x", {}, []]}, big: 12345678901}}
stats_flush_interval: 5s
static_resources:
  secrets:
  - {name: sec, generic_secret: {secret: {inline_string: xyz}}}
  clusters:
  - name: up
    connect_timeout: 0.25s
    type: STATIC
    lb_policy: RING_HASH
    ring_hash_lb_config: {minimum_ring_size: 5}
    per_connection_buffer_limit_bytes: 32768
    upstream_connection_options: {tcp_keepalive: {keepalive_probes: 0}}
    common_lb_config: {healthy_panic_threshold: {value: 0.1}, locality_weighted_lb_config: {}}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
        common_http_protocol_options: {idle_timeout: 1.000000001s, max_connection_duration: 3600s}
    health_checks:
    - {timeout: 1s, interval: 0.001s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {send: {binary: "AAH//g=="}}, initial_jitter: 0s}
    load_assignment:
      cluster_name: up
      endpoints:
      - lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, health_status: DRAINING}]
`
	const want = `{
 "node": {
  "id": "a\u003cb\u003e&'\"\\\té\u2028😀\u007f",
  "metadata": {
   "a": 5,
   "big": "12345678901",
   "m": {
    "q": [
     1,
     null,
     true,
     "x",
     {},
     []
    ]
   },
   "z": "1.5"
  }
 },
 "static_resources": {
  "clusters": [
   {
    "name": "up",
    "type": "STATIC",
    "connect_timeout": "0.250s",
    "per_connection_buffer_limit_bytes": 32768,
    "lb_policy": "RING_HASH",
    "health_checks": [
     {
      "timeout": "1s",
      "interval": "0.001s",
      "unhealthy_threshold": 1,
      "healthy_threshold": 1,
      "tcp_health_check": {
       "send": {
        "binary": "AAH//g=="
       }
      },
      "initial_jitter": "0s"
     }
    ],
    "ring_hash_lb_config": {
     "minimum_ring_size": "5"
    },
    "common_lb_config": {
     "healthy_panic_threshold": {
      "value": 0.1
     },
     "locality_weighted_lb_config": {}
    },
    "upstream_connection_options": {
     "tcp_keepalive": {
      "keepalive_probes": 0
     }
    },
    "load_assignment": {
     "cluster_name": "up",
     "endpoints": [
      {
       "lb_endpoints": [
        {
         "endpoint": {
          "address": {
           "socket_address": {
            "address": "127.0.0.1",
            "port_value": 0
           }
          }
         },
         "health_status": "DRAINING"
        }
       ]
      }
     ]
    },
    "typed_extension_protocol_options": {
     "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
      "common_http_protocol_options": {
       "idle_timeout": "1.000000001s",
       "max_connection_duration": "3600s"
      },
      "explicit_http_config": {
       "http2_protocol_options": {}
      }
     }
    }
   }
  ],
  "secrets": [
   {
    "name": "sec",
    "generic_secret": {
     "secret": {
      "inline_string": "[redacted]"
     }
    }
   }
  ]
 },
 "stats_flush_interval": "5s"
}`
	var b bootstrapv3.Bootstrap
	if _, err := config.Parse("b.yaml", []byte(in), &b, config.Options{}); err != nil {
		t.Fatal(err)
	}
	p := config.NewPrinter(nil)
	p.Redact = true
	if diff := cmp.Diff(want, string(p.Append(nil, &b, 0))); diff != "" {
		t.Error(diff)
	}
	if got := p.Append(nil, b.StaticResources.Secrets[0], 3); !strings.HasSuffix(string(got), "\n    }\n   }") {
		t.Errorf("depth is not kept: %s", got)
	}
}

// Envoy prints doubles as C++ protobuf does.
func TestPrintNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		1e20: "1e+20", 0.1: "0.1", 1.5e-7: "1.5e-07", 123456789012: "123456789012", 1e15: "1e+15", 1e16: "1e+16", 100000: "100000",
		1234567.5: "1234567.5", math.Copysign(0, -1): "-0", 1e-5: "1e-05", 0.0001: "0.0001", 3.0000000000000004: "3.0000000000000004",
		12345678901234567890: "1.2345678901234567e+19", 33.3: "33.3", math.Inf(-1): `"-Infinity"`, math.Inf(1): `"Infinity"`, math.NaN(): `"NaN"`,
	} {
		if got := string(config.NewPrinter(nil).Append(nil, structpb.NewNumberValue(v), 0)); got != want {
			t.Errorf("%v = %s, want %s", v, got, want)
		}
	}
}

func TestPrintWellKnown(t *testing.T) {
	p := config.NewPrinter(nil)
	for _, c := range []struct {
		got, want string
	}{
		{string(p.Append(nil, &timestamppb.Timestamp{Seconds: 1_000_000_000, Nanos: 5_000_000}, 0)), `"2001-09-09T01:46:40.005Z"`},
		{string(p.Append(nil, &timestamppb.Timestamp{Seconds: 1_000_000_000}, 0)), `"2001-09-09T01:46:40Z"`},
		{string(p.Append(nil, &fieldmaskpb.FieldMask{Paths: []string{"a.b_c", "d"}}, 0)), `"a.bC,d"`},
		{string(p.Append(nil, &anypb.Any{}, 0)), `{}`},
		{string(p.AppendAny(nil, "x/nope.T", []byte("abc"), 1)), "{\n  \"@type\": \"x/nope.T\",\n  \"value\": \"YWJj\"\n }"},
		{string(p.AppendAny(nil, "type.googleapis.com/google.protobuf.Duration", []byte{8, 3}, 0)), "{\n \"@type\": \"type.googleapis.com/google.protobuf.Duration\",\n \"value\": \"3s\"\n}"},
		{string(p.Append(nil, &structpb.Value{}, 0)), "null"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	p = config.NewPrinter(nil)
	p.Defaults = true
	if got, want := string(p.Append(nil, &bootstrapv3.Admin{}, 0)), "{\n \"access_log_path\": \"\",\n \"profile_path\": \"\",\n \"socket_options\": [],\n \"access_log\": [],\n \"ignore_global_conn_limit\": false,\n \"allow_paths\": []\n}"; got != want {
		t.Errorf("defaults: %s", got)
	}
}

func TestPrintRedacts(t *testing.T) {
	var b bootstrapv3.Bootstrap
	if _, err := config.Parse("b.yaml", []byte(`static_resources:
  secrets:
  - {name: tls, tls_certificate: {private_key: {filename: k}, certificate_chain: {filename: c}, password: {inline_bytes: "YWJj"}}}
  clusters:
  - name: up
    transport_socket: {name: x, typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
      value: {common_tls_context: {tls_certificates: [{private_key: {filename: k}, certificate_chain: {filename: c}}]}}}}
`), &b, config.Options{}); err != nil {
		t.Fatal(err)
	}
	p := config.NewPrinter(nil)
	p.Redact = true
	var got any
	if err := json.Unmarshal(p.Append(nil, b.StaticResources, 0), &got); err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal([]byte(`{"clusters": [{"name": "up", "transport_socket": {"name": "x", "typed_config": {
		"@type": "type.googleapis.com/xds.type.v3.TypedStruct", "type_url": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
		"value": {"common_tls_context": {"tls_certificates": [{"certificate_chain": {"filename": "c"}, "private_key": {"filename": "[redacted]"}}]}}}}}],
		"secrets": [{"name": "tls", "tls_certificate": {"certificate_chain": {"filename": "c"}, "private_key": {"filename": "[redacted]"}, "password": {"inline_bytes": "W3JlZGFjdGVkXQ=="}}}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	plain := config.NewPrinter(nil).Append(nil, &tlsv3.TlsCertificate{}, 0)
	if string(plain) != "{}" {
		t.Errorf("%s", plain)
	}
}
