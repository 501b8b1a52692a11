// Package bench_test measures what a proxy holds and what changes of its configuration cost while it serves: memory per cluster,
// connection and stream; failed requests, long passes and collector work during a storm of updates; what is left afterwards.
//
// The proxy runs in a process of its own, which is this test's binary once more: its memory and CPU are its own, and its inside
// answers through package proxy/proxytest/bench. Short versions run with all tests; -full runs those that the bars are about.
package bench_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/bench"
)

var (
	full        = flag.Bool("full", false, "run the full versions: minutes, and both cores")
	profiles    = flag.String("profiles", "", "write heap and CPU profiles of the proxies into this folder")
	childConfig = "DRAGOMAN_BENCH_CHILD"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childConfig); path != "" {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

// report is what the child answers to each command.
type report struct {
	bench.Figures
	Addrs map[string]string
	Memory
	Cost
	Goroutines, FDs int
	Text            string
	Classes         []class
	Error           string
}

// Memory is what a process holds, in bytes.
type Memory struct {
	RSS, Live, Held, Stacks uint64
}

// Cost is what a process has used so far, in seconds of CPU.
type Cost struct {
	CPU, Assist, GC float64
}

// proxyProcess is a proxy in a process of its own.
type proxyProcess struct {
	tb  testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	// started is how long it took until it served.
	started time.Duration
	report
}

// startProxy runs a proxy with a bootstrap file and one worker.
func startProxy(tb testing.TB, bootstrap string) *proxyProcess {
	tb.Helper()
	p := &proxyProcess{tb: tb, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childConfig+"="+bootstrap)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 64<<20)
	start := time.Now()
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			tb.Errorf("the proxy's process: %v", err)
		}
	})
	p.read()
	p.started = time.Since(start)
	return p
}

// ask sends a command and returns the answer.
func (p *proxyProcess) ask(command string) report {
	p.tb.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.tb.Fatal(err)
	}
	return p.read()
}

func (p *proxyProcess) read() report {
	p.tb.Helper()
	if !p.out.Scan() {
		p.tb.Fatal("the proxy's process has ended")
	}
	p.report = report{}
	if err := json.Unmarshal(p.out.Bytes(), &p.report); err != nil {
		p.tb.Fatalf("%v in %q", err, p.out.Text())
	}
	if p.Error != "" {
		p.tb.Fatal(p.Error)
	}
	return p.report
}

// profile writes a profile of the child, if -profiles asks for them.
func (p *proxyProcess) profile(kind, name string) {
	p.tb.Helper()
	if *profiles != "" {
		p.ask(kind + " " + *profiles + "/" + name)
	}
}
