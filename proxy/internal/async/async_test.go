package async_test

import (
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

func TestCall(t *testing.T) {
	for _, proto := range []string{"", http2} {
		r := newRig(t)
		requests := make(chan nethttp.Header, 2)
		r.cluster("c", r.serve(func(w nethttp.ResponseWriter, q *nethttp.Request) {
			b, _ := io.ReadAll(q.Body)
			seen := q.Header.Clone()
			seen.Set("line", fmt.Sprint(q.Method, " ", q.URL, " ", q.Host, " ", q.ContentLength, " ", string(b)))
			requests <- seen
			w.Header().Set("X-Answer", "yes")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, "hello")
		}), proto)
		q := get("c")
		q.Headers = []http.Header{{Name: "x-mine", Value: "1"}, {ID: http.UserAgent, Value: "me"}}
		q.Timeout = 3 * time.Second
		o := r.call(q)
		if o.err != nil || o.answer.Status != 201 || string(o.answer.Body) != "hello" {
			t.Fatalf("%+v, %v", o.answer, o.err)
		}
		if !slices.ContainsFunc(o.answer.Headers, func(h http.Header) bool { return h.Name == "x-answer" && h.Value == "yes" }) {
			t.Errorf("headers: %v", o.answer.Headers)
		}
		seen := <-requests
		for name, want := range map[string]string{"X-Mine": "1", "User-Agent": "me", "X-Envoy-Internal": "true", "X-Forwarded-For": "",
			"X-Envoy-Expected-Rq-Timeout-Ms": "3000", "Line": "GET / test 0 "} {
			if got := seen.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		q.Method, q.Body, q.ForwardedFor, q.Timeout = "POST", []byte("question"), true, 0
		if o = r.call(q); o.err != nil {
			t.Fatal(o.err)
		}
		seen = <-requests
		if seen.Get("Line") != "POST / test 8 question" || seen.Get("X-Forwarded-For") != "10.1.2.3" ||
			seen.Get("X-Envoy-Expected-Rq-Timeout-Ms") != "" {
			t.Error(seen)
		}
		v := r.values()
		got := map[string]string{}
		for _, name := range []string{"http.async-client.rq_total", "cluster.c.upstream_rq_total", "cluster.c.upstream_rq_201", "cluster.c.upstream_rq_2xx",
			"cluster.c.internal.upstream_rq_201", "cluster.c.upstream_rq_completed", "cluster.c.upstream_cx_total"} {
			got[name] = v[name]
		}
		want := map[string]string{"http.async-client.rq_total": "2", "cluster.c.upstream_rq_total": "2", "cluster.c.upstream_rq_201": "2",
			"cluster.c.upstream_rq_2xx": "2", "cluster.c.internal.upstream_rq_201": "2", "cluster.c.upstream_rq_completed": "2", "cluster.c.upstream_cx_total": "1"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

// TestAnswerIsOwned: what a call returned is not touched by what comes later (the test's arenas are poisoned).
func TestAnswerIsOwned(t *testing.T) {
	r := newRig(t)
	r.cluster("c", r.serve(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("X-Long", strings.Repeat("y", 5000))
		_, _ = io.WriteString(w, strings.Repeat("x", 40000))
	}), "")
	first := r.call(get("c"))
	for range 3 {
		r.call(get("c"))
	}
	ok := slices.ContainsFunc(first.answer.Headers, func(h http.Header) bool { return h.Name == "x-long" && h.Value == strings.Repeat("y", 5000) })
	if !ok || string(first.answer.Body) != strings.Repeat("x", 40000) {
		t.Error("the answer has changed")
	}
}

// TestFailures: each way in which there is no answer, told once and later.
func TestFailures(t *testing.T) {
	r := newRig(t)
	r.cluster("empty", "", "")
	dead := r.serve(nil)
	r.cluster("closed", "127.0.0.1:1", "")
	r.cluster("broken", r.serve(func(nethttp.ResponseWriter, *nethttp.Request) { panic(nethttp.ErrAbortHandler) }), "")
	r.cluster("half", r.serve(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "12345")
		_ = nethttp.NewResponseController(w).Flush()
		panic(nethttp.ErrAbortHandler)
	}), "")
	r.cluster("full", dead, "circuit_breakers: {thresholds: [{max_pending_requests: 0}]}")
	for cluster, want := range map[string]error{"none": filter.ErrNoCluster, "empty": filter.ErrReset, "closed": filter.ErrReset,
		"broken": filter.ErrReset, "half": filter.ErrReset, "full": filter.ErrReset} {
		o := r.call(get(cluster))
		r.step()
		if !errors.Is(o.err, want) || o.answer != nil || o.n != 1 {
			t.Errorf("%s: %v, %v, called %d times", cluster, o.answer, o.err, o.n)
		}
	}
	v := r.values()
	for name, want := range map[string]string{"http.async-client.no_cluster": "1", "cluster.full.upstream_rq_pending_overflow": "1",
		"cluster.empty.upstream_cx_none_healthy": "1", "cluster.closed.upstream_cx_connect_fail": "1", "cluster.empty.internal.upstream_rq_503": "1"} {
		if v[name] != want {
			t.Errorf("%s: %q", name, v[name])
		}
	}
}

// TestTimeout covers the whole exchange: before the head, and within the body.
func TestTimeout(t *testing.T) {
	for _, part := range []bool{false, true} {
		r := newRig(t)
		stop := make(chan struct{})
		r.cluster("c", r.serve(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			if part {
				_, _ = io.WriteString(w, "part")
				_ = nethttp.NewResponseController(w).Flush()
			}
			<-stop
		}), "")
		t.Cleanup(func() { close(stop) })
		q := get("c")
		q.Timeout = 10 * time.Second
		o, _ := r.send(r.w, q)
		r.run("the request", func() bool { return r.values()["cluster.c.upstream_rq_active"] == "1" })
		if part {
			r.run("a part", func() bool { return r.values()["cluster.c.upstream_rq_200"] == "1" })
		}
		r.jump(9 * time.Second)
		if o.n != 0 {
			t.Fatal("too early")
		}
		r.jump(2 * time.Second)
		if !errors.Is(o.err, filter.ErrTimeout) || o.n != 1 {
			t.Errorf("%v, called %d times", o.err, o.n)
		}
	}
}

