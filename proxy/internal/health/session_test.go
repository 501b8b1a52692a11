package health_test

import (
	nethttp "net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// How results change a host's flags, and what is told of them.
func TestThresholds(t *testing.T) {
	type step struct {
		answer string // code, or what is done instead
		flags  string
		told   string // First, Changed, Failed
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"the first result counts alone", []step{{"200", "healthy", "FC"}, {"200", "healthy", ""}}},
		{"later ones do not", []step{
			{"500", "/failed_active_hc", "F"}, {"200", "/failed_active_hc", ""}, {"200", "/failed_active_hc", ""},
			{"500", "/failed_active_hc", ""}, {"200", "/failed_active_hc", ""}, {"200", "/failed_active_hc", ""}, {"200", "healthy", "C"},
		}},
		{"a bad answer counts at once", []step{{"200", "healthy", "FC"}, {"500", "/failed_active_hc", "CX"}, {"500", "/failed_active_hc", ""}}},
		{"a retriable one does not", []step{
			{"200", "healthy", "FC"}, {"429", "healthy", ""}, {"200", "healthy", ""}, {"429", "healthy", ""}, {"429", "/failed_active_hc", "CX"},
		}},
		{"degraded", []step{
			{"degraded", "/degraded_active_hc", "FC"}, {"degraded", "/degraded_active_hc", ""}, {"200", "healthy", "C"}, {"degraded", "/degraded_active_hc", "C"},
			{"500", "/failed_active_hc/degraded_active_hc", "CX"}, {"200", "/failed_active_hc", ""},
		}},
		{"excluded until healthy", []step{
			{"200", "healthy", "FC"}, {"fail", "/failed_active_hc/excluded_via_immediate_hc_fail", "CX"},
			{"500", "/failed_active_hc/excluded_via_immediate_hc_fail", ""}, {"200", "/failed_active_hc/excluded_via_immediate_hc_fail", ""},
			{"200", "/failed_active_hc/excluded_via_immediate_hc_fail", ""}, {"200", "healthy", "C"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := make(chan string, 1)
			h := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
				switch <-answers {
				case "500":
					w.WriteHeader(500)
				case "429":
					w.WriteHeader(429)
				case "degraded":
					w.Header().Set("x-envoy-degraded", "true")
				}
			})
			r := newRig(t, func(o *health.Options) {
				o.HTTP = &health.HTTP{Path: "/", Method: "GET", Retriable: []health.Range{{429, 430}}}
				o.Healthy, o.Unhealthy = 3, 2
			})
			for i, s := range c.steps {
				n := len(r.results)
				if s.answer == "fail" {
					r.c.FailNow(h)
				} else {
					answers <- s.answer
					if i == 0 {
						r.add(h)
					} else {
						r.next()
					}
					r.run("a result", func() bool { return len(r.results) > n })
				}
				got := step{s.answer, flags(h), text(r.results[n])}
				if d := cmp.Diff(s, got, cmp.AllowUnexported(step{})); d != "" {
					t.Errorf("step %d: %s", i, d)
				}
				number := map[bool]string{false: "0", true: "1"}
				r.want(map[string]string{"degraded": number[h.Has(host.DegradedActiveHC)], "healthy": number[!h.Has(host.FailedActiveHC)]})
			}
		})
	}
}

func text(x health.Result) (s string) {
	for _, f := range []struct {
		set  bool
		name string
	}{{x.First, "F"}, {x.Changed, "C"}, {x.Failed, "X"}} {
		if f.set {
			s += f.name
		}
	}
	return s
}

// A host that is excluded until its first check counts from then on, whatever the result.
func TestPending(t *testing.T) {
	r := newRig(t, func(o *health.Options) { o.TCP, o.Unhealthy = &health.TCP{}, 3 })
	h := refused()
	h.SetFlag(host.PendingActiveHC, true)
	if f := r.check(h); f != "/failed_active_hc" || !r.results[0].Changed {
		t.Errorf("flags %s, %+v", f, r.results[0])
	}
}

// Failures of the network have to come several times.
func TestUnhealthyThreshold(t *testing.T) {
	r := newRig(t, func(o *health.Options) { o.TCP, o.Unhealthy = &health.TCP{}, 2 })
	h := refused()
	r.c.Add(h) // healthy so far
	r.result()
	if f := flags(h); f != "healthy" {
		t.Errorf("flags %s", f)
	}
	r.next()
	if x := r.result(); flags(h) != "/failed_active_hc" || !x.Failed {
		t.Errorf("flags %s", flags(h))
	}
	r.want(map[string]string{"failure": "2", "network_failure": "2", "healthy": "0"})
}

