package server

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
)

// Parameters that several pages have.
var (
	paramFilter  = admin.Param{Name: "filter", Help: "Regular expression (Google re2) for filtering stats"}
	paramInvert  = admin.Param{Name: "invert_filter", Help: "Invert the filter regex", Switch: true}
	paramUsed    = admin.Param{Name: "usedonly", Help: "Only include stats that have been written by system since restart", Switch: true}
	paramEnable  = []string{"y", "n"}
	paramFormats = []string{"text", "json"}
)

// adminHandlers are Envoy's admin paths, and some of our own.
func (s *Server) adminHandlers() []*admin.Handler {
	list := []*admin.Handler{
		{Path: "/allocprofiler", Help: "enable/disable the allocation profiler (if supported)", Mutates: true, Serve: s.serveAllocProfiler,
			Params: []admin.Param{{Name: "enable", Help: "enable/disable the allocation profiler", Choices: paramEnable}}},
		{Path: "/certs", Help: "print certs on machine", Serve: s.serveCerts},
		{Path: "/clusters", Help: "upstream cluster status", Serve: s.serveClusters, Params: []admin.Param{
			{Name: "filter", Help: "Regular expression (Google re2) for filtering clusters by name"},
			{Name: "format", Help: "File format to use", Choices: paramFormats}}},
		{Path: "/config_dump", Help: "dump current Envoy configs", Serve: s.serveConfigDump, Params: []admin.Param{
			{Name: "resource", Help: "The list to dump: static_clusters, dynamic_listeners, ..."},
			{Name: "mask", Help: "The fields to show, as a Protobuf::FieldMask. Together with resource it applies to every element of the list"},
			{Name: "name_regex", Help: "Only what is loaded under a name that matches the regex; goes together with resource and mask"},
			{Name: "include_eds", Help: "Endpoints too", Switch: true}}},
		{Path: "/contention", Help: "dump current Envoy mutex contention stats (if enabled)", Serve: s.serveContention},
		{Path: "/cpuprofiler", Help: "enable/disable the CPU profiler", Mutates: true, Serve: s.serveCPUProfiler,
			Params: []admin.Param{{Name: "enable", Help: "enables the CPU profiler", Choices: paramEnable}}},
		{Path: "/drain_listeners", Help: "drain listeners", Mutates: true, Serve: s.serveDrainListeners, Params: []admin.Param{
			{Name: "graceful", Help: "Close the listeners after the drain time only; its length and strategy are set on the command line", Switch: true},
			{Name: "skip_exit", Help: "Drain the connections and never close the listeners", Switch: true},
			{Name: "inboundonly", Help: "Only listeners whose traffic_direction is INBOUND", Switch: true}}},
		{Path: "/healthcheck/fail", Help: "cause the server to fail health checks", Mutates: true, Serve: s.serveHealthcheck(true)},
		{Path: "/healthcheck/ok", Help: "cause the server to pass health checks", Mutates: true, Serve: s.serveHealthcheck(false)},
		{Path: "/heap_dump", Help: "dump current Envoy heap (if supported)", Serve: s.serveProfile("heap")},
		{Path: "/heapprofiler", Help: "enable/disable the heap profiler", Mutates: true, Serve: s.serveHeapProfiler,
			Params: []admin.Param{{Name: "enable", Help: "enable/disable the heap profiler", Choices: paramEnable}}},
		{Path: "/hot_restart_version", Help: "print the hot restart compatibility version", Serve: s.serveHotRestartVersion},
		{Path: "/init_dump", Help: "dump current Envoy init manager information (experimental)", Serve: s.serveInitDump,
			Params: []admin.Param{{Name: "mask", Help: "The targets to show that are not ready, as a Protobuf::FieldMask: /init_dump?mask=listener"}}},
		{Path: "/listeners", Help: "print listener info", Serve: s.serveListeners,
			Params: []admin.Param{{Name: "format", Help: "File format to use", Choices: paramFormats}}},
		{Path: "/logging", Help: "query/change logging levels", Mutates: true, Serve: s.serveLogging, Params: []admin.Param{
			{Name: "paths", Help: "Change several loggers: <name1>:<level1>,<name2>:<level2>"},
			{Name: "group", Help: "Change one logger: <name>:<level>"},
			{Name: "level", Help: "desired logging level, this will change all loggers's level", Choices: append([]string{""}, logLevels...)}}},
		{Path: "/memory", Help: "print current allocation/heap usage", Serve: s.serveMemory},
		{Path: "/memory/tcmalloc", Help: "print what the Go runtime knows of its memory", Serve: s.serveMemoryClasses},
		{Path: "/peak_heap_dump", Help: "dump peak Envoy heap (if supported)", Serve: s.serveProfile("allocs")},
		{Path: "/quitquitquit", Help: "exit the server", Mutates: true, Serve: s.serveQuit},
		{Path: "/ready", Help: "print server state, return 200 if LIVE, otherwise return 503", Serve: s.serveReady},
		{Path: "/reopen_logs", Help: "reopen access logs", Mutates: true, Serve: s.serveReopenLogs},
		{Path: "/reset_counters", Help: "reset all counters to zero", Mutates: true, Serve: s.serveResetCounters},
		{Path: "/runtime", Help: "print runtime values", Serve: s.serveRuntime},
		{Path: "/runtime_modify", Help: "Adds or modifies runtime values as passed in query parameters (key1=value1&key2=value2); an empty value takes away a key " +
			"that was added here. Values of other layers can be overridden, not deleted", Mutates: true, Serve: s.serveRuntimeModify},
		{Path: "/server_info", Help: "print server version/status information", Serve: s.serveServerInfo},
		{Path: "/stats", Help: "print server stats", Serve: s.serveStats, Params: []admin.Param{paramUsed, paramFilter, paramInvert,
			{Name: "format", Help: "Format to use", Choices: []string{"html", "active-html", "text", "json"}},
			{Name: "type", Help: "Stat types to include.", Choices: []string{"All", "Counters", "Histograms", "Gauges", "TextReadouts"}},
			{Name: "histogram_buckets", Help: "Histogram bucket display mode", Choices: []string{"cumulative", "disjoint", "detailed", "summary"}}}},
		{Path: "/stats/prometheus", Help: "print server stats in prometheus format", Serve: s.servePrometheus, Params: []admin.Param{paramUsed,
			{Name: "text_readouts", Help: "Show text readouts as gauges of value 0", Switch: true}, paramFilter, paramInvert,
			{Name: "histogram_buckets", Help: "Histogram bucket display mode", Choices: []string{"cumulative", "summary"}}}},
		{Path: "/stats/recentlookups", Help: "Show recent stat-name lookups", Serve: s.serveLookups},
		{Path: "/stats/recentlookups/clear", Help: "clear list of stat-name lookups and counter", Mutates: true, Serve: serveOK},
		{Path: "/stats/recentlookups/disable", Help: "disable recording of reset stat-name lookup names", Mutates: true, Serve: s.serveTrackLookups(false)},
		{Path: "/stats/recentlookups/enable", Help: "enable recording of reset stat-name lookup names", Mutates: true, Serve: s.serveTrackLookups(true)},

		{Path: "/dragoman/passes", Help: "how long the event loops' passes take (Envoy has no such page)", Serve: s.servePasses},
	}
	return append(list, s.profileHandlers()...)
}

func serveOK(_ *admin.Request, done func(*admin.Response)) { done(admin.OK("OK\n")) }
