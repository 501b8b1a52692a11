package bench_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// startUpstreams starts n HTTP servers that speak HTTP/1 and HTTP/2 with prior knowledge.
func startUpstreams(tb testing.TB, n int, h http.Handler) upstreams {
	var up upstreams
	for range n {
		s := httptest.NewServer(h2c.NewHandler(h, &http2.Server{MaxConcurrentStreams: 10000}))
		tb.Cleanup(s.Close)
		up.list = append(up.list, s.Listener.Addr().String())
	}
	return up
}

var answers = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })

// http2Client speaks HTTP/2 with prior knowledge to one address, whatever is asked for.
func http2Client(addr string) *http.Client {
	return &http.Client{Transport: &http2.Transport{AllowHTTP: true, StrictMaxConcurrentStreams: true,
		DialTLSContext: func(ctx context.Context, network, _ string, _ *tls.Config) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}}
}

func http1Client(addr string) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}}
}

// tlsClient connects anew for each request, so that a new certificate is seen.
func tlsClient(addr string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}}
}

// load sends requests at a constant rate, over several kinds of connections, and counts what went wrong.
type load struct {
	sent, failed atomic.Int64
	first        atomic.Pointer[string] // what went wrong first
	stop         chan struct{}
	wg           sync.WaitGroup
}

// user is one loop of requests.
type user struct {
	client *http.Client
	scheme string
	rate   float64 // requests per second
	host   func(i int) string
}

func startLoad(users []user) *load {
	l := &load{stop: make(chan struct{})}
	for i, u := range users {
		l.wg.Go(func() { l.run(u, float64(i)/float64(len(users))) })
	}
	return l
}

// run begins after a share of the time between two requests, so that users do not come all at once.
func (l *load) run(u user, after float64) {
	every := time.Duration(float64(time.Second) / u.rate)
	pause(time.Duration(after * float64(every))) // part of the schedule
	t := time.NewTicker(every)
	defer t.Stop()
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		case <-t.C:
		}
		if err := get(u.client, u.scheme+"://"+u.host(i)+"/1k", body); err != nil {
			text := fmt.Sprintf("%s: %v", u.host(i), err)
			l.first.CompareAndSwap(nil, &text)
			l.failed.Add(1)
		}
		l.sent.Add(1)
	}
}

// end stops it and tells how many requests were sent and how many failed.
func (l *load) end() (sent, failed int64, first string) {
	close(l.stop)
	l.wg.Wait()
	if p := l.first.Load(); p != nil {
		first = *p
	}
	return l.sent.Load(), l.failed.Load(), first
}

func get(c *http.Client, url, want string) error {
	r, err := c.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode != 200:
		return fmt.Errorf("%d: %.100q", r.StatusCode, b)
	case want != "" && string(b) != want:
		return fmt.Errorf("%d bytes instead of %d", len(b), len(want))
	}
	return nil
}

// pause waits: a measurement, a schedule, or the slowness of a peer takes real time.
func pause(d time.Duration) {
	//ban:allow bannedcall nothing else than time is waited for
	time.Sleep(d)
}
