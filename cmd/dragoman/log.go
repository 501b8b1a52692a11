package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// appLog is the application log of the process.
type appLog struct {
	set  *log.Set
	file *log.File // nil: standard error
}

// openLog makes the log that the flags describe. Beside an error it returns one that writes to standard error.
func openLog(f *flags) (*appLog, error) {
	l := &appLog{}
	var out io.Writer = os.Stderr
	var failed error
	if f.logPath != "" && f.mode != "validate" { // which writes to standard error
		var err error
		if l.file, err = log.OpenFile(f.logPath); err != nil {
			failed = fmt.Errorf("Failed to open log-file '%s'. e.what(): unable to open file '%s': %w", f.logPath, f.logPath, err) //nolint:staticcheck // Envoy's text
		} else {
			out = l.file
		}
	}
	level, err := log.ParseLevel(f.logLevel)
	if err != nil {
		return l, err
	}
	l.set = log.New(log.Config{Output: out, Format: f.logFormat, Level: level, Escape: f.logEscaped})
	if f.componentLogLevel != "" {
		if err := l.set.SetLevels(f.componentLogLevel); err != nil {
			return l, err
		}
	}
	return l, failed
}

// tellAddresses says where the listeners are.
func (l *appLog) tellAddresses(p *proxy.Proxy) {
	addrs := p.Addrs()
	for _, name := range slices.Sorted(maps.Keys(addrs)) {
		for _, a := range addrs[name] {
			if name != "" {
				l.set.Logger("main").Info("listener " + name + " serves on " + a.String())
			} else {
				l.set.Logger("main").Info("a listener serves on " + a.String())
			}
		}
	}
}

// warnOfFlags says what Envoy says of flags that are out of use.
func (l *appLog) warnOfFlags(f *flags) {
	config := l.set.Logger("config")
	if f.cpuset {
		if f.given("concurrency") {
			config.Warn("Both --concurrency and --cpuset-threads options are set; not applying --cpuset-threads.")
		} else {
			config.Warn("--cpuset-threads is now the default behavior and no longer required.")
		}
	}
	if f.restartEpoch > 0 && !f.disableHotRestart {
		l.set.Logger("main").Warn(fmt.Sprintf("hot restart is not supported: --restart-epoch %d takes nothing over, and a parent goes on serving until it is told to end",
			f.restartEpoch))
	}
	if f.allowUnknown {
		config.Warn("--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.")
	}
}

// reopen opens the file anew, after it was moved away.
func (l *appLog) reopen() {
	if l.file == nil {
		return
	}
	if err := l.file.Reopen(); err != nil {
		l.set.Logger("main").Error("cannot reopen the log file", "error", err)
	}
}

// refuse says why the proxy does not start, in the log and, where it would not be seen there, on standard error; it returns the exit
// code.
func (l *appLog) refuse(f *flags, err error) int {
	main := l.set.Logger("main")
	if f.mode == "validate" {
		main.Log(context.Background(), log.Critical, fmt.Sprintf("error initializing configuration '%s': %v", f.configPath, err))
		if l.file != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return 1
	}
	main.Log(context.Background(), log.Critical, fmt.Sprintf("error `%v` initializing config '%s'", err, f.configPath))
	main.Info("exiting")
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// levelName is a level as /server_info shows it.
func levelName(text string) string {
	l, err := log.ParseLevel(text)
	if err != nil {
		return text
	}
	return log.LevelName(l)
}

// list splits a comma-separated list; "" is an empty one.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// engineExtensions are those that can be disabled though no set has them: the engine is told.
var engineExtensions = []string{
	"envoy.filters.http/envoy.filters.http.router",
	"envoy.filters.network/envoy.filters.network.http_connection_manager",
	"envoy.filters.network/envoy.filters.network.tcp_proxy",
}

// withoutExtensions takes extensions out of sets. They are named category/name, as in envoy.filters.http/envoy.filters.http.fault. The
// warnings are Envoy's, of names that cannot be disabled.
func withoutExtensions(sets []ext.Set, disabled string) (left []ext.Set, warnings []string) {
	names := map[string]bool{}
	for _, n := range list(disabled) {
		names[n] = slices.Contains(engineExtensions, n)
	}
	if len(names) == 0 {
		return sets, nil
	}
	off := func(category, name string) bool {
		n := category + "/" + name
		_, gone := names[n]
		if gone {
			names[n] = true
		}
		return gone
	}
	for _, s := range sets {
		x := s
		x.HTTPFilters = slices.DeleteFunc(slices.Clone(s.HTTPFilters), func(f ext.HTTPFilter) bool { return off("envoy.filters.http", f.Name) })
		x.NetworkFilters = slices.DeleteFunc(slices.Clone(s.NetworkFilters), func(f ext.NetworkFilter) bool { return off("envoy.filters.network", f.Name) })
		x.ListenerFilters = slices.DeleteFunc(slices.Clone(s.ListenerFilters), func(f ext.ListenerFilter) bool { return off("envoy.filters.listener", f.Name) })
		left = append(left, x)
	}
	for _, n := range list(disabled) {
		switch {
		case names[n]:
		case strings.Count(n, "/") != 1:
			warnings = append(warnings, "failed to disable invalid extension name '"+n+"'")
		default:
			warnings = append(warnings, "failed to disable unknown extension '"+n+"'")
		}
	}
	return left, warnings
}
