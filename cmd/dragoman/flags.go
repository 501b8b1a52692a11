package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/log"
)

// flags are Envoy's command line. Names, short forms and defaults are Envoy 1.40's.
type flags struct {
	configPath, configYAML                                 string
	allowUnknown, allowUnknownStatic                       bool
	rejectUnknownDynamic, ignoreUnknownDynamic             bool
	skipDeprecated, singleEntryTraces                      bool
	adminPath, ipVersion                                   string
	logLevel, componentLogLevel, logFormat, logPath        string
	logEscaped, fineGrain                                  bool
	serviceCluster, serviceNode, serviceZone               string
	drainStrategy, mode                                    string
	disableHotRestart, mutexTracing, coreDump, cpuset      bool
	dynamicBaseID, skipParentStats, skipNoParent           bool
	baseIDPath, socketPath, socketMode, disabledExtensions string
	statsTags                                              []string
	version, hotRestartVersion, help                       bool
	concurrency, drainTime, parentShutdown, restartEpoch   uint32
	fileFlushMsec, fileFlushKB, baseID                     uint32

	// What Envoy does not have: only "dragoman proxy" knows these.
	watch, configEnv bool
	text             []byte // what the file held at the start, with watch

	program string // the command as usage shows it
	own     bool   // it is the command's own name, not envoy
	options []*option
}

// option is one flag: what it is called, where its value goes, and what the help says.
type option struct {
	name, short string
	value       any // *bool, *string, *uint32 or *[]string
	help        string
	set         bool
}

