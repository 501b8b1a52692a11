package sim_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

const tcpBootstrap = `
static_resources:
  listeners:
  - name: main
    address: LISTEN
    per_connection_buffer_limit_bytes: 16384
    filter_chains:
    - filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: t
          cluster: b
  clusters:
  - name: b
    type: STATIC
    connect_timeout: 5s
    per_connection_buffer_limit_bytes: 16384
    load_assignment:
      cluster_name: b
      endpoints:
      - lb_endpoints:
        - endpoint: {address: UPSTREAM_0}
        - endpoint: {address: UPSTREAM_1}
`

// Both directions arrive whole, each with its end: copied through small buffers, and where half of the games splice.
func TestTCP(t *testing.T) {
	for name, bootstrap := range map[string]string{
		"small buffers": tcpBootstrap,
		"spliced":       strings.ReplaceAll(tcpBootstrap, "    per_connection_buffer_limit_bytes: 16384\n", ""),
	} {
		t.Run(name, func(t *testing.T) {
			o := simtest.Options{Protocol: simtest.TCP, Stats: map[string]uint64{}}
			games(t, 60, simtest.Proxy(bootstrap, 2), o)
			happened(t, o.Stats, "tcp.t.downstream_cx_total", "cluster.b.upstream_cx_connect_fail", "cluster.b.upstream_cx_connect_timeout")
		})
	}
}
