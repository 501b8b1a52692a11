package http_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// A listener that bypasses the overload manager accepts connections above its limit, and they do not count.
func TestBypassOverloadManager(t *testing.T) {
	listener := func(name, more string) string {
		return fmt.Sprintf(`
  - name: %s
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}%s
    filter_chains: [{filters: [{name: d, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: x, http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
      route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}]}}}]}]`, name, more)
	}
	p := proxytest.Start(t, `
overload_manager:
  resource_monitors:
  - name: envoy.resource_monitors.global_downstream_max_connections
    typed_config: {"@type": type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig, max_active_downstream_connections: 1}
static_resources:
  listeners:`+listener("held", "")+listener("free", "\n    bypass_overload_manager: true"))
	open := func(name string) string {
		t.Helper()
		c, err := net.Dial("tcp", p.Addr(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		return strings.TrimSpace(line)
	}
	for i, step := range []struct{ name, want string }{
		{"free", "HTTP/1.1 200 OK"}, {"held", "HTTP/1.1 200 OK"}, {"held", ""}, {"free", "HTTP/1.1 200 OK"},
	} {
		if got := open(step.name); got != step.want {
			t.Errorf("connection %d, to %s: %q, want %q", i, step.name, got, step.want)
		}
	}
}
