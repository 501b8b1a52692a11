package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/internal/heap"
	"github.com/dragoman-proxy/dragoman/internal/version"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// proxyCommand runs a proxy with Envoy's arguments, and returns the exit code.
func proxyCommand(program string, own bool, args []string) int {
	f := newFlags(program, own)
	err := f.parse(args)
	var arg *argumentError
	switch {
	case errors.As(err, &arg):
		fmt.Fprint(os.Stderr, f.problem(arg))
		return 1
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case f.help:
		fmt.Print(f.helpText())
		return 0
	case f.version:
		fmt.Printf("\n%s  version: %s\n\n", program, version.String())
		return 0
	case f.hotRestartVersion:
		v := "11.104"
		if f.disableHotRestart {
			v = "disabled"
		}
		fmt.Fprintln(os.Stderr, v)
		return 0
	}
	setProcess(f)
	l, err := openLog(f)
	if err != nil {
		return l.refuse(f, err)
	}
	l.warnOfFlags(f)
	p, err := build(f, l)
	if err != nil {
		return l.refuse(f, err)
	}
	warnAtStart(f, l)
	if f.mode == "validate" {
		fmt.Printf("configuration '%s' OK\n", f.configPath)
		return 0
	}
	return serve(p, f, l)
}

// chooseBaseID returns the base id: that of the flag, or one by chance for --use-dynamic-base-id. /server_info shows the flag's.
func (f *flags) chooseBaseID() uint32 {
	if f.dynamicBaseID {
		return rand.Uint32N(1 << 26)
	}
	return f.baseID
}

// loadOptions say how the configuration is read.
func loadOptions(f *flags, l *appLog) proxy.LoadOptions {
	o := proxy.LoadOptions{ConfigYAML: f.configYAML, AllowUnknownFields: f.allowUnknown || f.allowUnknownStatic}
	if f.configEnv {
		o.Env = os.LookupEnv
	}
	o.OnUnknownField = func(text string) { l.set.Logger("config").Warn("Unknown field: " + text) }
	if !f.skipDeprecated {
		o.OnDeprecated = func(text string) { l.set.Logger("misc").Warn(text) }
	}
	return o
}

// build reads the configuration and makes the proxy.
func build(f *flags, l *appLog) (*proxy.Proxy, error) {
	o := loadOptions(f, l)
	if f.watch { // a change is one of this
		f.text, _ = os.ReadFile(f.configPath)
		o.Data = f.text
	}
	b, err := proxy.LoadWith(f.configPath, o)
	if err != nil {
		return nil, err
	}
	set, unknown := withoutExtensions(standard.All(), f.disabledExtensions)
	for _, text := range unknown {
		l.set.Logger("misc").Warn(text)
	}
	if f.baseIDPath != "" && f.mode != "validate" && !f.disableHotRestart {
		if err := os.WriteFile(f.baseIDPath, []byte(strconv.FormatUint(uint64(f.chooseBaseID()), 10)), 0o644); err != nil { //nolint:gosec // others are to read it
			l.set.Logger("main").Log(context.Background(), log.Critical, "cannot open base id output file "+f.baseIDPath+" for writing.")
		}
	}
	opts, err := activated()
	if err != nil {
		return nil, err
	}
	return proxy.New(b, append(opts, append(checkOptions(f, set), proxy.WithLog(l.set))...)...)
}

// checkOptions are the options of a proxy that is looked at and does not run.
func checkOptions(f *flags, set []ext.Set) []proxy.Option {
	return []proxy.Option{proxy.WithConcurrency(int(f.concurrency)), proxy.WithExtensions(set...), proxy.WithIO(os.Getenv("DRAGOMAN_IO")),
		proxy.WithOptions(options(f))}
}

// setProcess sets what concerns the whole process. One more P than workers: a worker that waits in the kernel then keeps its own
// (docs/design/0001-event-engine.md).
func setProcess(f *flags) {
	runtime.GOMAXPROCS(int(max(f.concurrency, 1)) + 1)
	if os.Getenv("GOGC") == "" {
		heap.Prepare()
		go heap.Keep(context.Background())
	}
	if f.mutexTracing {
		runtime.SetMutexProfileFraction(100)
	}
	raiseLimits()
}

