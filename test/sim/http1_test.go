// Package sim_test plays with whole proxies on a simulated network, many games under many seeds. A failure prints SEED=; set
// DRAGOMAN_SIM_SEED to play that game alone, with DRAGOMAN_SIM_TRACE naming a file for all that happens in it.
package sim_test

import (
	"bufio"
	"os"
	"strconv"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

const plain = `
static_resources:
  listeners:
  - name: main
    address: LISTEN
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: h1
          codec_type: HTTP1
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
    connect_timeout: 5s
    load_assignment:
      cluster_name: b
      endpoints:
      - lb_endpoints:
        - endpoint: {address: UPSTREAM_0}
        - endpoint: {address: UPSTREAM_1}
`

func TestHTTP1(t *testing.T) {
	// Envoy closes a connection on which more than two answers wait to be sent.
	games(t, 100, simtest.Proxy(plain, 2), simtest.Options{Pipeline: 2})
}

// games plays n games, or those that the environment asks for.
func games(t *testing.T, n uint64, build simtest.Build, o simtest.Options) {
	t.Helper()
	from := uint64(0)
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
