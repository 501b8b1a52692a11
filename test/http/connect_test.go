package http_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	ahttp "github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// terminating is a bootstrap whose routes end CONNECT (and POST to /post) here. PORT is the echo's, DEAD that of nobody.
const terminating = `{static_resources: {listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: h, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s,
  upgrade_configs: [{upgrade_type: CONNECT}], http2_protocol_options: {allow_connect: true},
  http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router UPSTREAM_FILTERS}}],
  route_config: {name: r, virtual_hosts: [{name: dead, domains: ["dead:1"], routes: [{match: {connect_matcher: {}}, route: {cluster: dead, upgrade_configs: [{upgrade_type: CONNECT, connect_config: {}}]}}]},
    {name: half, domains: ["half:1"], routes: [{match: {connect_matcher: {}}, route: {cluster: half, retry_policy: {retry_on: connect-failure, num_retries: 2, retry_back_off: {base_interval: 0.001s}},
      upgrade_configs: [{upgrade_type: CONNECT, connect_config: {}}]}}]},
    {name: v, domains: ["*"], routes: [{match: {connect_matcher: {}}, route: {cluster: up, upgrade_configs: [{upgrade_type: CONNECT, connect_config: {}}]}},
      {match: {prefix: /post}, route: {cluster: up, upgrade_configs: [{upgrade_type: CONNECT, connect_config: {allow_post: true}}]}}]}]}}}]}]}],
  clusters: [{name: up, load_assignment: {cluster_name: up, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}}]}]}},
    {name: dead, load_assignment: {cluster_name: dead, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: DEAD}}}}]}]}},
    {name: half, load_assignment: {cluster_name: half, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: DEAD}}}},
      {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}}]}]}}]}}`

// head is a filter that adds to heads and lets all else pass.
type head struct{ filter.PassThrough }

func (*head) EncodeHeaders(h *ahttp.HeaderMap, _ bool) filter.HeadersStatus {
	h.AddName("x-head", "1")
	return filter.HeadersContinue
}

type headFactory struct{}

func (headFactory) New(network.Dispatcher) filter.Filter { return &head{} }
func (headFactory) Sides() filter.Sides                  { return filter.Both }

var heads = ext.HTTPFilter{Info: ext.Info{Name: "test.head", TypeURLs: []string{"test.Head"}},
	New: func(proto.Message, ext.FactoryContext) (filter.Factory, error) { return headFactory{}, nil }}

// echoing is a server that says hello, echoes what it gets and ends when the client does.
func echoing(t *testing.T) (port int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, "hello ")
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func startTerminating(t *testing.T, filters string) *proxytest.Proxy {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := free.Addr().(*net.TCPAddr).Port
	free.Close()
	text := strings.NewReplacer("PORT", fmt.Sprint(echoing(t)), "DEAD", fmt.Sprint(dead), " UPSTREAM_FILTERS", filters).Replace(terminating)
	return proxytest.Start(t, text, proxytest.Filter(heads))
}

func TestConnectTermination(t *testing.T) {
	// A filter that looks at heads only, and the same without one.
	for _, filters := range []string{"", ", upstream_http_filters: [{name: h, typed_config: {\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/test.Head}}, " + codecOf + "]"} {
		p := startTerminating(t, filters)
		tunnel := func(authority, early string) (net.Conn, *bufio.Reader, *http.Response) {
			c, err := net.Dial("tcp", strings.TrimPrefix(p.URL(""), "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			_ = c.SetDeadline(time.Now().Add(25 * time.Second))
			fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nhost: %s\r\n\r\n%s", authority, authority, early)
			r := bufio.NewReader(c)
			a, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
			if err != nil {
				t.Fatal(err)
			}
			return c, r, a
		}
		for _, authority := range []string{"any:1", "half:1", "half:1"} {
			c, r, a := tunnel(authority, "early ")
			fmt.Fprint(c, "late")
			body := make([]byte, len("hello early late"))
			_, err := io.ReadFull(r, body)
			c.Close()
			if (a.Header.Get("x-head") == "1") != (filters != "") || a.StatusCode != 200 || string(body) != "hello early late" || err != nil {
				t.Errorf("%s: %d, %q, %v", authority, a.StatusCode, body, err)
			}
		}
		if _, _, a := tunnel("dead:1", ""); a.StatusCode != 503 {
			t.Errorf("nobody there: %d", a.StatusCode)
		}
		p.Await("cluster.up.upstream_rq_200", "1")
		p.Await("cluster.half.upstream_rq_200", "2")
		p.Await("cluster.dead.upstream_cx_connect_fail", "1")
		for _, gauge := range []string{"up.upstream_cx_active", "up.upstream_rq_active", "half.upstream_rq_active", "dead.upstream_rq_pending_active"} {
			p.Await("cluster."+gauge, "0")
		}
	}
}

// POST whose body is sent as it is.
func TestPostTermination(t *testing.T) {
	p := startTerminating(t, "")
	for protocol := range protocols {
		for _, size := range []int64{0, 5, 1 << 20} {
			code, body := sendPath(t, p, protocol, "/post", &stream{size: size}, size)
			want, _ := io.ReadAll(&stream{size: size})
			if code != 200 || body != "hello "+string(want) {
				t.Errorf("%s: %d bytes: %d, %d bytes", protocol, size, code, len(body))
			}
		}
	}
	p.Await("cluster.up.upstream_rq_200", "6")
	p.Await("cluster.up.upstream_cx_active", "0")
	// The upstream ends after the client has: nothing is lost.
	p.Await("cluster.up.upstream_cx_destroy_remote_with_active_rq", "0")
}