// serve runs p until a signal ends it, as Envoy's signals do.
func serve(p *proxy.Proxy, f *flags, l *appLog) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := func() { // told before anything ends: the process may be gone soon
		notify("STOPPING=1")
		cancel()
	}
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, reopenSignal)
	defer signal.Stop(ch)
	main := l.set.Logger("main")
	w := newWatch(f, l, p)
	go w.run(ctx)
	go func() {
		for s := range ch {
			switch s {
			case syscall.SIGHUP:
				if f.watch {
					main.Info("caught SIGHUP. Looking at the configuration file.")
					w.look()
					continue
				}
				main.Warn("caught and eating SIGHUP. See documentation for how to hot restart.")
			case reopenSignal:
				main.Info("caught SIGUSR1. Reopening access logs.")
				l.reopen()
				p.ReopenLogs()
			case syscall.SIGTERM:
				main.Warn("caught ENVOY_SIGTERM")
				stop()
			case syscall.SIGINT:
				main.Warn("caught SIGINT")
				stop()
			}
		}
	}()
	go func() { // what loading needed goes back to the system
		<-p.Ready()
		if f.own { // Envoy does not say it
			l.tellAddresses(p)
		}
		if f.mode == "init_only" {
			cancel()
			return
		}
		notify("READY=1")
		debug.FreeOSMemory()
	}()
	if err := p.Run(ctx); err != nil {
		return l.refuse(f, err)
	}
	notify("STOPPING=1") // if it has ended by itself
	main.Info("exiting")
	return 0
}

func options(f *flags) proxy.Options {
	host, _ := os.Hostname()
	return proxy.Options{
		DrainTime: f.drain(), DrainImmediate: f.drainStrategy == "immediate",
		FileFlushInterval: time.Duration(f.fileFlushMsec) * time.Millisecond, FileFlushSize: int(f.fileFlushKB) << 10,
		ServiceCluster: f.serviceCluster, ServiceNode: f.serviceNode, ServiceZone: f.serviceZone,
		LocalAddress: localAddress(f.ipVersion == "v6"), Hostname: host, Env: os.LookupEnv, RestartEpoch: int(f.restartEpoch),
		StatsTags: f.statsTags, CommandLine: proxy.CommandLine{
			ConfigPath: f.configPath, ConfigYAML: f.configYAML, AllowUnknownStaticFields: f.allowUnknown || f.allowUnknownStatic,
			RejectUnknownDynamicFields: f.rejectUnknownDynamic, IgnoreUnknownDynamicFields: f.ignoreUnknownDynamic,
			SkipDeprecatedLogs: f.skipDeprecated, AdminAddressPath: f.adminPath, LocalAddressIPv6: f.ipVersion == "v6",
			LogLevel: levelName(f.logLevel), ComponentLogLevel: f.componentLogLevel, LogFormat: f.logFormat, LogPath: f.logPath,
			LogFormatEscaped: f.logEscaped, FineGrainLogging: f.fineGrain, SingleEntryTraces: f.singleEntryTraces,
			ParentShutdownTime: time.Duration(f.parentShutdown) * time.Second, Mode: f.mode, DisableHotRestart: f.disableHotRestart,
			EnableMutexTracing: f.mutexTracing, CPUSetThreads: f.cpuset,
			DisabledExtensions: list(f.disabledExtensions), BaseID: f.baseID, BaseIDPath: f.baseIDPath, UseDynamicBaseID: f.dynamicBaseID,
			SkipHotRestartOnNoParent: f.skipNoParent, SkipHotRestartParentStats: f.skipParentStats,
			SocketPath: f.socketPath,
		},
	}
}

// localAddress is the address of the first interface that is not the loopback: what x-forwarded-for shows of a loopback client.
func localAddress(v6 bool) netip.Addr {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); ok && ip.Is6() == v6 && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			return ip
		}
	}
	if v6 {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Next: proxy/proxy.go