// The time to the next check.
func TestIntervals(t *testing.T) {
	r := newRig(t, func(o *health.Options) {
		o.TCP = &health.TCP{}
		o.Interval, o.UnhealthyInterval, o.HealthyEdge, o.UnhealthyEdge = 1e9, 2e9, 3e9, 4e9
		o.NoTrafficInterval, o.NoTrafficHealthily = 5e9, 6e9
	})
	for _, c := range []struct {
		used, healthy, pending bool
		want                   time.Duration
	}{
		{true, true, false, 1e9}, {true, false, false, 2e9}, {true, true, true, 3e9}, {true, false, true, 4e9},
		{false, false, false, 5e9}, {false, false, true, 5e9}, {false, true, true, 5e9}, {false, true, false, 6e9},
	} {
		r.used = c.used
		if got := r.c.After(c.healthy, c.pending); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	r.used = true
	r.rt = keys{"health_check.min_interval": 1500}
	if got := r.c.After(true, false); got != 1500*time.Millisecond {
		t.Errorf("with a least interval: %v", got)
	}
	r.rt = keys{"health_check.max_interval": 0}
	if got := r.c.After(true, false); got != time.Millisecond {
		t.Errorf("with a longest interval: %v", got)
	}
	r.rt = nil
	r.o.Jitter, r.o.JitterPercent = 100e6, 10
	most := time.Duration(0)
	for range 1000 {
		got := r.c.After(true, false)
		if most = max(most, got); got < 1e9 || got >= 1200e6 {
			t.Errorf("with jitter: %v", got)
		}
	}
	if most < 1150e6 {
		t.Errorf("jitter of %v at most", most-1e9)
	}
}

// The first check waits for initial_jitter.
func TestInitialJitter(t *testing.T) {
	r := newRig(t, func(o *health.Options) { o.TCP, o.InitialJitter = &health.TCP{}, time.Hour })
	r.add(refused())
	r.want(map[string]string{"attempt": "0"})
	r.jump(time.Hour)
	r.result()
	r.want(map[string]string{"attempt": "1"})
}

// Hosts come and go.
func TestAddRemove(t *testing.T) {
	r := newRig(t, func(o *health.Options) { o.TCP = &health.TCP{} })
	h := raw(t, sink)
	r.add(h)
	r.c.Add(h) // again, which changes nothing
	off := refused()
	off.Extra = &host.Extra{NoHealthCheck: true}
	r.c.Add(off)
	if n, fresh := r.c.Len(), r.c.Fresh(); n != 1 || fresh != 1 || !h.Has(host.Checked) || off.Has(host.Checked) {
		t.Errorf("%d hosts, %d fresh", n, fresh)
	}
	r.result()
	r.want(map[string]string{"healthy": "1"})
	if r.c.Fresh() != 0 {
		t.Error("fresh after a result")
	}
	r.c.Remove(h)
	r.c.Remove(h)
	r.c.FailNow(h)
	if r.c.Len() != 0 || h.Has(host.Checked) || flags(h) != "healthy" {
		t.Error("not removed")
	}
	n := len(r.results)
	r.next()
	r.want(map[string]string{"healthy": "0", "attempt": "1"})
	if len(r.results) != n {
		t.Error("told of a host that is gone")
	}
	other := refused()
	r.add(other)
	r.c.Remove(other) // while it is being checked
	if r.c.Fresh() != 0 {
		t.Error("fresh hosts are left")
	}
}

// Checks that are due at once begin over several passes; a host that goes meanwhile is not checked.
func TestMaxStarts(t *testing.T) {
	r := newRig(t, func(o *health.Options) { o.TCP = &health.TCP{} })
	attempts := func(n int) { t.Helper(); r.want(map[string]string{"attempt": strconv.Itoa(n)}) }
	var hosts []*host.Host
	for range 2*health.MaxStarts + 2 {
		hosts = append(hosts, refused())
		r.add(hosts[len(hosts)-1])
	}
	attempts(0)
	r.c.Remove(hosts[health.MaxStarts])
	for _, n := range []int{health.MaxStarts, 2 * health.MaxStarts, 2*health.MaxStarts + 1, 2*health.MaxStarts + 1} {
		r.w.Step(false)
		attempts(n)
	}
	r.run("the results", func() bool { return len(r.results) == 2*health.MaxStarts+1 })
	r.next()
	attempts(3*health.MaxStarts + 1)
	r.run("the second round", func() bool { return len(r.results) == 2*(2*health.MaxStarts+1) })
	attempts(2 * (2*health.MaxStarts + 1))
}
