package bench_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
)

// soakTime names the variable with the duration of TestSoak.
const soakTime = "DRAGOMAN_SOAK"

// Bars of a soak. A process's memory is never still: what is judged is the line through the samples, after the first quarter.
const (
	// soakGrowth is how much the line may rise over what was measured, in bytes, where it is steep beyond doubt (soakSigma).
	soakGrowth = 2 << 20
	soakSigma  = 3
	// soakBlocks is into how many means the samples are gathered: one that follows another closely tells little new.
	soakBlocks = 12
	// soakShort is from when on the slope is judged: before, caches and pools are still filling.
	soakShort = time.Minute
	// soakFDs is how many more open files there may be afterwards.
	soakFDs = 4
)

// TestSoak lets requests come at half of what the proxy can take, with all that goes wrong: clients and upstreams that break, stall
// and go, upstreams that restart, timeouts, retries, and configuration that changes. Memory must not grow, and afterwards nothing may
// be left. It takes some seconds, or what DRAGOMAN_SOAK says:
//
//	DRAGOMAN_SOAK=30m go test -count=1 -timeout=40m -v -run='^TestSoak$' ./test/bench
func TestSoak(t *testing.T) {
	duration := 4 * time.Second
	if s := os.Getenv(soakTime); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	farm := startFarm(t, 3)
	w := newWorld(t, 40, farm.upstreams())
	w.routesOf = soakRoutes
	w.writeRDS()
	p := startProxy(t, w.path("boot.json"))
	plain, secure := p.Addrs["plain"], p.Addrs["tls"]
	c := http1Client(plain)
	awaitVersion(t, c, w)
	rate := capacity(t, c) / 2
	c.CloseIdleConnections()
	begin := settle(p)

	s := startSoak(p, w, farm, plain, secure, rate)
	samples := s.watch(duration)
	told := s.end()
	farm.close()
	left := ungone(t, p)
	end := settle(p)
	p.profile("heap", "soak.pprof")

	t.Logf("%v at %.0f requests a second: %s", duration, rate, told)
	rss, live := slopeOf(samples, func(s sample) float64 { return s.rss }), slopeOf(samples, func(s sample) float64 { return s.live })
	t.Logf("RSS %s", rss)
	t.Logf("live heap without buffers %s", live)
	t.Logf("before: RSS %.1f MiB, heap %.2f MiB, %d goroutines, %d files; after: %.1f, %.2f (%.2f of it buffers that are kept), %d, %d", mib(begin.RSS), mib(begin.Live),
		begin.Goroutines, begin.FDs, mib(end.RSS), mib(end.Live), mib(uint64(end.SlabsKept*buffer.SlabSize)), end.Goroutines, end.FDs)
	if end.SlabsInUse != 0 {
		t.Errorf("%d buffers are still in use", end.SlabsInUse)
	}
	if len(left) > 0 {
		t.Errorf("not zero afterwards: %s", strings.Join(left, ", "))
	}
	if end.Goroutines > begin.Goroutines || end.FDs > begin.FDs+soakFDs {
		t.Errorf("%d goroutines and %d files became %d and %d", begin.Goroutines, begin.FDs, end.Goroutines, end.FDs)
	}
	if told.ok < told.sent/10 {
		t.Error("too few requests were answered for this to tell anything")
	}
	if duration >= soakShort {
		for name, l := range map[string]line{"RSS": rss, "the live heap": live} {
			if l.rise > soakGrowth && l.perSecond > soakSigma*l.sigma {
				t.Errorf("%s grows: %s", name, l)
			}
		}
	}
}

// soakRoutes are the routes of a cluster's virtual host: they time out, try again, or wait.
func soakRoutes(c cluster) list {
	to := func(prefix string, more obj) obj {
		action := obj{"cluster": c.name, "timeout": "0.5s"}
		for k, v := range more {
			action[k] = v
		}
		return obj{"match": obj{"prefix": prefix}, "route": action}
	}
	return list{
		to("/hang", obj{"timeout": "0.3s"}),
		to("/retry", obj{"retry_policy": obj{"retry_on": "5xx,reset,connect-failure", "num_retries": 2, "per_try_timeout": "0.2s",
			"retry_back_off": obj{"base_interval": "0.005s"}}}),
		to("/forever", obj{"timeout": "0s", "idle_timeout": "1s"}),
		obj{"match": obj{"prefix": "/direct"}, "direct_response": obj{"status": 503, "body": obj{"inline_string": "no"}}},
		to("/", nil),
	}
}

// ungone waits until all that is in use is given back, and returns what is not.
func ungone(t *testing.T, p *proxyProcess) (left []string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		left = nil
		for l := range strings.Lines(p.ask("stats").Text) {
			name, v, _ := strings.Cut(strings.TrimSpace(l), ": ")
			if n, err := strconv.ParseUint(v, 10, 64); err == nil && n > 0 && used(name) {
				left = append(left, fmt.Sprint(name, "=", n))
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		pause(200 * time.Millisecond) // between two looks
	}
}

// used tells whether a gauge counts what is in use.
func used(name string) bool {
	if strings.HasPrefix(name, "listener_manager.") || strings.HasPrefix(name, "cluster_manager.") || strings.HasPrefix(name, "server.") {
		return false // what is configured
	}
	for _, end := range []string{"_active", "_buffered", "cx_open", "cx_pool_open", "rq_open", "rq_pending_open", "rq_retry_open"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
