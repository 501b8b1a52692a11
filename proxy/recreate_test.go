package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	ahttp "github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// again is a filter that has requests start anew with another path.
type again struct {
	filter.PassThrough
	h *ahttp.HeaderMap
}

func (a *again) New(network.Dispatcher) filter.Filter { return &again{} }
func (a *again) Sides() filter.Sides                  { return filter.Decoder }

func (a *again) DecodeHeaders(h *ahttp.HeaderMap, end bool) filter.HeadersStatus {
	a.h = h
	if !strings.HasPrefix(h.Get(ahttp.Path), "/old") {
		return filter.HeadersContinue
	}
	if end {
		a.start()
	}
	return filter.HeadersStopIteration
}

func (a *again) DecodeData(_ *buffer.Buffer, end bool) filter.DataStatus {
	if !strings.HasPrefix(a.h.Get(ahttp.Path), "/old") {
		return filter.DataContinue
	}
	if end {
		// What the callback got is not buffered before it returns.
		a.CB.Post(a.start)
	}
	return filter.DataStopIterationAndBuffer
}

func (a *again) start() {
	old := a.h.Get(ahttp.Path)
	a.h.Set(ahttp.Path, "/new"+old[4:])
	if !a.CB.RecreateStream() {
		a.CB.SendLocalReply(&filter.LocalReply{Code: 500, Body: "no", GRPCStatus: -1})
	}
}

// TestRecreateStream: a request starts anew through new filters to another route, with its body; both rounds are logged.
func TestRecreateStream(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		_, _ = fmt.Fprint(w, q.URL.Path, " ", string(b))
	})
	config := text(t, addr)
	log := config[strings.Index(config, "path: ")+len("path: "):]
	log = log[:strings.IndexByte(log, '}')]
	config = strings.Replace(config, "path: "+log, "path: "+log+", log_format: {text_format_source: {inline_string: \"%REQ(:PATH)% %RESPONSE_CODE%\\n\"}}", 1)
	config = strings.Replace(config, "http_filters:", "http_filters:\n          - name: again\n            typed_config: {\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, type_url: a/test.Again}", 1)
	x := ext.Set{HTTPFilters: []ext.HTTPFilter{{Info: ext.Info{Name: "again", TypeURLs: []string{"test.Again"}},
		New: func(proto.Message, ext.FactoryContext) (filter.Factory, error) { return &again{}, nil }}}}
	r := run(t, build(t, config, proxy.WithExtensions(x)))
	if got := get(t, r.url("/old/1")); got != "200 /new/1 " {
		t.Error(got)
	}
	p, err := http.Post(r.url("/old/2"), "text/plain", strings.NewReader(strings.Repeat("x", 100000)))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(p.Body)
	_ = p.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if string(b) != "/new/2 "+strings.Repeat("x", 100000) {
		t.Errorf("%d bytes: %.20q", len(b), b)
	}
	r.end()
	lines, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	// The head is one and the same, so that the first round, too, shows the path that it ended with.
	if d := cmp.Diff("/new/1 0\n/new/1 200\n/new/2 0\n/new/2 200\n", string(lines)); d != "" {
		t.Error(d)
	}
}
