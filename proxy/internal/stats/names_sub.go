package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of Subscription.
const (
	SubUpdateAttempt    api.CounterIndex   = 0
	SubUpdateSuccess    api.CounterIndex   = 1
	SubUpdateFailure    api.CounterIndex   = 2
	SubUpdateRejected   api.CounterIndex   = 3
	SubInitFetchTimeout api.CounterIndex   = 4
	SubUpdateTime       api.GaugeIndex     = 5
	SubVersion          api.GaugeIndex     = 6
	SubUpdateDuration   api.HistogramIndex = 0
)

// Subscription is what a subscription to resources has: "cluster_manager.cds.", "http.<stat_prefix>.rds.<name>.".
var Subscription = api.MustTemplate("subscription",
	api.Counter(SubUpdateAttempt, "update_attempt"),
	api.Counter(SubUpdateSuccess, "update_success"),
	api.Counter(SubUpdateFailure, "update_failure"),
	api.Counter(SubUpdateRejected, "update_rejected"),
	api.Counter(SubInitFetchTimeout, "init_fetch_timeout"),
	api.Gauge(SubUpdateTime, "update_time"),
	api.Gauge(SubVersion, "version"),
	api.Histogram(SubUpdateDuration, "update_duration", api.Milliseconds),
)

// Indices of Reloads and of RDS, which begins with them.
const (
	ReloadsConfigReload       api.CounterIndex = 0
	ReloadsConfigReloadTimeMs api.GaugeIndex   = 1
	RDSUpdateEmpty            api.CounterIndex = 2
)

// Reloads is what "cluster_manager.cds." has beside Subscription.
var Reloads = api.MustTemplate("reloads",
	api.Counter(ReloadsConfigReload, "config_reload"),
	api.Gauge(ReloadsConfigReloadTimeMs, "config_reload_time_ms"),
)

// RDS is what a route configuration that comes from outside has beside Subscription.
var RDS = api.MustTemplate("rds",
	api.Counter(ReloadsConfigReload, "config_reload"),
	api.Gauge(ReloadsConfigReloadTimeMs, "config_reload_time_ms"),
	api.Counter(RDSUpdateEmpty, "update_empty"),
)

// Indices of SRDS, which begins with Reloads.
const (
	SRDSActiveScopes   api.GaugeIndex = 2
	SRDSAllScopes      api.GaugeIndex = 3
	SRDSOnDemandScopes api.GaugeIndex = 4

	SRDSUpdateEmpty api.CounterIndex = 5
)

// SRDS is what scopes that come from outside have beside Subscription.
var SRDS = api.MustTemplate("srds",
	api.Counter(ReloadsConfigReload, "config_reload"),
	api.Gauge(ReloadsConfigReloadTimeMs, "config_reload_time_ms"),
	api.Gauge(SRDSActiveScopes, "active_scopes"),
	api.Gauge(SRDSAllScopes, "all_scopes"),
	api.Gauge(SRDSOnDemandScopes, "on_demand_scopes"),
	api.Counter(SRDSUpdateEmpty, "update_empty"),
)

// Indices of EDS.
const (
	EDSUpdateRejected   api.CounterIndex   = 0
	EDSInitFetchTimeout api.CounterIndex   = 1
	EDSUpdateTime       api.GaugeIndex     = 2
	EDSUpdateDuration   api.HistogramIndex = 0
)

// EDS is what an EDS cluster has beside Cluster.
var EDS = api.MustTemplate("eds",
	api.Counter(EDSUpdateRejected, "update_rejected"),
	api.Counter(EDSInitFetchTimeout, "init_fetch_timeout"),
	api.Gauge(EDSUpdateTime, "update_time"),
	api.Histogram(EDSUpdateDuration, "update_duration", api.Milliseconds),
)

// Indices of ControlPlane.
const (
	ControlPlaneConnectedState    api.GaugeIndex   = 0
	ControlPlanePendingRequests   api.GaugeIndex   = 1
	ControlPlaneRateLimitEnforced api.CounterIndex = 2
)

// ControlPlane is what a stream to a control plane has: "control_plane." of ADS, "cluster_manager.cds.control_plane." of CDS alone.
var ControlPlane = api.MustTemplate("control plane",
	api.Gauge(ControlPlaneConnectedState, "connected_state"),
	api.Gauge(ControlPlanePendingRequests, "pending_requests"),
	api.Counter(ControlPlaneRateLimitEnforced, "rate_limit_enforced"),
)

// ControlPlaneIdentifier is the text readout of who answered.
const ControlPlaneIdentifier = "identifier"

// SDSKeyRotationFailed is the index of SDS.
const SDSKeyRotationFailed api.CounterIndex = 0

// SDS is what a secret that comes from outside has beside Subscription.
var SDS = api.MustTemplate("sds", api.Counter(SDSKeyRotationFailed, "key_rotation_failed"))

// VersionText is the text readout of a subscription.
const VersionText = "version_text"
