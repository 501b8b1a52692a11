package server

import (
	"fmt"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dragoman-proxy/dragoman/internal/version"
	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// CommandLine is the part of the command line that the proxy itself does not need, for /server_info.
type CommandLine struct {
	ConfigPath, ConfigYAML                                string
	AllowUnknownStaticFields, RejectUnknownDynamicFields  bool
	IgnoreUnknownDynamicFields, SkipDeprecatedLogs        bool
	AdminAddressPath                                      string
	LocalAddressIPv6                                      bool
	LogLevel, ComponentLogLevel, LogFormat, LogPath       string
	LogFormatEscaped, FineGrainLogging, SingleEntryTraces bool
	ParentShutdownTime                                    time.Duration
	Mode                                                  string // "serve", "validate" or "init_only"
	DisableHotRestart, EnableMutexTracing                 bool
	CPUSetThreads                                         bool
	DisabledExtensions                                    []string
	BaseID                                                uint32
	BaseIDPath                                            string
	UseDynamicBaseID                                      bool
	SkipHotRestartOnNoParent, SkipHotRestartParentStats   bool
	SocketPath                                            string
}

// hotRestartVersion is that of the protocol with which Envoy hands over to its successor.
func (s *Server) hotRestartVersion() string {
	if s.cfg.Options.CommandLine.DisableHotRestart {
		return "disabled"
	}
	return "11.104"
}

// answerJSON sends a message as JSON.
func answerJSON(done func(*admin.Response), m proto.Message, defaults bool) {
	p := config.NewPrinter(nil)
	p.Defaults, p.Redact = defaults, true
	done(&admin.Response{Code: 200, ContentType: admin.JSON, Body: admin.Text(append(p.Append(nil, m, 0), '\n'))})
}

func (s *Server) serveServerInfo(_ *admin.Request, done func(*admin.Response)) {
	up := durationpb.New(s.uptime().Truncate(time.Second))
	answerJSON(done, &adminv3.ServerInfo{
		Version: version.String(), State: adminv3.ServerInfo_State(s.State()), UptimeCurrentEpoch: up, UptimeAllEpochs: up,
		HotRestartVersion: s.hotRestartVersion(), CommandLineOptions: s.commandLine(), Node: s.node(),
	}, true)
}

// commandLine leaves open what Envoy never fills in: file_flush_min_size, socket_mode and enable_core_dump.
func (s *Server) commandLine() *adminv3.CommandLineOptions {
	o := &s.cfg.Options
	c := &o.CommandLine
	p := &adminv3.CommandLineOptions{
		BaseId: uint64(c.BaseID), UseDynamicBaseId: c.UseDynamicBaseID, SkipHotRestartOnNoParent: c.SkipHotRestartOnNoParent,
		SkipHotRestartParentStats: c.SkipHotRestartParentStats, BaseIdPath: c.BaseIDPath, Concurrency: uint32(s.cfg.Concurrency),
		ConfigPath: c.ConfigPath, ConfigYaml: c.ConfigYAML, AllowUnknownStaticFields: c.AllowUnknownStaticFields,
		RejectUnknownDynamicFields: c.RejectUnknownDynamicFields, IgnoreUnknownDynamicFields: c.IgnoreUnknownDynamicFields,
		SkipDeprecatedLogs: c.SkipDeprecatedLogs, AdminAddressPath: c.AdminAddressPath, LogLevel: c.LogLevel,
		ComponentLogLevel: c.ComponentLogLevel, LogFormat: c.LogFormat, LogFormatEscaped: c.LogFormatEscaped, LogPath: c.LogPath,
		ServiceCluster: o.ServiceCluster, ServiceNode: o.ServiceNode, ServiceZone: o.ServiceZone,
		FileFlushInterval: durationpb.New(o.FileFlushInterval),
		DrainTime:         durationpb.New(s.drainTime()), ParentShutdownTime: durationpb.New(c.ParentShutdownTime),
		DisableHotRestart: c.DisableHotRestart, EnableMutexTracing: c.EnableMutexTracing, RestartEpoch: uint32(o.RestartEpoch),
		CpusetThreads: c.CPUSetThreads, DisabledExtensions: c.DisabledExtensions, EnableFineGrainLogging: c.FineGrainLogging,
		LogStacktraceSingleEntry: c.SingleEntryTraces, SocketPath: c.SocketPath,
		StatsTag: o.StatsTags,
	}
	if o.DrainImmediate {
		p.DrainStrategy = adminv3.CommandLineOptions_Immediate
	}
	if c.LocalAddressIPv6 {
		p.LocalAddressIpVersion = adminv3.CommandLineOptions_v6
	}
	switch c.Mode {
	case "validate":
		p.Mode = adminv3.CommandLineOptions_Validate
	case "init_only":
		p.Mode = adminv3.CommandLineOptions_InitOnly
	}
	return p
}

func (s *Server) serveReady(_ *admin.Request, done func(*admin.Response)) {
	st := s.State()
	code := 200
	if st != Live {
		code = 503
	}
	done(admin.Fail(code, st.String()+"\n"))
}

func (s *Server) serveHealthcheck(fail bool) func(*admin.Request, func(*admin.Response)) {
	return func(_ *admin.Request, done func(*admin.Response)) {
		s.failed.Store(fail)
		s.refresh()
		done(admin.OK("OK\n"))
	}
}

// serveQuit ends the proxy once the answer has been written.
func (s *Server) serveQuit(_ *admin.Request, done func(*admin.Response)) {
	done(admin.OK("OK\n"))
	s.main.Post(s.Quit)
}

func (s *Server) serveReopenLogs(_ *admin.Request, done func(*admin.Response)) {
	s.logs.Reopen()
	done(admin.OK("OK\n"))
}

func (s *Server) serveHotRestartVersion(_ *admin.Request, done func(*admin.Response)) {
	done(admin.OK(s.hotRestartVersion()))
}

// serveInitDump names what listeners wait for, and what the start waits for beside.
func (s *Server) serveInitDump(_ *admin.Request, done func(*admin.Response)) {
	out := &adminv3.UnreadyTargetsDumps{}
	add := func(name string, targets []string) {
		out.UnreadyTargetsDumps = append(out.UnreadyTargetsDumps, &adminv3.UnreadyTargetsDumps_UnreadyTargetsDump{Name: name, TargetNames: targets})
	}
	others := s.dynamic.pending
	for _, a := range s.order {
		b := a.newest()
		if b == nil || len(b.targets) == 0 {
			continue
		}
		var names []string
		for _, t := range b.targets {
			names = append(names, *t)
		}
		add(fmt.Sprintf("init manager Listener-local-init-manager %s %d", a.name, b.whole), names)
		if b == a.build {
			others--
		}
	}
	if s.State() == Initializing || s.State() == PreInitializing {
		var names []string
		for _, c := range s.clusters.WarmingClusters() {
			names = append(names, "cluster "+c.Cluster.Name())
		}
		if others > 0 {
			names = append(names, fmt.Sprintf("%d targets of the server", others))
		}
		if len(names) > 0 {
			add("init manager Server", names)
		}
	}
	answerJSON(done, out, false)
}

func (s *Server) serveMemory(_ *admin.Request, done func(*admin.Response)) {
	m := s.memory()
	answerJSON(done, &adminv3.Memory{Allocated: m.allocated, HeapSize: m.heap, PageheapUnmapped: m.unmapped, PageheapFree: m.free,
		TotalThreadCache: m.stacks, TotalPhysicalBytes: m.physical}, true)
}

// Stat names are not looked up while serving, so there are no lookups to show.
func (s *Server) serveLookups(_ *admin.Request, done func(*admin.Response)) {
	if s.process.lookups {
		done(admin.OK("   Count Lookup\n\ntotal: 0\n"))
		return
	}
	done(admin.OK("Lookup tracking is not enabled. Use /stats/recentlookups/enable to enable.\n\ntotal: 0\n"))
}

func (s *Server) serveTrackLookups(on bool) func(*admin.Request, func(*admin.Response)) {
	return func(_ *admin.Request, done func(*admin.Response)) {
		s.process.lookups = on
		done(admin.OK("OK\n"))
	}
}
