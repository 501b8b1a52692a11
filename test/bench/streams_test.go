package bench_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// streamsBar is how much more memory many long streams may take if each begins under another configuration, in bytes: of live heap,
// where what the streams themselves take is known from the same streams without pushes. The short version allows eachBar for one.
const (
	streamsBar = 8 << 20
	eachBar    = 8 << 10
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
			bar := int64(streamsBar)
			if !*full {
				bar = eachBar * int64(streams)
			}
			if pinned := pushed - plain; pinned > bar {
				t.Errorf("the configurations that are held on to take %d bytes, want at most %d", pinned, bar)
			}
		})
	}
}

// longStreams begins streams, each under another push or all under one configuration, and returns what the live heap has grown by.
func longStreams(t *testing.T, n, streams int, up upstreams, client func(addr string) *http.Client, pushes bool) (grown int64) {
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
	// What changes and requests take at first, they take once.
	for i := range 3 {
		w.push(i, up)
		awaitVersion(t, admin, w)
		hang(t, c, i)()
	}
	before := settle(p)
	for i := range streams {
		if pushes {
			w.push(i, up)
			awaitVersion(t, admin, w)
		}
		ends = append(ends, hang(t, c, i%n))
	}
	after := settle(p)
	p.profile("heap", fmt.Sprint("streams-", pushes, ".pprof"))
	grown = int64(after.Live) - int64(before.Live)
	t.Logf("%d streams, each under another push of %d clusters: %v: heap %.2f MiB more (%.1f KiB a stream), RSS %.2f MiB more", streams, n, pushes,
		float64(grown)/(1<<20), float64(grown)/1024/float64(streams), float64(int64(after.RSS)-int64(before.RSS))/(1<<20))
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
