package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/internal/heap"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/bench"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

// child serves with a bootstrap file, as `dragoman proxy` with one worker does, and answers commands from standard input until that
// ends.
func child(path string) int {
	out := json.NewEncoder(os.Stdout)
	raiseLimit()
	runtime.GOMAXPROCS(2)
	heap.Prepare()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go heap.Keep(ctx)
	var set ext.Set
	for _, s := range standard.All() {
		set.Add(s)
	}
	p, err := bench.Start(ctx, bench.Config{Bootstrap: path, Concurrency: 1, Extensions: set})
	if err != nil {
		_ = out.Encode(report{Error: err.Error()})
		return 1
	}
	addrs := map[string]string{}
	for name, list := range p.Addrs() {
		addrs[name] = list[0].String()
	}
	debug.FreeOSMemory()
	_ = out.Encode(report{Addrs: addrs})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		r := obey(p, in.Text())
		_ = out.Encode(r)
	}
	cancel()
	if err := p.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// obey carries out one command.
func obey(p *bench.Proxy, command string) (r report) {
	verb, path, _ := strings.Cut(command, " ")
	var err error
	switch verb {
	case "figures":
	case "reset":
		p.Reset()
	case "collect":
		for range 3 {
			runtime.GC()
			//ban:allow bannedcall cleanups and weak pointers follow, and nothing tells when they have
			time.Sleep(10 * time.Millisecond)
		}
		debug.FreeOSMemory()
	case "classes":
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		for _, c := range m.BySize {
			r.Classes = append(r.Classes, class{uintptr(c.Size), c.Mallocs})
		}
	case "stats":
		r.Text = p.Stats()
	case "heap":
		runtime.GC()
		err = writeTo(path, func(f *os.File) error { return pprof.Lookup("heap").WriteTo(f, 0) })
	case "cpu":
		err = writeTo(path, func(f *os.File) error {
			if err := pprof.StartCPUProfile(f); err != nil {
				return err
			}
			//ban:allow bannedcall the length of the profile
			time.Sleep(5 * time.Second)
			pprof.StopCPUProfile()
			return nil
		})
	default:
		err = fmt.Errorf("unknown command %q", verb)
	}
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Figures, r.Goroutines = p.Figures(), runtime.NumGoroutine()
	r.Memory, r.Cost = memory(), cost()
	if d, err := os.ReadDir("/proc/self/fd"); err == nil {
		r.FDs = len(d)
	}
	return r
}

func writeTo(path string, write func(f *os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	return f.Close()
}

func memory() (m Memory) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	m.Live, m.Held, m.Stacks = s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64()
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, resident uint64
		_, _ = fmt.Sscan(string(b), &size, &resident)
		m.RSS = resident * uint64(os.Getpagesize())
	}
	return m
}

func cost() (c Cost) {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	c.Assist, c.GC = s[0].Value.Float64(), s[1].Value.Float64()
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		c.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	return c
}

func raiseLimit() {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) == nil && lim.Cur < lim.Max {
		lim.Cur = lim.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim)
	}
}