// newFlags returns the flags with their defaults, in the order in which Envoy's usage lists them. own adds those that Envoy does not
// have: a binary that is called envoy refuses them as Envoy does.
func newFlags(program string, own bool) *flags {
	f := &flags{
		program: program, own: own,
		ipVersion: "v4", logLevel: "info", logFormat: log.DefaultFormat, drainStrategy: "gradual", mode: "serve", socketMode: "600",
		socketPath: "@envoy_domain_socket", concurrency: uint32(defaultConcurrency()), drainTime: 600, parentShutdown: 900,
		fileFlushMsec: 10000, fileFlushKB: 64,
	}
	f.options = []*option{
		{name: "stats-tag", value: &f.statsTags, help: "A tag for all stats, as tag:value. The name must be alphanumeric, the value without dots. May be given more than once."},
		{name: "enable-core-dump", value: &f.coreDump, help: "Enable core dumps (accepted, without effect: set GOTRACEBACK=crash)"},
		{name: "socket-mode", value: &f.socketMode, help: "Permissions of the hot restart socket file"},
		{name: "socket-path", value: &f.socketPath, help: "Path to the hot restart socket file"},
		{name: "disable-extensions", value: &f.disabledExtensions, help: "Comma-separated list of extensions that configurations may not use"},
		{name: "cpuset-threads", value: &f.cpuset, help: "Take the default number of workers from the CPU set (always so)"},
		{name: "enable-mutex-tracing", value: &f.mutexTracing, help: "Collect what /contention shows"},
		{name: "disable-hot-restart", value: &f.disableHotRestart, help: "Disable hot restart"},
		{name: "mode", value: &f.mode, help: "'serve' (default): check the configuration and serve traffic; 'validate': check it and exit; 'init_only': start, and exit once everything is initialized."},
		{name: "parent-shutdown-time-s", value: &f.parentShutdown, help: "Seconds after which a hot restart ends the parent"},
		{name: "drain-strategy", value: &f.drainStrategy, help: "How connections end while draining: 'gradual' (default) over the drain time, or 'immediate'."},
		{name: "drain-time-s", value: &f.drainTime, help: "Seconds that draining takes, in a hot restart and when a listener goes"},
		{name: "file-flush-min-size-kb", value: &f.fileFlushKB, help: "KiB of access log that are written at once"},
		{name: "file-flush-interval-msec", value: &f.fileFlushMsec, help: "Milliseconds after which less than that is written"},
		{name: "service-zone", value: &f.serviceZone, help: "Zone of the node"},
		{name: "service-node", value: &f.serviceNode, help: "Id of the node"},
		{name: "service-cluster", value: &f.serviceCluster, help: "Cluster of the node"},
		{name: "hot-restart-version", value: &f.hotRestartVersion, help: "Print the version of the hot restart protocol and exit"},
		{name: "restart-epoch", value: &f.restartEpoch, help: "Hot restart epoch"},
		{name: "log-path", value: &f.logPath, help: "File that the application log is written to"},
		{name: "enable-fine-grain-logging", value: &f.fineGrain, help: "Levels by source file (accepted, without effect)"},
		{name: "log-format-escaped", value: &f.logEscaped, help: "Write control characters in the application log as C escapes"},
		{name: "log-format", value: &f.logFormat, help: "Line format of the application log, in spdlog's syntax. The default is \"" + log.DefaultFormat + "\"."},
		{name: "component-log-level", value: &f.componentLogLevel, help: "Comma-separated list of component levels: upstream:debug,config:trace"},
		{name: "log-level", short: "l", value: &f.logLevel, help: "Log levels: [trace][debug][info][warning|warn][error][critical][off]. The default is [info]."},
		{name: "local-address-ip-version", value: &f.ipVersion, help: "The family of the node's own address: v4 or v6"},
		{name: "admin-address-path", value: &f.adminPath, help: "File that the address of the admin interface is written to"},
		{name: "log-stacktrace-single-entry", value: &f.singleEntryTraces, help: "Log a stack trace as one entry (always so)"},
		{name: "skip-deprecated-logs", value: &f.skipDeprecated, help: "Do not log uses of deprecated fields"},
		{name: "ignore-unknown-dynamic-fields", value: &f.ignoreUnknownDynamic, help: "Do not count unknown fields in dynamic configuration"},
		{name: "reject-unknown-dynamic-fields", value: &f.rejectUnknownDynamic, help: "Refuse dynamic configuration with unknown fields"},
		{name: "allow-unknown-static-fields", value: &f.allowUnknownStatic, help: "Accept unknown fields in static configuration"},
		{name: "allow-unknown-fields", value: &f.allowUnknown, help: "The same (deprecated)"},
		{name: "config-yaml", value: &f.configYAML, help: "YAML that is merged over the file of --config-path, or stands alone"},
		{name: "config-path", short: "c", value: &f.configPath, help: "Path to the configuration file: .yaml, .json, .pb or .pb_text"},
		{name: "concurrency", value: &f.concurrency, help: "Number of workers. The default is what the CPU set and the cgroup allow."},
		{name: "base-id-path", value: &f.baseIDPath, help: "File that the base id is written to"},
		{name: "skip-hot-restart-parent-stats", value: &f.skipParentStats, help: "Do not take over the parent's stats in a hot restart"},
		{name: "skip-hot-restart-on-no-parent", value: &f.skipNoParent, help: "Start as usual if a hot restart finds no parent"},
		{name: "use-dynamic-base-id", value: &f.dynamicBaseID, help: "Choose a free base id; not together with a restart epoch"},
		{name: "base-id", value: &f.baseID, help: "Base id, by which several proxies on one machine are told apart"},
		{name: "version", value: &f.version, help: "Displays version information and exits."},
		{name: "help", short: "h", value: &f.help, help: "Displays usage information and exits."},
	}
	if own {
		f.options = append([]*option{
			{name: "watch", value: &f.watch, help: "Dragoman only: look at the configuration file while serving, and apply what changes: clusters, listeners, routes, secrets. A file that is refused changes nothing. SIGHUP looks at once."},
			{name: "config-env", value: &f.configEnv, help: "Dragoman only: replace ${NAME} and ${NAME:-default} in values of a configuration in YAML or JSON by environment variables. $${ stands for ${."},
		}, f.options...)
	}
	return f
}

// defaultConcurrency is the number of workers without --concurrency: what the machine, the affinity and the cgroup leave, as the Go
// runtime has found it at the start. ENVOY_CGROUP_CPU_DETECTION=false leaves the cgroup out.
func defaultConcurrency() int {
	if os.Getenv("ENVOY_CGROUP_CPU_DETECTION") == "false" {
		return runtime.NumCPU()
	}
	return max(runtime.GOMAXPROCS(0), 1)
}

