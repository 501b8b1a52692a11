package original_dst_test

import (
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/original_dst"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/proxy_protocol"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// A cluster of type ORIGINAL_DST connects to the address that a header names, to the one that a PROXY header has told, with its own port
// or another, and to nothing for a client that has asked for the listener itself; over HTTP, over TCP, and behind a listener that handed the
// connection over.
func TestOriginalDstCluster(t *testing.T) {
	upstream := func(name string) (host string, port string) {
		s := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, name) }))
		t.Cleanup(s.Close)
		host, port, _ = net.SplitHostPort(s.Listener.Addr().String())
		return host, port
	}
	host, one := upstream("one")
	_, two := upstream("two")
	const hcm = `{name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: x, delayed_close_timeout: 0s, http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
      route_config: {response_headers_to_add: [{header: {key: at, value: "%UPSTREAM_HOST%"}}],
        virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /port}, route: {cluster: port}}, {match: {prefix: /}, route: {cluster: header}}]}]}}}`
	const tcp = `{name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: header}}`
	listener := func(name, port, filter, more string) string {
		return fmt.Sprintf("\n  - {name: %s, address: {socket_address: {address: 127.0.0.1, port_value: %s}}, filter_chains: [{filters: [%s]}], %s}", name, port, filter, more)
	}
	const proxyProtocol = `listener_filters: [{name: p, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol,
      allow_requests_without_proxy_protocol: true}}]`
	p := proxytest.Start(t, `
static_resources:
  listeners:`+listener("http", "0", hcm, proxyProtocol)+listener("tcp", "0", tcp, proxyProtocol)+
		listener("virtual", "0", tcp, "use_original_dst: true, "+proxyProtocol)+
		listener("behind", two, hcm, "use_original_dst: true, bind_to_port: false")+`
  clusters:
  - {name: header, type: ORIGINAL_DST, lb_policy: CLUSTER_PROVIDED, original_dst_lb_config: {use_http_header: true}}
  - {name: port, type: ORIGINAL_DST, lb_policy: CLUSTER_PROVIDED, original_dst_lb_config: {use_http_header: true, upstream_port_override: `+two+`}}
`, proxytest.Extensions(ext.Set{ListenerFilters: []ext.ListenerFilter{original_dst.Extension, proxy_protocol.Extension}}))
	ask := func(listener, proxied, path, header string) string {
		t.Helper()
		c, err := net.Dial("tcp", p.Addr(listener))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if proxied != "" {
			proxied = "PROXY TCP4 192.0.2.1 " + host + " 99 " + proxied + "\r\n"
		}
		if header != "" {
			header = "x-envoy-original-dst-host: " + header + "\r\n"
		}
		_, _ = fmt.Fprintf(c, "%sGET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", proxied, path, header)
		all, _ := io.ReadAll(c)
		head, body, _ := strings.Cut(string(all), "\r\n\r\n")
		first, rest, _ := strings.Cut(head, "\r\n")
		_, at, _ := strings.Cut(rest, "\r\nat: ")
		at, _, _ = strings.Cut(at, "\r\n")
		return strings.TrimPrefix(first, "HTTP/1.1 ") + " " + body + " " + at
	}
	_, self, _ := net.SplitHostPort(p.Addr("http"))
	for _, c := range []struct{ listener, proxied, path, header, want string }{
		{"http", "", "/", host + ":" + one, "200 OK one " + host + ":" + one},
		{"http", "", "/", host + ":" + two, "200 OK two " + host + ":" + two},
		{"http", "", "/port", host + ":" + one, "200 OK two " + host + ":" + two},
		{"http", one, "/", "", "200 OK one " + host + ":" + one},
		{"http", one, "/", host + ":" + two, "200 OK two " + host + ":" + two},
		{"http", one, "/", "nowhere", "200 OK one " + host + ":" + one},
		{"http", one, "/port", "", "200 OK two " + host + ":" + two},
		{"http", "", "/", "", "503 Service Unavailable no healthy upstream "},
		{"http", "", "/", "nowhere:80", "503 Service Unavailable no healthy upstream "},
		{"http", self, "/", "", "503 Service Unavailable no healthy upstream "}, // which is where the client is
		{"tcp", one, "/", "", "200 OK one "},
		{"tcp", "", "/", "", "  "},
		{"virtual", one, "/", "", "200 OK one "},
		{"virtual", two, "/", "", "200 OK two " + host + ":" + two},
	} {
		if got := ask(c.listener, c.proxied, c.path, c.header); got != c.want {
			t.Errorf("%s: %+v: %q", c.listener, c, got)
		}
	}
}
