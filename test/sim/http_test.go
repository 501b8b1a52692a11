// Package sim_test plays with whole proxies on a simulated network, many games under many seeds. A failure prints SEED=; set
// DRAGOMAN_SIM_SEED to play that game alone, with DRAGOMAN_SIM_TRACE naming a file for all that happens in it.
package sim_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// config returns a bootstrap whose upstreams speak the given protocol.
func config(upstream simtest.Protocol) string {
	options := ""
	if upstream == simtest.HTTP2 {
		options = `typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}`
	}
	return strings.Replace(bootstrap, "OPTIONS", options, 1)
}

const bootstrap = `
static_resources:
  listeners:
  - name: main
    address: LISTEN
    per_connection_buffer_limit_bytes: 16384
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: h1
          codec_type: AUTO
          use_remote_address: true
          delayed_close_timeout: 60s
          route_config:
            name: r
            virtual_hosts:
            - name: v
              domains: ["*"]
              routes:
              - match: {prefix: "/"}
                route: {cluster: b, timeout: 80s}
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: b
    type: STATIC
    OPTIONS
    connect_timeout: 5s
    per_connection_buffer_limit_bytes: 16384
    load_assignment:
      cluster_name: b
      endpoints:
      - lb_endpoints:
        - endpoint: {address: UPSTREAM_0}
        - endpoint: {address: UPSTREAM_1}
`

var protocols = map[simtest.Protocol]string{simtest.HTTP1: "http1", simtest.HTTP2: "http2"}

// Every request is answered in full, once, with its own answer; or fails where something has failed.
func TestHTTP(t *testing.T) {
	for down, name := range protocols {
		for up, upName := range protocols {
			t.Run(name+" to "+upName, func(t *testing.T) {
				// Envoy closes a connection on which more than two answers wait to be sent.
				o := simtest.Options{Protocol: down, Upstream: up, Pipeline: 2, Stats: map[string]uint64{}}
				games(t, 60, simtest.Proxy(config(up), 2), o)
				happened(t, o.Stats,
					"http.h1.downstream_rq_2xx", "http.h1.downstream_rq_4xx", "http.h1.downstream_rq_5xx",
					"http.h1.downstream_cx_destroy_remote_active_rq", "http.h1.downstream_rq_tx_reset",
					"cluster.b.upstream_cx_connect_fail", "cluster.b.upstream_cx_connect_timeout",
					"cluster.b.upstream_cx_destroy_remote_with_active_rq", "cluster.b.upstream_rq_pending_failure_eject",
					"cluster.b.upstream_flow_control_paused_reading_total", "cluster.b.upstream_rq_timeout")
				if upName == "http2" {
					// A stream of HTTP/1 is given up with its connection, which is counted there.
					happened(t, o.Stats, "cluster.b.upstream_rq_tx_reset")
				}
			})
		}
	}
}

// What an upstream has failed on is sent again.
func TestRetries(t *testing.T) {
	retrying := strings.Replace(config(simtest.HTTP1), "route: {cluster: b, timeout: 80s}", `
                route:
                  cluster: b
                  timeout: 80s
                  retry_policy: {retry_on: "5xx,reset,connect-failure,gateway-error", num_retries: 2, per_try_timeout: 20s}`, 1)
	seen := map[string]uint64{}
	games(t, 60, simtest.Proxy(retrying, 2), simtest.Options{Pipeline: 2, Retries: 2, Stats: seen})
	happened(t, seen, "cluster.b.upstream_rq_retry", "cluster.b.upstream_rq_retry_success",
		"cluster.b.upstream_rq_retry_limit_exceeded", "cluster.b.upstream_rq_per_try_timeout")
}

// happened checks that the games met what they are played for.
func happened(t *testing.T, seen map[string]uint64, counters ...string) {
	t.Helper()
	if os.Getenv("DRAGOMAN_SIM_SEED") != "" || testing.Short() {
		return
	}
	for _, name := range counters {
		if seen[name] == 0 {
			t.Errorf("it never happened: %s", name)
		}
	}
}

// games plays n games, or those that the environment asks for.
func games(t *testing.T, n uint64, build simtest.Build, o simtest.Options) {
	t.Helper()
	from := uint64(0)
	if testing.Short() {
		n = min(n, 20)
	}
	if s := os.Getenv("DRAGOMAN_SIM_SEEDS"); s != "" {
		n = number(t, s)
	}
	if s := os.Getenv("DRAGOMAN_SIM_SEED"); s != "" {
		from = number(t, s)
		n = from + 1
	}
	if name := os.Getenv("DRAGOMAN_SIM_TRACE"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b := bufio.NewWriter(f)
		defer b.Flush()
		o.Trace = func(line string) { b.WriteString(line + "\n") }
	}
	failed := 0
	for seed := from; seed < n; seed++ {
		if err := simtest.Play(seed, build, o); err != nil {
			t.Error(err)
			if failed++; failed == 10 {
				t.Fatalf("%d of %d games failed; enough", failed, seed+1-from)
			}
		}
	}
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