// argumentError is what is wrong with one argument: Envoy prints it with the usage.
type argumentError struct{ argument, problem string }

func (e *argumentError) Error() string { return e.argument + " -- " + e.problem }

// parse reads arguments as Envoy does: a value is the next argument, a flag may be given once, and --version and --help hold as soon as
// they are read, whatever comes after them.
func (f *flags) parse(args []string) error {
	for i := 0; i < len(args) && !f.help && !f.version; i++ {
		a := args[i]
		if a == "--" || a == "--ignore_rest" {
			break
		}
		if a == "" || a == "-" {
			continue
		}
		o := f.find(a)
		if o == nil {
			return &argumentError{a, "Couldn't find match for argument"}
		}
		if _, many := o.value.(*[]string); o.set && !many {
			return &argumentError{o.title(), "Argument already set!"}
		}
		o.set = true
		if b, ok := o.value.(*bool); ok {
			*b = true
			continue
		}
		if i++; i == len(args) {
			return &argumentError{o.title(), "Missing a value for this argument!"}
		}
		if !o.assign(args[i]) {
			return &argumentError{o.title(), "Couldn't read argument value from string '" + args[i] + "'"}
		}
	}
	if f.help || f.version {
		return nil
	}
	return f.check()
}

func (f *flags) find(arg string) *option {
	for _, o := range f.options {
		if arg == "--"+o.name || o.short != "" && arg == "-"+o.short {
			return o
		}
	}
	return nil
}

// given tells whether a flag was on the command line.
func (f *flags) given(name string) bool {
	o := f.find("--" + name)
	return o != nil && o.set
}

// title is how errors name the flag.
func (o *option) title() string {
	if o.short != "" {
		return "-" + o.short + " (--" + o.name + ")"
	}
	return "(--" + o.name + ")"
}

func (o *option) assign(text string) bool {
	switch v := o.value.(type) {
	case *string:
		*v = text
	case *[]string:
		*v = append(*v, text)
	case *uint32:
		n, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, 32)
		if err != nil {
			return false
		}
		*v = uint32(n)
	}
	return true
}

// check looks at values beyond their form. The errors are Envoy's.
func (f *flags) check() error {
	if _, err := log.ParseLevel(f.logLevel); err != nil {
		return err
	}
	if f.componentLogLevel != "" {
		if f.fineGrain {
			return errors.New("error: --component-log-level will not work with --enable-fine-grain-logging")
		}
		if err := log.Discard().SetLevels(f.componentLogLevel); err != nil {
			return err
		}
	}
	switch f.ipVersion {
	case "v4", "v6":
	default:
		return fmt.Errorf("error: unknown IP address version '%s'", f.ipVersion)
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
	if f.watch && f.mode != "serve" {
		return fmt.Errorf("error: --watch is for --mode serve, not for --mode %s", f.mode)
	}
	if f.watch && f.configPath == "" {
		return errors.New("error: --watch needs a file to look at: --config-path")
	}
	if f.dynamicBaseID && f.restartEpoch > 0 {
		return fmt.Errorf("error: cannot use --restart-epoch=%d with --use-dynamic-base-id", f.restartEpoch)
	}
	return f.checkTags()
}

func (f *flags) checkTags() error {
	for _, t := range f.statsTags {
		name, value, ok := strings.Cut(t, ":")
		if !ok {
			return fmt.Errorf("error: misformatted stats-tag '%s'", t)
		}
		bad := strings.ContainsFunc(name, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if bad {
			return fmt.Errorf("error: misformatted stats-tag '%s' contains invalid char in '%s'", t, name)
		}
		if value == "" || strings.Contains(value, ".") {
			return fmt.Errorf("error: misformatted stats-tag '%s' contains invalid char in '%s'", t, value)
		}
	}
	return nil
}

// drain is the option, in which 0 stands for the default.
func (f *flags) drain() time.Duration {
	if f.drainTime == 0 {
		return -1
	}
	return time.Duration(f.drainTime) * time.Second
}
