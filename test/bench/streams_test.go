package bench_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// Bars of long streams, each of which begins under another configuration, in bytes. pinnedBar is how much more live heap 1,000 of them may
// hold than the same streams without changes, and scatterBar how much more may be resident for them; the short version allows eachBar
// of heap for one. residentBar is how much the process may grow by them in all, with the streams themselves and their connections.
const (
	pinnedBar   = 2 << 20
	scatterBar  = 4 << 20
	residentBar = 8 << 20
	eachBar     = 8 << 10
)

// TestStreamsPinLittle begins long requests, each under another push of all clusters and routes. A stream may hold on to its route
// and its host, not to the configuration that it began with.
func TestStreamsPinLittle(t *testing.T) {
	n, streams := scaled(150, 4521), scaled(40, 1000)
	up := startUpstreams(t, 2, held)
	for name, client := range map[string]func(addr string) *http.Client{"http1": http1Client, "http2": http2Client} {
		t.Run(name, func(t *testing.T) {
			plain := longStreams(t, n, streams, up, client, false)
			pushed := longStreams(t, n, streams, up, client, true)
			bar := int64(pinnedBar)
			if !*full {
				bar = eachBar * int64(streams)
			}
			if pinned := pushed.heap - plain.heap; pinned > bar {
				t.Errorf("the configurations that are held on to take %d bytes, want at most %d", pinned, bar)
			}
			if !*full { // with few streams the process's own pages outweigh theirs
				return
			}
			if scattered := pushed.rss - plain.rss; scattered > scatterBar {
				t.Errorf("%d bytes more are resident for streams of many configurations than for those of one, want at most %d", scattered, scatterBar)
			}
			if pushed.rss > residentBar {
				t.Errorf("resident memory grew by %d bytes, want at most %d", pushed.rss, residentBar)
			}
		})
	}
}

// growth is by how many bytes a process's memory has grown: live objects of the heap, and what is resident.
type growth struct{ heap, rss int64 }

// longStreams begins streams, each under another push or all under one configuration, and returns what the memory has grown by since
// the same was done with streams that ended at once.
func longStreams(t *testing.T, n, streams int, up upstreams, client func(addr string) *http.Client, pushes bool) (grown growth) {
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	w := newWorld(t, n, up)
	p := startProxy(t, w.path("boot.json"))
	c, admin := client(p.Addrs["plain"]), http1Client(p.Addrs["plain"])
	awaitVersion(t, admin, w)
	settle(p)
	begin := func(i, push int) (end func()) {
		if pushes {
			w.push(push, up)
			awaitVersion(t, admin, w)
		}
		return hang(t, c, i%n)
	}
	// What the first request to a cluster takes, and the room that the heap needs for a change, are no stream's.
	for i := range streams {
		begin(i, i)()
	}
	before := settle(p)
	for i := range streams {
		ends = append(ends, begin(i, streams+i))
	}
	after := settle(p)
	p.profile("heap", fmt.Sprint("streams-", pushes, ".pprof"))
	grown = growth{int64(after.Live) - int64(before.Live), int64(after.RSS) - int64(before.RSS)}
	t.Logf("%d streams, each under another push of %d clusters: %v: heap %.2f MiB more (%.1f KiB a stream), RSS %.2f MiB more", streams, n, pushes,
		float64(grown.heap)/(1<<20), float64(grown.heap)/1024/float64(streams), float64(grown.rss)/(1<<20))
	return grown
}

// push changes clusters, endpoints and all routes.
func (w *world) push(i int, up upstreams) {
	c := &w.clusters[(i+1)%len(w.clusters)]
	c.timeout = 5 + (i+1)%1000
	w.clusters[(i*7+3)%len(w.clusters)].upstream = up.list[i%len(up.list)]
	w.writeCDS()
	w.writeEDS()
	w.header = fmt.Sprint("push-", i)
	w.writeRDS()
}

// held answers with headers and a first line, and ends when the client is gone.
var held = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex() // or the server waits for the request's end
	_, _ = io.WriteString(w, "begun\n")
	_ = c.Flush()
	_, _ = io.Copy(io.Discard, r.Body)
})

// hang begins a request to a cluster and waits until its answer has begun. The result ends it.
func hang(t *testing.T, c *http.Client, i int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("http://h%d/long", i), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, writer := io.Pipe()
	r.Body, r.ContentLength = body, -1 // chunked, and it never ends
	watch := time.AfterFunc(30*time.Second, func() { cancel(); _ = writer.Close() })
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(res.Body, line); err != nil || res.StatusCode != 200 {
		t.Fatalf("%d, %q, %v", res.StatusCode, line, err)
	}
	watch.Stop()
	return func() {
		cancel()
		_ = writer.Close()
		_ = res.Body.Close()
	}
}
