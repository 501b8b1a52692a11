package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// proxyCommand runs a proxy with Envoy's arguments.
func proxyCommand(args []string) int {
	f := flag.NewFlagSet("proxy", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	path := f.String("c", "", "")
	conc := f.Int("concurrency", runtime.NumCPU(), "")
	f.String("l", "info", "")
	f.Bool("disable-hot-restart", false, "")
	if err := f.Parse(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	runtime.GOMAXPROCS(*conc + 1)
	debug.SetGCPercent(200)
	b, err := proxy.Load(*path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p, err := proxy.New(b, proxy.WithConcurrency(*conc), proxy.WithExtensions(standard.All()...), proxy.WithIO(os.Getenv("DRAGOMAN_IO")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	debug.FreeOSMemory()
	if err := p.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Next: proxy/proxy.go
