package server

import (
	"bytes"
	"fmt"
	"os"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// maxProfileSeconds bounds how long a profile that is asked for may run.
const maxProfileSeconds = 600

// defaultProfilePath is admin.profile_path where it is not set.
const defaultProfilePath = "/var/log/envoy/envoy.prof"

// aside makes an answer on a goroutine of its own: a profile takes the runtime longer than the main loop may wait.
func (s *Server) aside(done func(*admin.Response), f func() *admin.Response) {
	go func() { //ban:allow nakedgo it ends by itself, within maxProfileSeconds, and comes back by Post
		r := f()
		s.main.Post(func() { done(r) })
	}()
}

// serveProfile answers with one of the runtime's profiles, in pprof's form.
func (s *Server) serveProfile(name string) func(*admin.Request, func(*admin.Response)) {
	return func(r *admin.Request, done func(*admin.Response)) {
		debug, _ := strconv.Atoi(r.Query.Get("debug"))
		s.aside(done, func() *admin.Response {
			var b bytes.Buffer
			if err := pprof.Lookup(name).WriteTo(&b, debug); err != nil {
				return admin.Fail(501, err.Error()+"\n")
			}
			return &admin.Response{Code: 200, ContentType: admin.PlainText, Body: admin.Text(b.String())}
		})
	}
}

// profileHandlers are those that `go tool pprof` knows.
func (s *Server) profileHandlers() []*admin.Handler {
	var list []*admin.Handler
	for _, name := range []string{"allocs", "block", "goroutine", "heap", "mutex", "threadcreate"} {
		list = append(list, &admin.Handler{Path: "/debug/pprof/" + name, Help: "a profile of the Go runtime for `go tool pprof`: " + name, Serve: s.serveProfile(name)})
	}
	return append(list, &admin.Handler{Path: "/debug/pprof/profile", Help: "a profile of the CPU for `go tool pprof`", Serve: s.serveCPUSeconds,
		Params: []admin.Param{{Name: "seconds", Help: "How long; 30 by default"}}})
}

// serveCPUSeconds profiles the CPU for ?seconds (30).
func (s *Server) serveCPUSeconds(r *admin.Request, done func(*admin.Response)) {
	n, err := strconv.Atoi(r.Query.Get("seconds"))
	if err != nil || n <= 0 {
		n = 30
	}
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil {
		done(admin.Fail(500, err.Error()+"\n"))
		return
	}
	t := &event.Timer{Fn: func() {
		s.aside(done, func() *admin.Response {
			pprof.StopCPUProfile()
			return &admin.Response{Code: 200, ContentType: "application/octet-stream", Body: admin.Text(b.String())}
		})
	}}
	s.main.Arm(t, time.Duration(min(n, maxProfileSeconds))*time.Second)
}

// enable reads ?enable=y|n.
func enable(r *admin.Request, done func(*admin.Response)) (on, ok bool) {
	switch r.Query.Get("enable") {
	case "y":
		return true, true
	case "n":
		return false, true
	}
	done(admin.Fail(400, "?enable=<y|n>\n"))
	return false, false
}

// serveCPUProfiler writes a CPU profile to admin.profile_path, between enable=y and enable=n.
func (s *Server) serveCPUProfiler(r *admin.Request, done func(*admin.Response)) {
	on, ok := enable(r, done)
	if !ok {
		return
	}
	s.aside(done, func() *admin.Response {
		if !on {
			pprof.StopCPUProfile()
			return admin.OK("OK\n")
		}
		f, err := os.Create(s.profilePath())
		if err == nil {
			err = pprof.StartCPUProfile(f) // keeps f until it is stopped
		}
		if err != nil {
			return admin.Fail(500, "failure to start the profiler")
		}
		return admin.OK("OK\n")
	})
}

func (s *Server) profilePath() string {
	if p := s.boot.GetAdmin().GetProfilePath(); p != "" { //nolint:staticcheck // deprecated, and valid
		return p
	}
	return defaultProfilePath
}

// serveHeapProfiler writes the heap profile to admin.profile_path when it is switched off. The runtime samples all the time.
func (s *Server) serveHeapProfiler(r *admin.Request, done func(*admin.Response)) {
	on, ok := enable(r, done)
	if !ok {
		return
	}
	if on {
		done(admin.OK("Starting heap profiler\n"))
		return
	}
	s.aside(done, func() *admin.Response {
		var b bytes.Buffer
		if err := pprof.Lookup("heap").WriteTo(&b, 0); err != nil {
			return admin.Fail(500, "Fail to stop heap profiler\n")
		}
		if err := os.WriteFile(s.profilePath(), b.Bytes(), 0o644); err != nil { //nolint:gosec // as Envoy does
			return admin.Fail(500, "Fail to stop heap profiler\n")
		}
		return admin.OK("Heap profiler stopped and data written to " + s.profilePath() + ". See https://pkg.go.dev/runtime/pprof\n")
	})
}

// serveAllocProfiler: allocations are sampled all the time, and /peak_heap_dump shows them.
func (s *Server) serveAllocProfiler(r *admin.Request, done func(*admin.Response)) {
	if _, ok := enable(r, done); ok {
		done(admin.OK("OK\n"))
	}
}

// serveContention shows how long the process has waited for mutexes.
func (s *Server) serveContention(_ *admin.Request, done func(*admin.Response)) {
	if !s.cfg.Options.CommandLine.EnableMutexTracing {
		done(admin.OK("Mutex contention tracing is not enabled. To enable, run Envoy with flag --enable-mutex-tracing."))
		return
	}
	m := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(m)
	answerJSON(done, &adminv3.MutexStats{NumContentions: uint64(pprof.Lookup("mutex").Count()), LifetimeWaitCycles: uint64(m[0].Value.Float64() * 1e9)}, true)
}

// serveMemoryClasses lists what the Go runtime knows of its memory.
func (s *Server) serveMemoryClasses(_ *admin.Request, done func(*admin.Response)) {
	var list []metrics.Sample
	for _, d := range metrics.All() {
		if strings.HasPrefix(d.Name, "/memory/") || strings.HasPrefix(d.Name, "/gc/heap/") {
			list = append(list, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(list)
	var b strings.Builder
	for _, m := range list {
		if m.Value.Kind() == metrics.KindUint64 {
			fmt.Fprintf(&b, "%16d  %s\n", m.Value.Uint64(), m.Name)
		}
	}
	done(&admin.Response{Code: 200, ContentType: "text/plain", Body: admin.Text(b.String())})
}

// passes is what /dragoman/passes shows of one event loop: how long it did not look at its sockets, pass by pass.
type passes struct {
	name string
	event.PassTimes
}

// servePasses answers /dragoman/passes with the distribution of pass times of every loop that answers within collectDeadline.
func (s *Server) servePasses(_ *admin.Request, done func(*admin.Response)) {
	all := make([]*passes, len(s.workers)+1)
	all[0] = &passes{"main_thread", s.main.Passes}
	left := len(s.workers)
	answered := false
	finish := func() {
		if answered {
			return
		}
		answered = true
		done(&admin.Response{Code: 200, ContentType: admin.JSON, Body: admin.Text(passesJSON(all))})
	}
	t := &event.Timer{Fn: finish}
	s.main.Arm(t, collectDeadline)
	for i, w := range s.workers {
		w.Post(func() {
			p := &passes{w.Name, w.Passes}
			s.main.Post(func() {
				all[i+1] = p
				if left--; left == 0 {
					s.main.Disarm(t)
					finish()
				}
			})
		})
	}
}

func passesJSON(all []*passes) string {
	var b strings.Builder
	b.WriteString("{\"threads\":[")
	first := true
	for _, p := range all {
		if p == nil {
			continue
		}
		if !first {
			b.WriteString(",")
		}
		first = false
		fmt.Fprintf(&b, "\n {\"name\":%q,\"longest_us\":%d,\"miss\":%d,\"mega_miss\":%d,\"passes_below_us\":{", p.name, p.Longest/1000, p.Slow[0], p.Slow[1])
		comma := ""
		for i, n := range p.Buckets {
			if n > 0 {
				fmt.Fprintf(&b, "%s\"%d\":%d", comma, 1<<i, n)
				comma = ","
			}
		}
		b.WriteString("}}")
	}
	b.WriteString("\n]}\n")
	return b.String()
}
