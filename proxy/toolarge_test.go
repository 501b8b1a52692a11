package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	ahttp "github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// collector keeps request bodies, of at most ten bytes.
type collector struct{ filter.PassThrough }

func (c *collector) New(network.Dispatcher) filter.Filter { return &collector{} }
func (c *collector) Sides() filter.Sides                  { return filter.Decoder }
func (c *collector) DecodeHeaders(_ *ahttp.HeaderMap, end bool) filter.HeadersStatus {
	if end {
		return filter.HeadersContinue
	}
	c.CB.SetBufferLimit(10)
	return filter.HeadersStopIteration
}

func (c *collector) DecodeData(_ *buffer.Buffer, end bool) filter.DataStatus {
	if end {
		return filter.DataContinue
	}
	return filter.DataStopIterationAndBuffer
}

// A connection ends after a 413, even if the whole request came with it: Envoy's codec tells of a body before it tells of its end.
func TestConnectionEndsAfterTooLarge(t *testing.T) {
	addr := backend(t, func(http.ResponseWriter, *http.Request) {})
	config := strings.Replace(text(t, addr), "http_filters:", "http_filters:\n          - name: collector\n            typed_config: {\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, type_url: a/test.Collector}", 1)
	x := ext.Set{HTTPFilters: []ext.HTTPFilter{{Info: ext.Info{Name: "collector", TypeURLs: []string{"test.Collector"}},
		New: func(proto.Message, ext.FactoryContext) (filter.Factory, error) { return &collector{}, nil }}}}
	r := run(t, build(t, config, proxy.WithExtensions(x)))
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(r.url("/"), "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(25 * time.Second))
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n01234567890123456789"); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 413 ") || !strings.Contains(string(b), "\r\nconnection: close\r\n") {
		t.Errorf("got %q, %v", b, err)
	}
	_ = c.Close()
	r.end()
}
