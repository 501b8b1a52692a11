package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	ahttp "github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy"
)

type holder struct {
	filter.PassThrough
	passes int
	gone   bool
	tail   bool // hold the trailers, not the head
}

func (a *holder) New(network.Dispatcher) filter.Filter { return &holder{} }
func (a *holder) Sides() filter.Sides                  { return filter.Encoder }
func (a *holder) OnDestroy()                           { a.gone = true }
func (a *holder) EncodeHeaders(h *ahttp.HeaderMap, _ bool) filter.HeadersStatus {
	if a.tail = h.Has(ahttp.Trailer); a.tail {
		return filter.HeadersContinue
	}
	a.CB.Post(a.next)
	return filter.HeadersStopAllIterationAndWatermark
}
func (a *holder) EncodeTrailers(*ahttp.HeaderMap) filter.TrailersStatus {
	if !a.tail {
		return filter.TrailersContinue
	}
	a.CB.Post(a.next)
	return filter.TrailersStopIteration
}
func (a *holder) next() {
	if a.gone {
		return
	}
	if a.passes++; a.passes < 5 {
		a.CB.Post(a.next)
		return
	}
	a.CB.ContinueEncoding()
}

func TestHeldResponse(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-Up", "1")
		_, _ = fmt.Fprint(w, "hello")
	})
	config := strings.Replace(text(t, addr), "http_filters:", "http_filters:\n          - name: holder\n            typed_config: {\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, type_url: a/test.Holder}", 1)
	x := ext.Set{HTTPFilters: []ext.HTTPFilter{{Info: ext.Info{Name: "holder", TypeURLs: []string{"test.Holder"}},
		New: func(proto.Message, ext.FactoryContext) (filter.Factory, error) { return &holder{}, nil }}}}
	r := run(t, build(t, config, proxy.WithExtensions(x)))
	if got := get(t, r.url("/")); got != "200 hello" {
		t.Error(got)
	}
	r.end()
}

func TestHeldTrailers(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Trailer", "X-T")
		_, _ = fmt.Fprint(w, "hello")
		w.Header().Set("X-T", "value")
	})
	config := strings.Replace(text(t, "1.2.3.4:5"), "http_filters:", "http_filters:\n          - name: holder\n            typed_config: {\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, type_url: a/test.Holder}", 1) + `
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
`
	x := ext.Set{HTTPFilters: []ext.HTTPFilter{{Info: ext.Info{Name: "holder", TypeURLs: []string{"test.Holder"}},
		New: func(proto.Message, ext.FactoryContext) (filter.Factory, error) { return &holder{}, nil }}}}
	r := run(t, build(t, config, proxy.WithExtensions(x), proxy.WithUpstream("backend", h)))
	tr := &http.Transport{Protocols: &http.Protocols{}}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	p, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Get(r.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(p.Body)
	_ = p.Body.Close()
	if err != nil || string(b) != "hello" || p.Trailer.Get("X-T") != "value" {
		t.Errorf("%q %v %v", b, err, p.Trailer)
	}
	tr.CloseIdleConnections()
	r.end()
}
