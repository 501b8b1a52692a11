package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// flags are Envoy's command line. Names, short forms and defaults are Envoy 1.40's.
type flags struct {
	configPath, configYAML                          string
	allowUnknown, allowUnknownStatic                bool
	rejectUnknownDynamic, ignoreUnknownDynamic      bool
	skipDeprecated                                  bool
	adminPath                                       string
	concurrency                                     int
	logLevel, componentLogLevel, logFormat, logPath string
	logEscaped                                      bool
	serviceCluster, serviceNode, serviceZone        string
	drainTime, parentShutdown                       int
	drainStrategy, mode                             string
	fileFlushMsec, fileFlushKB                      int
	restartEpoch                                    int
	disableHotRestart                               bool
	version, hotRestartVersion                      bool
	set                                             *pflag.FlagSet
}

// parse reads arguments. An error is what Envoy prints, more or less.
func parse(args []string) (*flags, error) {
	f := &flags{}
	s := pflag.NewFlagSet("envoy", pflag.ContinueOnError)
	s.SortFlags = false
	s.Usage = func() {}
	f.set = s
	s.StringVarP(&f.configPath, "config-path", "c", "", "Path to configuration file")
	s.StringVar(&f.configYAML, "config-yaml", "", "Inline YAML configuration, merges with the contents of --config-path")
	s.BoolVar(&f.allowUnknown, "allow-unknown-fields", false, "allow unknown fields in static configuration (DEPRECATED)")
	s.BoolVar(&f.allowUnknownStatic, "allow-unknown-static-fields", false, "allow unknown fields in static configuration")
	s.BoolVar(&f.rejectUnknownDynamic, "reject-unknown-dynamic-fields", false, "reject unknown fields in dynamic configuration")
	s.BoolVar(&f.ignoreUnknownDynamic, "ignore-unknown-dynamic-fields", false, "ignore unknown fields in dynamic configuration")
	s.BoolVar(&f.skipDeprecated, "skip-deprecated-logs", false, "Skips the logging of deprecated field warnings")
	s.StringVar(&f.adminPath, "admin-address-path", "", "Admin address path")
	s.IntVar(&f.concurrency, "concurrency", runtime.NumCPU(), "# of worker threads to run")
	s.StringVarP(&f.logLevel, "log-level", "l", "info", "Log levels: [trace][debug][info][warning|warn][error][critical][off]")
	s.StringVar(&f.componentLogLevel, "component-log-level", "", "Comma-separated list of component log levels")
	s.StringVar(&f.logFormat, "log-format", "[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v", "Log message format")
	s.StringVar(&f.logPath, "log-path", "", "Path to logfile")
	s.BoolVar(&f.logEscaped, "log-format-escaped", false, "Escape c-style escape sequences in the application logs")
	s.StringVar(&f.serviceCluster, "service-cluster", "", "Cluster name")
	s.StringVar(&f.serviceNode, "service-node", "", "Node name")
	s.StringVar(&f.serviceZone, "service-zone", "", "Zone name")
	s.IntVar(&f.drainTime, "drain-time-s", 600, "Hot restart and LDS removal drain time in seconds")
	s.StringVar(&f.drainStrategy, "drain-strategy", "gradual", "Hot restart drain sequence behaviour")
	s.IntVar(&f.parentShutdown, "parent-shutdown-time-s", 900, "Hot restart parent shutdown time in seconds")
	s.StringVar(&f.mode, "mode", "serve", "One of 'serve' (default), 'validate' or 'init_only'")
	s.IntVar(&f.fileFlushMsec, "file-flush-interval-msec", 10000, "Interval for log flushing in msec")
	s.IntVar(&f.fileFlushKB, "file-flush-min-size-kb", 64, "Minimum size in KB for log flushing")
	s.IntVar(&f.restartEpoch, "restart-epoch", 0, "Hot restart epoch #")
	s.BoolVar(&f.disableHotRestart, "disable-hot-restart", false, "Disable hot restart functionality")
	s.BoolVar(&f.version, "version", false, "Displays version information and exits")
	s.BoolVar(&f.hotRestartVersion, "hot-restart-version", false, "Hot restart compatibility version")
	unused(s)
	if err := s.Parse(args); err != nil {
		return nil, envoyError(err)
	}
	if s.NArg() > 0 {
		return nil, fmt.Errorf("PARSE ERROR: Argument: %s\n             Couldn't find match for argument", s.Arg(0))
	}
	return f, f.check()
}

// unused declares flags that are accepted and have no effect (docs/differs.md says why).
func unused(s *pflag.FlagSet) {
	for _, n := range []string{"enable-fine-grain-logging", "log-stacktrace-single-entry", "enable-mutex-tracing", "cpuset-threads", "enable-core-dump",
		"use-dynamic-base-id", "skip-hot-restart-on-no-parent", "skip-hot-restart-parent-stats"} {
		s.Bool(n, false, "accepted, without effect")
	}
	for _, n := range []string{"disable-extensions", "local-address-ip-version", "base-id-path", "socket-path", "socket-mode", "base-id"} {
		s.String(n, "", "accepted, without effect")
	}
	s.StringArray("stats-tag", nil, "adds a tag to all stats")
}

func (f *flags) check() error {
	levels := " trace debug info warning warn error critical off "
	if !strings.Contains(levels, " "+f.logLevel+" ") {
		return fmt.Errorf("error: invalid log level specified '%s'", f.logLevel)
	}
	switch f.mode {
	case "serve", "validate", "init_only":
	default:
		return fmt.Errorf("error: unknown mode '%s'", f.mode)
	}
	switch f.drainStrategy {
	case "gradual", "immediate":
	default:
		return fmt.Errorf("error: unknown drain-strategy '%s'", f.drainStrategy)
	}
	for _, t := range f.set.Lookup("stats-tag").Value.(pflag.SliceValue).GetSlice() {
		if !strings.Contains(t, ":") {
			return fmt.Errorf("error: misformatted stats-tag '%s'", t)
		}
	}
	return nil
}

// envoyError gives parse errors Envoy's words.
func envoyError(err error) error {
	text := err.Error()
	if n, ok := strings.CutPrefix(text, "unknown flag: "); ok {
		return fmt.Errorf("PARSE ERROR: Argument: %s\n             Couldn't find match for argument", n)
	}
	return fmt.Errorf("PARSE ERROR: %s", text)
}

func (f *flags) drain() time.Duration { return time.Duration(f.drainTime) * time.Second }
