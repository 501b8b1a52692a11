package bench_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/bench"
)

// Bars of a storm of updates. A pass is bounded by its CPU: what the clock shows beyond that is a busy machine's, and is compared
// with the same load without changes.
const (
	maxPass       = 2048 * time.Microsecond // of a worker
	maxAssist     = 0.01                    // share of the process's CPU that allocating threads spend on collecting
	heapSpread    = 0.05                    // how much more may be live afterwards
	perConnection = 2 << 10                 // bytes of heap that an open connection and its place in a pool hold
	slack         = 5                       // passes that may be long for other reasons
)

// TestChurn changes clusters, endpoints, routes and certificates ten times a second while requests run.
func TestChurn(t *testing.T) {
	n, seconds, perSecond := scaled(300, 4521), time.Duration(scaled(2, 30))*time.Second, 10
	up := startUpstreams(t, 2, answers)
	w := newWorld(t, n, up)
	p := startProxy(t, w.path("boot.json"))
	plain, secure := p.Addrs["plain"], p.Addrs["tls"]
	var users []user
	for k := range 16 {
		host := func(i int) string { return fmt.Sprint("h", (i*7+k*31)%64) } // those that are changed most
		users = append(users, user{http1Client(plain), "http", 80, host}, user{http2Client(plain), "http", 50, host})
	}
	users = append(users, user{tlsClient(secure), "https", 10, func(int) string { return "h1" }})
	awaitVersion(t, http1Client(plain), w)

	measure(p, users, seconds/2, nil) // connections are made, pools filled
	settle(p)
	quiet := measure(p, users, seconds, nil)
	before := p.ask("collect")
	step := 0
	churned := measure(p, users, seconds, func() {
		profiled := make(chan struct{})
		go func() { p.profile("cpu", "churn-cpu.pprof"); close(profiled) }()
		defer func() { <-profiled }()
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for range int(seconds.Seconds()) * perSecond {
			<-tick.C
			w.change(step, up)
			step++
		}
	})
	w.restore(n, up)
	awaitVersion(t, http1Client(plain), w)
	after := settle(p)
	p.profile("heap", "churn.pprof")

	quiet.log(t, "without changes")
	churned.log(t, fmt.Sprintf("%d changes of %d clusters", step, n))
	t.Logf("heap %.2f MiB before, %.2f after; RSS %.1f and %.1f MiB; clusters %d and %d; %d groups of stats still to be released; %d and %d open files",
		mib(before.Live), mib(after.Live), mib(before.RSS), mib(after.RSS), before.Clusters, after.Clusters, after.Released, before.FDs, after.FDs)

	if quiet.failed+churned.failed > 0 {
		t.Errorf("%d + %d requests failed, the first: %s%s", quiet.failed, churned.failed, quiet.first, churned.first)
	}
	if rate := float64(churned.sent) / churned.wall.Seconds(); *full && rate < 2000 {
		t.Errorf("%.0f requests a second: too few to tell", rate)
	}
	// A machine that does other things too makes passes long in both phases: requests pile up while the worker waits for a core.
	if slow, usual := bench.Over(churned.loops["worker_0"].CPU, maxPass), bench.Over(quiet.loops["worker_0"].CPU, maxPass); slow > 2*usual+slack {
		t.Errorf("%d passes of the worker took %v of CPU or more, %d without changes", slow, maxPass, usual)
	}
	if churned.assist() > maxAssist {
		t.Errorf("allocating threads spent %.2f%% of the CPU on collecting", 100*churned.assist())
	}
	// A slow machine fills pools later: what each connection more is and holds is not what the changes left.
	more := float64(max(after.FDs-before.FDs, 0)) * perConnection
	if float64(after.Live) > float64(before.Live)*(1+heapSpread)+more+1<<20 {
		t.Errorf("the heap grew from %.2f to %.2f MiB", mib(before.Live), mib(after.Live))
	}
	if after.Clusters != n || after.Released != 0 {
		t.Errorf("%d clusters, want %d; %d groups of stats were not released", after.Clusters, n, after.Released)
	}
}