// TestAnswerLimit: an answer of exactly the limit is one; one byte more is none.
func TestAnswerLimit(t *testing.T) {
	r := newRig(t)
	r.cluster("c", r.serve(func(w nethttp.ResponseWriter, q *nethttp.Request) {
		n, _ := strconv.Atoi(q.URL.Path[1:])
		_, _ = io.WriteString(w, strings.Repeat("x", n))
	}), "")
	for _, limit := range []int{0, 1000, 100000} {
		q := get("c")
		q.LimitBytes = limit
		n := limit
		if limit == 0 {
			n = async.DefaultLimitBytes
		}
		q.Path = fmt.Sprint("/", n)
		if o := r.call(q); o.err != nil || len(o.answer.Body) != n {
			t.Errorf("%d bytes: %v", n, o.err)
		}
		n++
		q.Path = fmt.Sprint("/", n)
		if o := r.call(q); !errors.Is(o.err, filter.ErrTooLarge) || o.answer != nil {
			t.Errorf("%d bytes: %v", n, o.err)
		}
	}
}

func TestCancel(t *testing.T) {
	r := newRig(t)
	got := make(chan struct{}, 10)
	r.cluster("c", r.serve(func(w nethttp.ResponseWriter, q *nethttp.Request) {
		got <- struct{}{}
		if q.URL.Path == "/wait" {
			<-q.Context().Done()
		}
	}), "")
	q := get("c")
	q.Path = "/wait"
	// At once, before there is a connection; twice.
	o, c := r.send(r.w, q)
	c.Cancel()
	c.Cancel()
	// Under way.
	o2, c2 := r.send(r.w, q)
	r.run("the request", func() bool { return len(got) > 0 })
	c2.Cancel()
	// A failure that has not been told yet.
	o3, c3 := r.send(r.w, get("none"))
	c3.Cancel()
	r.step()
	if o.n+o2.n+o3.n != 0 {
		t.Errorf("called back after Cancel: %d %d %d", o.n, o2.n, o3.n)
	}
	// After the end it is without effect on whoever has the stream then.
	o4, c4 := r.send(r.w, get("c"))
	r.run("the answer", func() bool { return o4.n == 1 })
	o5, _ := r.send(r.w, get("c"))
	c4.Cancel()
	r.run("the next answer", func() bool { return o5.n == 1 })
	if o5.err != nil {
		t.Error(o5.err)
	}
}

// TestMainLoop: the main loop sends requests too.
func TestMainLoop(t *testing.T) {
	r := newRig(t)
	r.cluster("c", r.serve(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "main") }), "")
	o, _ := r.send(r.main, get("c"))
	r.run("the answer", func() bool { return o.n > 0 })
	if o.err != nil || string(o.answer.Body) != "main" {
		t.Error(o.err)
	}
}

// TestStream is a conversation: both sides send while they receive, and end with trailers.
func TestStream(t *testing.T) {
	r := newRig(t)
	r.cluster("c", r.serve(func(w nethttp.ResponseWriter, q *nethttp.Request) {
		w.Header().Set("Trailer", "X-T")
		flush := nethttp.NewResponseController(w)
		_ = flush.Flush()
		b := make([]byte, 100)
		for {
			n, err := q.Body.Read(b)
			_, _ = w.Write(b[:n])
			_ = flush.Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("X-T", q.Trailer.Get("X-T"))
	}), http2)
	e := r.start(&async.Options{Cluster: "c"}, "POST", false, "trailer", "x-t")
	for _, part := range []string{"one", "two"} {
		want := e.body.String() + part
		e.do(func(s *async.Stream) { s.SendData(r.data(part), false) })
		r.run(part, func() bool { return e.body.String() == want })
	}
	var tr http.HeaderMap
	tr.Init(e.s.Headers().Arena())
	tr.AddName("x-t", "bye")
	e.do(func(s *async.Stream) { s.SendTrailers(&tr) })
	e.do(func(s *async.Stream) { s.SendData(r.data("late"), true) }) // of no use
	r.run("the end", func() bool { return e.ended })
	if d := cmp.Diff([]string{"headers 200 false", "trailers bye"}, e.list); d != "" {
		t.Error(d)
	}
	e.s.SendData(r.data("later"), true)
	e.s.Cancel()
}

// TestStreamFailures: local replies and resets come as events, never from within a call.
func TestStreamFailures(t *testing.T) {
	r := newRig(t)
	r.cluster("empty", "", "")
	r.cluster("half", r.serve(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Length", "10")
		_ = nethttp.NewResponseController(w).Flush()
		panic(nethttp.ErrAbortHandler)
	}), "")
	e := r.start(&async.Options{Cluster: "empty"}, "POST", false)
	e.do(func(s *async.Stream) { s.SendData(r.data("lost"), true) })
	var reply *filter.LocalReply
	e.on = func(string) { reply = e.s.Reply() }
	r.step()
	if d := cmp.Diff([]string{"headers 503 false", "end"}, e.list); d != "" || e.body.String() != "no healthy upstream" || reply == nil {
		t.Errorf("%s %q %v", d, e.body.String(), reply)
	}
	e = r.start(&async.Options{Cluster: "half"}, "GET", true)
	r.run("the reset", func() bool { return e.ended })
	if n := len(e.list); n != 2 || !strings.HasPrefix(e.list[1], "reset ") || !strings.Contains(e.list[1], "upstream_reset_after_response_started") {
		t.Errorf("%q", e.list)
	}
	// Given up by its handler, in its first event.
	e = r.start(&async.Options{Cluster: "empty"}, "GET", true)
	e.on = func(string) { e.s.Cancel() }
	r.step()
	if len(e.list) != 1 {
		t.Errorf("%q", e.list)
	}
	// Given up before what waits was told.
	e = r.start(&async.Options{Cluster: "empty"}, "GET", true)
	e.s.Cancel()
	r.step()
	if len(e.list) != 0 {
		t.Errorf("%q", e.list)
	}
}

// TestRetry: streams may be tried again as the router does it.
func TestRetry(t *testing.T) {
	r := newRig(t)
	var n atomic.Int32
	r.cluster("c", r.serve(func(w nethttp.ResponseWriter, q *nethttp.Request) {
		b, _ := io.ReadAll(q.Body)
		if n.Add(1) < 3 {
			w.WriteHeader(503)
			return
		}
		_, _ = w.Write(b)
	}), "")
	e := r.start(&async.Options{Cluster: "c", Retry: &route.RetryPolicy{On: route.Retry5xx, Retries: 2}}, "POST", false)
	e.do(func(s *async.Stream) { s.SendData(r.data("body"), true) })
	r.run("the answer", func() bool { r.clock.ahead += time.Millisecond; return e.ended })
	if e.list[0] != "headers 200 false" || e.body.String() != "body" || n.Load() != 3 {
		t.Errorf("%q %q, %d requests", e.list, e.body.String(), n.Load())
	}
}

// TestFlowControl: a handler that is slow holds the upstream back, and a slow upstream whoever sends.
func TestFlowControl(t *testing.T) {
	r := newRig(t)
	const size = 8 << 20
	goOn := make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	r.cluster("c", r.serve(func(w nethttp.ResponseWriter, q *nethttp.Request) {
		if q.Method == "GET" {
			_, _ = io.WriteString(w, strings.Repeat("x", size))
			return
		}
		<-goOn
		n, _ := io.Copy(io.Discard, q.Body)
		_, _ = fmt.Fprint(w, n)
	}), strings.ReplaceAll(http2, "{}", "{initial_stream_window_size: 65536}")+"per_connection_buffer_limit_bytes: 32768\n")
	e := r.start(&async.Options{Cluster: "c"}, "GET", true)
	r.run("a part", func() bool { return e.body.Len() > 0 })
	e.do(func(s *async.Stream) { s.HoldAnswer(true); s.HoldAnswer(true); s.HoldAnswer(false) })
	held := e.body.Len()
	for range 50 {
		r.step()
	}
	if n := e.body.Len() - held; n > size/2 {
		t.Errorf("%d bytes came although they were held", n)
	}
	e.do(func(s *async.Stream) { s.HoldAnswer(false) })
	r.run("all", func() bool { return e.ended })
	if e.body.Len() != size {
		t.Errorf("%d bytes", e.body.Len())
	}

	e = r.start(&async.Options{Cluster: "c"}, "POST", false)
	sent := 0
	for !slices.Contains(e.list, "above") {
		if sent > size {
			t.Fatal("nobody holds the sender back")
		}
		e.do(func(s *async.Stream) { s.SendData(r.data(strings.Repeat("x", 10000)), false) })
		sent += 10000
		r.step()
	}
	release()
	r.run("the upstream", func() bool { return slices.Contains(e.list, "below") })
	e.do(func(s *async.Stream) { s.SendData(r.data(""), true) })
	r.run("the end", func() bool { return e.ended })
	if e.body.String() != fmt.Sprint(sent) {
		t.Errorf("%d sent, %s arrived", sent, e.body.String())
	}
}
