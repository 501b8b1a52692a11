package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of Server.
const (
	ServerCompilationSettingsFipsMode           api.GaugeIndex   = 0
	ServerConcurrency                           api.GaugeIndex   = 1
	ServerDaysUntilFirstCertExpiring            api.GaugeIndex   = 2
	ServerDebugAssertionFailures                api.CounterIndex = 3
	ServerDroppedStatFlushes                    api.CounterIndex = 4
	ServerDynamicUnknownFields                  api.CounterIndex = 5
	ServerEnvoyBugFailures                      api.CounterIndex = 6
	ServerEnvoyNotifications                    api.CounterIndex = 7
	ServerHotRestartEpoch                       api.GaugeIndex   = 8
	ServerLive                                  api.GaugeIndex   = 9
	ServerMemoryAllocated                       api.GaugeIndex   = 10
	ServerMemoryHeapSize                        api.GaugeIndex   = 11
	ServerMemoryPhysicalSize                    api.GaugeIndex   = 12
	ServerParentConnections                     api.GaugeIndex   = 13
	ServerSecondsUntilFirstOcspResponseExpiring api.GaugeIndex   = 14
	ServerState                                 api.GaugeIndex   = 15
	ServerStaticUnknownFields                   api.CounterIndex = 16
	ServerStatsRecentLookups                    api.GaugeIndex   = 17
	ServerTotalConnections                      api.GaugeIndex   = 18
	ServerUptime                                api.GaugeIndex   = 19
	ServerVersion                               api.GaugeIndex   = 20
	ServerWipProtos                             api.CounterIndex = 21

	ServerInitializationTimeMs api.HistogramIndex = 0
)

// Server is "server.".
var Server = api.MustTemplate("server",
	api.Gauge(ServerCompilationSettingsFipsMode, "compilation_settings.fips_mode"),
	api.Gauge(ServerConcurrency, "concurrency"),
	api.Gauge(ServerDaysUntilFirstCertExpiring, "days_until_first_cert_expiring"),
	api.Counter(ServerDebugAssertionFailures, "debug_assertion_failures"),
	api.Counter(ServerDroppedStatFlushes, "dropped_stat_flushes"),
	api.Counter(ServerDynamicUnknownFields, "dynamic_unknown_fields"),
	api.Counter(ServerEnvoyBugFailures, "envoy_bug_failures"),
	api.Counter(ServerEnvoyNotifications, "envoy_notifications"),
	api.Gauge(ServerHotRestartEpoch, "hot_restart_epoch"),
	api.Gauge(ServerLive, "live"),
	api.Gauge(ServerMemoryAllocated, "memory_allocated"),
	api.Gauge(ServerMemoryHeapSize, "memory_heap_size"),
	api.Gauge(ServerMemoryPhysicalSize, "memory_physical_size"),
	api.Gauge(ServerParentConnections, "parent_connections"),
	api.Gauge(ServerSecondsUntilFirstOcspResponseExpiring, "seconds_until_first_ocsp_response_expiring"),
	api.Gauge(ServerState, "state"),
	api.Counter(ServerStaticUnknownFields, "static_unknown_fields"),
	api.Gauge(ServerStatsRecentLookups, "stats_recent_lookups"),
	api.Gauge(ServerTotalConnections, "total_connections"),
	api.Gauge(ServerUptime, "uptime"),
	api.Gauge(ServerVersion, "version"),
	api.Counter(ServerWipProtos, "wip_protos"),
	api.Histogram(ServerInitializationTimeMs, "initialization_time_ms", api.Milliseconds),
)

// Indices of Watchdog.
const (
	WatchdogWatchdogMegaMiss api.CounterIndex = 0
	WatchdogWatchdogMiss     api.CounterIndex = 1
)

// Watchdog is counted for each thread, "server.<thread>.", and for all, "main_thread." and "workers.".
var Watchdog = api.MustTemplate("watchdog",
	api.Counter(WatchdogWatchdogMegaMiss, "watchdog_mega_miss"),
	api.Counter(WatchdogWatchdogMiss, "watchdog_miss"),
)

// Indices of Runtime.
const (
	RuntimeAdminOverridesActive                   api.GaugeIndex   = 0
	RuntimeDeprecatedFeatureSeenSinceProcessStart api.GaugeIndex   = 1
	RuntimeDeprecatedFeatureUse                   api.CounterIndex = 2
	RuntimeLoadError                              api.CounterIndex = 3
	RuntimeLoadSuccess                            api.CounterIndex = 4
	RuntimeNumKeys                                api.GaugeIndex   = 5
	RuntimeNumLayers                              api.GaugeIndex   = 6
	RuntimeOverrideDirExists                      api.CounterIndex = 7
	RuntimeOverrideDirNotExists                   api.CounterIndex = 8
)

// Runtime is "runtime.".
var Runtime = api.MustTemplate("runtime",
	api.Gauge(RuntimeAdminOverridesActive, "admin_overrides_active"),
	api.Gauge(RuntimeDeprecatedFeatureSeenSinceProcessStart, "deprecated_feature_seen_since_process_start"),
	api.Counter(RuntimeDeprecatedFeatureUse, "deprecated_feature_use"),
	api.Counter(RuntimeLoadError, "load_error"),
	api.Counter(RuntimeLoadSuccess, "load_success"),
	api.Gauge(RuntimeNumKeys, "num_keys"),
	api.Gauge(RuntimeNumLayers, "num_layers"),
	api.Counter(RuntimeOverrideDirExists, "override_dir_exists"),
	api.Counter(RuntimeOverrideDirNotExists, "override_dir_not_exists"),
)

// Indices of Filesystem.
const (
	FilesystemFlushedByTimer     api.CounterIndex = 0
	FilesystemReopenFailed       api.CounterIndex = 1
	FilesystemWriteBuffered      api.CounterIndex = 2
	FilesystemWriteCompleted     api.CounterIndex = 3
	FilesystemWriteFailed        api.CounterIndex = 4
	FilesystemWriteTotalBuffered api.GaugeIndex   = 5
)

// Filesystem is what the access-log writers count, "filesystem.".
var Filesystem = api.MustTemplate("filesystem",
	api.Counter(FilesystemFlushedByTimer, "flushed_by_timer"),
	api.Counter(FilesystemReopenFailed, "reopen_failed"),
	api.Counter(FilesystemWriteBuffered, "write_buffered"),
	api.Counter(FilesystemWriteCompleted, "write_completed"),
	api.Counter(FilesystemWriteFailed, "write_failed"),
	api.Gauge(FilesystemWriteTotalBuffered, "write_total_buffered"),
)

// Indices of Overload.
const (
	OverloadEnvoyOverloadActionsResetHighMemoryStreamCount api.CounterIndex = 0

	OverloadOverloadRefreshIntervalDelay api.HistogramIndex = 0
)

// Overload is at the root, also without an overload manager.
var Overload = api.MustTemplate("overload",
	api.Counter(OverloadEnvoyOverloadActionsResetHighMemoryStreamCount, "envoy.overload_actions.reset_high_memory_stream.count"),
	api.Histogram(OverloadOverloadRefreshIntervalDelay, "overload.refresh_interval_delay", api.Unspecified),
)

// Indices of ThreadClusters.
const (
	ThreadClustersClustersInflated api.GaugeIndex = 0
)

// ThreadClusters is "thread_local_cluster_manager.<thread>.".
var ThreadClusters = api.MustTemplate("thread clusters",
	api.Gauge(ThreadClustersClustersInflated, "clusters_inflated"),
)