// change makes the next of the changes: some clusters change, some come and some go; endpoints move; routes swap places; the
// certificate is another.
func (w *world) change(step int, up upstreams) {
	n := len(w.order)
	switch step % 5 {
	case 0, 2:
		w.clusters = w.clusters[:n] // what came with the last change goes
		for k := range 20 {
			c := &w.clusters[(step*20+k)%n]
			c.timeout = 5 + step%7
			if !c.eds {
				c.upstream = up.list[(step+k)%len(up.list)]
			}
		}
		for k := range 5 {
			w.clusters = append(w.clusters, newCluster(n+step*5+k, up))
		}
		w.writeCDS()
	case 1:
		for k := range 40 {
			if c := &w.clusters[(step*20+k)%n]; c.eds {
				c.upstream = up.list[(step+k)%len(up.list)]
			}
		}
		w.writeEDS()
	case 3:
		w.swapRoutes(step)
	case 4:
		w.writeSDS()
	}
}

// restore writes the configuration as it was at first.
func (w *world) restore(n int, up upstreams) {
	w.clusters, w.order = nil, nil
	for i := range n {
		w.clusters, w.order = append(w.clusters, newCluster(i, up)), append(w.order, i)
	}
	w.writeCDS()
	w.writeEDS()
	w.writeRDS()
}

// phase is what was measured in a time.
type phase struct {
	sent, failed int64
	first        string
	wall         time.Duration
	cost         Cost
	loops        map[string]bench.Loop
}

// measure runs the load for a time, and during beside it.
func measure(p *proxyProcess, users []user, d time.Duration, during func()) phase {
	p.tb.Helper()
	before := p.ask("reset")
	start := time.Now()
	l := startLoad(users)
	if during == nil {
		pause(d) // the time of a measurement
	} else {
		during()
	}
	var x phase
	x.sent, x.failed, x.first = l.end()
	x.wall = time.Since(start)
	after := p.ask("figures")
	x.loops = after.Loops
	x.cost = Cost{CPU: after.CPU - before.CPU, Assist: after.Assist - before.Assist, GC: after.GC - before.GC}
	return x
}

func (x *phase) assist() float64 { return x.cost.Assist / x.cost.CPU }

func (x *phase) log(t *testing.T, name string) {
	t.Helper()
	t.Logf("%s: %d requests (%.0f/s), %d failed; CPU %.2f s, collector %.2f%%, assists %.3f%%", name, x.sent,
		float64(x.sent)/x.wall.Seconds(), x.failed, x.cost.CPU, 100*x.cost.GC/x.cost.CPU, 100*x.assist())
	for _, n := range []string{"worker_0", "main_thread"} {
		l := x.loops[n]
		over := func(h [24]uint64) (s string) {
			for us := 512; us <= 8192; us *= 2 {
				s += fmt.Sprintf(" %d", bench.Over(h, time.Duration(us)*time.Microsecond))
			}
			return s[1:]
		}
		t.Logf("  %-11s passes of 0.5/1/2/4/8 ms and more: CPU %s, longest %v; clock %s, longest %v", n, over(l.CPU),
			l.LongestCPU.Round(time.Microsecond), over(l.Wall), l.LongestWall.Round(time.Microsecond))
	}
}

// settle waits until what was released has been given back everywhere, and what is kept for the next change is gone, and collects.
func settle(p *proxyProcess) report {
	for end := time.Now().Add(10 * time.Second); ; {
		pause(3 * time.Second) // stats are gathered once a second, readers of files rest for two
		if r := p.ask("collect"); r.Released == 0 || time.Now().After(end) {
			return r
		}
	}
}

// awaitVersion waits until the routes that were written last are in force, and those before them too.
func awaitVersion(t *testing.T, c *http.Client, w *world) {
	t.Helper()
	want := fmt.Sprint(w.routes)
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if err = get(c, "http://version/", want); err == nil {
			return
		}
		pause(time.Millisecond) // between two looks
	}
	t.Fatalf("version %s did not come: %v", want, err)
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }
