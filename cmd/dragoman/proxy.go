package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/internal/version"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// proxyCommand runs a proxy with Envoy's arguments, and returns the exit code.
func proxyCommand(args []string) int {
	f, err := parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\n\nBrief USAGE: \n   %s -c FILE [options], --help for all of them\n", err, os.Args[0])
		return 1
	}
	switch {
	case f.version:
		fmt.Printf("\n%s  version: %s\n\n", os.Args[0], version.String())
		return 0
	case f.hotRestartVersion:
		fmt.Println("11.104")
		return 0
	}
	setProcess(f.concurrency)
	b, err := proxy.LoadWith(f.configPath, proxy.LoadOptions{ConfigYAML: f.configYAML, AllowUnknownFields: f.allowUnknown || f.allowUnknownStatic})
	if err != nil {
		return refuse(f, err)
	}
	p, err := proxy.New(b, proxy.WithConcurrency(f.concurrency), proxy.WithExtensions(standard.All()...), proxy.WithIO(os.Getenv("DRAGOMAN_IO")),
		proxy.WithOptions(options(f)))
	if err != nil {
		return refuse(f, err)
	}
	if f.mode == "validate" {
		fmt.Printf("configuration '%s' OK\n", f.configPath)
		return 0
	}
	return serve(p)
}

// refuse says what is wrong with a configuration.
func refuse(f *flags, err error) int {
	fmt.Fprintf(os.Stderr, "error initializing configuration '%s': %v\n", f.configPath, err)
	return 1
}

// setProcess sets what concerns the whole process. One more P than workers: a worker that waits in the kernel then keeps its own
// (docs/design/0001-event-engine.md).
func setProcess(workers int) {
	runtime.GOMAXPROCS(workers + 1)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent(0))
		go keepMemory()
	}
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) == nil && lim.Cur < lim.Max {
		lim.Cur = lim.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim)
	}
}

// serve runs p until a signal ends it, as Envoy's signals do.
func serve(p *proxy.Proxy) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1)
	go func() {
		for s := range ch {
			switch s {
			case syscall.SIGHUP:
				fmt.Fprintln(os.Stderr, "caught and eating SIGHUP. See documentation for how to hot restart.")
			case syscall.SIGUSR1:
				p.ReopenLogs()
			default:
				fmt.Fprintf(os.Stderr, "caught %s\n", map[os.Signal]string{syscall.SIGTERM: "ENVOY_SIGTERM", syscall.SIGINT: "SIGINT"}[s])
				cancel()
			}
		}
	}()
	go func() { // what loading needed goes back to the system
		<-p.Ready()
		debug.FreeOSMemory()
	}()
	if err := p.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func options(f *flags) proxy.Options {
	host, _ := os.Hostname()
	return proxy.Options{
		DrainTime: f.drain(), DrainImmediate: f.drainStrategy == "immediate",
		FileFlushInterval: time.Duration(f.fileFlushMsec) * time.Millisecond, FileFlushSize: f.fileFlushKB << 10,
		ServiceCluster: f.serviceCluster, ServiceNode: f.serviceNode, ServiceZone: f.serviceZone,
		LocalAddress: localAddress(), Hostname: host, Env: os.LookupEnv, RestartEpoch: f.restartEpoch,
	}
}

// localAddress is the address of the first interface that is not the loopback: what x-forwarded-for shows of a loopback client.
func localAddress() netip.Addr {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP.To4()); ok && !ip.IsLoopback() {
				return ip
			}
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Next: proxy/proxy.go
