package http_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	abuffer "github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	ahttp "github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// stamp is a filter for either side of the router: it marks what passes, holds bodies back until they are whole, and answers what has
// x-refuse itself.
type stamp struct {
	filter.PassThrough
	mark string
}

func (s *stamp) DecodeHeaders(h *ahttp.HeaderMap, end bool) filter.HeadersStatus {
	if v, ok := h.GetName("x-refuse"); ok && v == s.mark {
		s.CB.SendLocalReply(&filter.LocalReply{Code: 418, Body: "refused by " + s.mark, Details: "refused", GRPCStatus: -1})
		return filter.HeadersStopIteration
	}
	h.AddName("x-through", s.mark)
	if end {
		return filter.HeadersContinue
	}
	return filter.HeadersStopIteration
}

func (s *stamp) DecodeData(_ *abuffer.Buffer, end bool) filter.DataStatus {
	if end {
		return filter.DataContinue
	}
	return filter.DataStopIterationAndBuffer
}

func (s *stamp) EncodeHeaders(h *ahttp.HeaderMap, end bool) filter.HeadersStatus {
	h.AddName("x-back", s.mark)
	if end {
		return filter.HeadersContinue
	}
	return filter.HeadersStopIteration
}

func (s *stamp) EncodeData(_ *abuffer.Buffer, end bool) filter.DataStatus {
	if end {
		return filter.DataContinue
	}
	return filter.DataStopIterationAndBuffer
}

type stampFactory struct{ mark string }

func (f stampFactory) New(network.Dispatcher) filter.Filter { return &stamp{mark: f.mark} }
func (stampFactory) Sides() filter.Sides                    { return filter.Both }

var stamps = ext.HTTPFilter{Info: ext.Info{Name: "test.stamp", TypeURLs: []string{"test.Stamp"}}, New: func(m proto.Message, _ ext.FactoryContext) (filter.Factory, error) {
	return stampFactory{m.(*structpb.Struct).AsMap()["mark"].(string)}, nil
}}

func stampOf(mark string) string {
	return `{name: ` + mark + `, typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/test.Stamp, value: {mark: ` + mark + `}}}`
}

const (
	codecOf    = `{name: codec, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec}}`
	httpOption = `{envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, `
)

// upstreamFiltered is a bootstrap with filters before the router, of the router and of a cluster, and with upstream logs.
func upstreamFiltered(explicit string) string {
	cluster := func(name, filters string) string {
		return `{name: ` + name + `, typed_extension_protocol_options: ` + httpOption + `explicit_http_config: {` + explicit + `: {}}` + filters + `}}, load_assignment: {cluster_name: ` + name +
			`, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(up)}}]}]}}`
	}
	return `{static_resources: {listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: h, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s,
  http_filters: [` + stampOf("down") + `, {name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router,
    upstream_http_filters: [` + stampOf("a") + `, ` + stampOf("b") + `, ` + codecOf + `],
    upstream_log: [{name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: TEMPDIR/log,
      log_format: {text_format_source: {inline_string: "%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_SENT% %BYTES_RECEIVED% %RESP(X-BACK)%\n"}}}}]}}],
  route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /own}, route: {cluster: own}}, {match: {prefix: /none}, route: {cluster: none}},
    {match: {prefix: /}, route: {cluster: up, retry_policy: {retry_on: 5xx, retry_back_off: {base_interval: 0.001s}}}}]}]}}}]}]}],
  clusters: [` + cluster("up", "") + `, ` + cluster("own", `, http_filters: [`+stampOf("c")+`, `+codecOf+`]`) + `, ` + cluster("none", `, http_filters: [`+codecOf+`]`) + `]}}`
}

func TestUpstreamFilters(t *testing.T) {
	for up, explicit := range map[string]string{"h1": "http_protocol_options", "h2c": "http2_protocol_options"} {
		for down := range protocols {
			t.Run(down+" to "+up, func(t *testing.T) {
				fail := 1
				upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					if fail > 0 && strings.HasPrefix(r.URL.Path, "/retry") {
						fail--
						w.WriteHeader(503)
						return
					}
					fmt.Fprintf(w, "%v %s", r.Header["X-Through"], body)
				})
				dir := t.TempDir()
				p := proxytest.Start(t, strings.ReplaceAll(upstreamFiltered(explicit), "TEMPDIR", dir), proxytest.Filter(stamps), proxytest.Upstream("up", upstream))
				get := func(method, path, body string, headers ...string) string {
					t.Helper()
					tr := &http.Transport{Protocols: &http.Protocols{}}
					protocols[down](tr.Protocols)
					defer tr.CloseIdleConnections()
					q, err := http.NewRequest(method, p.URL(path), strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					for _, h := range headers {
						k, v, _ := strings.Cut(h, ": ")
						q.Header.Set(k, v)
					}
					a, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Do(q)
					if err != nil {
						t.Fatal(err)
					}
					defer a.Body.Close()
					text, err := io.ReadAll(a.Body)
					return fmt.Sprint(a.StatusCode, " ", a.Header["X-Back"], " ", string(text), " ", err)
				}
				long := strings.Repeat("x", 20000)
				for _, c := range []struct{ got, want string }{
					{get("GET", "/x", ""), "200 [b a down] [down a b]  <nil>"},
					{get("POST", "/post", long), "200 [b a down] [down a b] " + long + " <nil>"},
					{get("GET", "/own", ""), "200 [c down] [down c]  <nil>"},
					{get("GET", "/none", ""), "200 [down] [down]  <nil>"},
					{get("GET", "/refuse", "", "x-refuse: b"), "418 [down] refused by b <nil>"},
					// The head that filters have changed is the one of the next attempt, as in Envoy.
					{get("POST", "/retry", "abc"), "200 [b a down] [down a b a b] abc <nil>"},
				} {
					if d := cmp.Diff(c.want, c.got); d != "" {
						t.Error(d)
					}
				}
				want := []string{"/none 200 - 0 7 -", "/own 200 - 0 9 c", "/post 200 - 20000 20011 b", "/refuse 0 - 0 0 -", "/retry 200 - 3 18 b", "/retry 503 - 3 0 b", "/x 200 - 0 11 b"}
				p.Stop() // the log is whole then
				if d := cmp.Diff(want, sortedLines(dir+"/log")); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

func sortedLines(name string) []string {
	b, _ := os.ReadFile(name)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	slices.Sort(lines)
	return lines
}

// What cannot be a chain of upstream filters is refused in Envoy's words.
func TestUpstreamFiltersRefused(t *testing.T) {
	ours := stampOf("b")
	for bad, want := range map[string]string{
		codecOf + ", " + ours: "terminal filter named codec of type envoy.filters.http.upstream_codec must be the last filter in a router upstream http filter chain.",
		ours:                  "is the last filter in a router upstream http filter chain. When upstream_http_filters are specified, they must explicitly end with an UpstreamCodec filter.",
		`{name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}, ` + codecOf: "Didn't find a registered implementation for 'x'",
	} {
		text := strings.Replace(upstreamFiltered("http_protocol_options"), stampOf("a")+", "+ours+", "+codecOf, bad, 1)
		file := filepath.Join(t.TempDir(), "c.yaml")
		text = strings.ReplaceAll(strings.ReplaceAll(text, "TEMPDIR", t.TempDir()), "UPSTREAM(up)", "{socket_address: {address: 127.0.0.1, port_value: 1}}")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := proxy.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = proxy.New(b, proxy.WithExtensions(ext.Set{HTTPFilters: []ext.HTTPFilter{stamps}})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
