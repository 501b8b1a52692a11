package fm_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
)

// sink is an owner and a terminal filter that do nothing, so that what is left is the manager's own cost.
type sink struct {
	filter.PassThrough
	w     *event.Worker
	arena http.Arena
	info  stream.Info
	s     fm.Stream
	n     int
}

func (k *sink) New(network.Dispatcher) filter.Filter { return k }
func (k *sink) Sides() filter.Sides                  { return filter.Decoder }

func (k *sink) DecodeHeaders(*http.HeaderMap, bool) filter.HeadersStatus {
	return filter.HeadersStopIteration
}
func (k *sink) DecodeData(*buffer.Buffer, bool) filter.DataStatus {
	return filter.DataStopIterationNoBuffer
}

func (k *sink) Worker() *event.Worker          { return k.w }
func (k *sink) Info() *stream.Info             { return &k.info }
func (k *sink) Connection() network.Connection { return nil }
func (k *sink) Arena() *http.Arena             { return &k.arena }
func (k *sink) Route() route.Entry             { return nil }
func (k *sink) ClearRouteCache()               {}
func (k *sink) Send1xx(*http.HeaderMap)        {}

func (k *sink) SendHeaders(*http.HeaderMap, bool)                              { k.n++ }
func (k *sink) SendData(b *buffer.Buffer, _ bool)                              { b.Reset() }
func (k *sink) SendTrailers(*http.HeaderMap)                                   {}
func (k *sink) TooLarge(bool)                                                  {}
func (k *sink) ReadDisable(bool)                                               {}
func (k *sink) Recreate(*buffer.Buffer, *http.HeaderMap) bool                  { return false }
func (k *sink) Reset(http.ResetReason)                                         {}
func (k *sink) PrepareLocalReply(*filter.LocalReply) (*http.HeaderMap, string) { return nil, "" }
func (k *sink) Send(*filter.Call, func(*filter.Answer, error)) filter.Canceler { return nil }

// passing is a filter that looks at everything and changes nothing. One value serves all streams.
type passing struct{ filter.PassThrough }

func (p *passing) New(network.Dispatcher) filter.Filter { return p }
func (p *passing) Sides() filter.Sides                  { return filter.Both }

// exchange is one request with an answer of one piece.
func exchange(k *sink, chain *fm.Chain, req, resp *http.HeaderMap, body *buffer.Buffer, text []byte) {
	k.s.Init(k, chain, 1<<20)
	k.s.DecodeHeaders(req, true)
	k.s.EncodeHeaders(resp, false)
	body.Borrow(text)
	k.s.EncodeData(body, true)
	k.s.Complete()
	k.s.Destroy()
}

func cost(filters int) func() {
	k := &sink{w: newWorker()}
	chain := &fm.Chain{}
	for range filters {
		chain.Entries = append(chain.Entries, fm.Entry{Name: "passing", Factory: &passing{}})
	}
	chain.Entries = append(chain.Entries, fm.Entry{Name: "sink", Factory: k})
	var req, resp http.HeaderMap
	var body buffer.Buffer
	body.Init(&k.w.Bufs)
	text := make([]byte, 1024)
	return func() { exchange(k, chain, &req, &resp, &body, text) }
}

func TestAllocatesNothing(t *testing.T) {
	for _, n := range []int{0, 1, 5} {
		f := cost(n)
		f()
		if a := testing.AllocsPerRun(100, f); a != 0 {
			t.Errorf("%v allocations per request with %d filters", a, n)
		}
	}
}

func benchmark(b *testing.B, filters int) {
	f := cost(filters)
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

func BenchmarkTerminalOnly(b *testing.B) { benchmark(b, 0) }
func BenchmarkFiveFilters(b *testing.B)  { benchmark(b, 5) }
