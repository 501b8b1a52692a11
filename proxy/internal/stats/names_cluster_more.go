package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of ClusterCodes.
const (
	ClusterCodesUpstreamRqCompleted api.CounterIndex = 0
	ClusterCodesUpstreamRq          api.CodesIndex   = 1

	ClusterCodesUpstreamRqTime api.HistogramIndex = 0
)

// ClusterRetryCodes counts the codes of responses that are not sent because the request is tried again, "retry.". Its indices are
// those of ClusterCodes.
var ClusterRetryCodes = api.MustTemplate("cluster retry codes",
	api.LazyCounter(ClusterCodesUpstreamRqCompleted, "upstream_rq_completed"),
	api.Codes(ClusterCodesUpstreamRq, "upstream_rq_"),
)

// ClusterCodes is counted beside a cluster's own response codes, by where the answer came from: a block of Cluster under
// "external.", "internal." and "canary.", and a group of its own under "zone.<from>.<to>.".
var ClusterCodes = api.MustTemplate("cluster codes",
	api.LazyCounter(ClusterCodesUpstreamRqCompleted, "upstream_rq_completed"),
	api.Codes(ClusterCodesUpstreamRq, "upstream_rq_"),
	api.LazyHistogram(ClusterCodesUpstreamRqTime, "upstream_rq_time", api.Milliseconds),
)

// Indices of ClusterAlt.
const (
	ClusterAltUpstreamRqCompleted api.CounterIndex = 0
	ClusterAltUpstreamRq          api.CodesIndex   = 1
	ClusterAltExternal            api.BlockIndex   = 41
	ClusterAltInternal            api.BlockIndex   = 82
	ClusterAltCanary              api.BlockIndex   = 123

	ClusterAltUpstreamRqTime api.HistogramIndex = 0
)

// ClusterAlt counts the answers to requests that name it by x-envoy-upstream-alt-stat-name, "cluster.<name>.<alt name>.".
var ClusterAlt = api.MustTemplate("cluster alt",
	api.LazyCounter(ClusterAltUpstreamRqCompleted, "upstream_rq_completed"),
	api.Codes(ClusterAltUpstreamRq, "upstream_rq_"),
	api.LazyHistogram(ClusterAltUpstreamRqTime, "upstream_rq_time", api.Milliseconds),
	api.Block(ClusterAltExternal, 1, "external.", ClusterCodes),
	api.Block(ClusterAltInternal, 2, "internal.", ClusterCodes),
	api.Block(ClusterAltCanary, 3, "canary.", ClusterCodes),
)

// Indices of ClusterRemaining.
const (
	RemainingRemainingCx      api.GaugeIndex = 0
	RemainingRemainingCxPools api.GaugeIndex = 1
	RemainingRemainingPending api.GaugeIndex = 2
	RemainingRemainingRetries api.GaugeIndex = 3
	RemainingRemainingRq      api.GaugeIndex = 4
)

// ClusterRemaining is for thresholds with track_remaining, "cluster.<name>.circuit_breakers.<priority>.".
var ClusterRemaining = api.MustTemplate("cluster remaining",
	api.Gauge(RemainingRemainingCx, "remaining_cx"),
	api.Gauge(RemainingRemainingCxPools, "remaining_cx_pools"),
	api.Gauge(RemainingRemainingPending, "remaining_pending"),
	api.Gauge(RemainingRemainingRetries, "remaining_retries"),
	api.Gauge(RemainingRemainingRq, "remaining_rq"),
)

// Indices of HealthCheck.
const (
	HealthCheckAttempt        api.CounterIndex = 0
	HealthCheckDegraded       api.GaugeIndex   = 1
	HealthCheckFailure        api.CounterIndex = 2
	HealthCheckHealthy        api.GaugeIndex   = 3
	HealthCheckNetworkFailure api.CounterIndex = 4
	HealthCheckPassiveFailure api.CounterIndex = 5
	HealthCheckSuccess        api.CounterIndex = 6
	HealthCheckVerifyCluster  api.CounterIndex = 7
)

// HealthCheck is for clusters with active health checks, "cluster.<name>.health_check.".
var HealthCheck = api.MustTemplate("health check",
	api.Counter(HealthCheckAttempt, "attempt"),
	api.Gauge(HealthCheckDegraded, "degraded"),
	api.Counter(HealthCheckFailure, "failure"),
	api.Gauge(HealthCheckHealthy, "healthy"),
	api.Counter(HealthCheckNetworkFailure, "network_failure"),
	api.Counter(HealthCheckPassiveFailure, "passive_failure"),
	api.Counter(HealthCheckSuccess, "success"),
	api.Counter(HealthCheckVerifyCluster, "verify_cluster"),
)

// Indices of OutlierDetection.
const (
	OutlierEjectionsActive                                api.GaugeIndex   = 0
	OutlierEjectionsConsecutive5xx                        api.CounterIndex = 1
	OutlierEjectionsDetectedConsecutive5xx                api.CounterIndex = 2
	OutlierEjectionsDetectedConsecutiveGatewayFailure     api.CounterIndex = 3
	OutlierEjectionsDetectedConsecutiveLocalOriginFailure api.CounterIndex = 4
	OutlierEjectionsDetectedDegradation                   api.CounterIndex = 5
	OutlierEjectionsDetectedFailurePercentage             api.CounterIndex = 6
	OutlierEjectionsDetectedLocalOriginFailurePercentage  api.CounterIndex = 7
	OutlierEjectionsDetectedLocalOriginSuccessRate        api.CounterIndex = 8
	OutlierEjectionsDetectedSuccessRate                   api.CounterIndex = 9
	OutlierEjectionsEnforcedConsecutive5xx                api.CounterIndex = 10
	OutlierEjectionsEnforcedConsecutiveGatewayFailure     api.CounterIndex = 11
	OutlierEjectionsEnforcedConsecutiveLocalOriginFailure api.CounterIndex = 12
	OutlierEjectionsEnforcedFailurePercentage             api.CounterIndex = 13
	OutlierEjectionsEnforcedLocalOriginFailurePercentage  api.CounterIndex = 14
	OutlierEjectionsEnforcedLocalOriginSuccessRate        api.CounterIndex = 15
	OutlierEjectionsEnforcedSuccessRate                   api.CounterIndex = 16
	OutlierEjectionsEnforcedTotal                         api.CounterIndex = 17
	OutlierEjectionsOverflow                              api.CounterIndex = 18
	OutlierEjectionsSuccessRate                           api.CounterIndex = 19
	OutlierEjectionsTotal                                 api.CounterIndex = 20
)

// OutlierDetection is for clusters with outlier detection, "cluster.<name>.outlier_detection.".
var OutlierDetection = api.MustTemplate("outlier detection",
	api.Gauge(OutlierEjectionsActive, "ejections_active"),
	api.Counter(OutlierEjectionsConsecutive5xx, "ejections_consecutive_5xx"),
	api.Counter(OutlierEjectionsDetectedConsecutive5xx, "ejections_detected_consecutive_5xx"),
	api.Counter(OutlierEjectionsDetectedConsecutiveGatewayFailure, "ejections_detected_consecutive_gateway_failure"),
	api.Counter(OutlierEjectionsDetectedConsecutiveLocalOriginFailure, "ejections_detected_consecutive_local_origin_failure"),
	api.Counter(OutlierEjectionsDetectedDegradation, "ejections_detected_degradation"),
	api.Counter(OutlierEjectionsDetectedFailurePercentage, "ejections_detected_failure_percentage"),
	api.Counter(OutlierEjectionsDetectedLocalOriginFailurePercentage, "ejections_detected_local_origin_failure_percentage"),
	api.Counter(OutlierEjectionsDetectedLocalOriginSuccessRate, "ejections_detected_local_origin_success_rate"),
	api.Counter(OutlierEjectionsDetectedSuccessRate, "ejections_detected_success_rate"),
	api.Counter(OutlierEjectionsEnforcedConsecutive5xx, "ejections_enforced_consecutive_5xx"),
	api.Counter(OutlierEjectionsEnforcedConsecutiveGatewayFailure, "ejections_enforced_consecutive_gateway_failure"),
	api.Counter(OutlierEjectionsEnforcedConsecutiveLocalOriginFailure, "ejections_enforced_consecutive_local_origin_failure"),
	api.Counter(OutlierEjectionsEnforcedFailurePercentage, "ejections_enforced_failure_percentage"),
	api.Counter(OutlierEjectionsEnforcedLocalOriginFailurePercentage, "ejections_enforced_local_origin_failure_percentage"),
	api.Counter(OutlierEjectionsEnforcedLocalOriginSuccessRate, "ejections_enforced_local_origin_success_rate"),
	api.Counter(OutlierEjectionsEnforcedSuccessRate, "ejections_enforced_success_rate"),
	api.Counter(OutlierEjectionsEnforcedTotal, "ejections_enforced_total"),
	api.Counter(OutlierEjectionsOverflow, "ejections_overflow"),
	api.Counter(OutlierEjectionsSuccessRate, "ejections_success_rate"),
	api.Counter(OutlierEjectionsTotal, "ejections_total"),
)

// Indices of TimeoutBudgets.
const (
	BudgetUpstreamRqTimeoutBudgetPerTryPercentUsed api.HistogramIndex = 0
	BudgetUpstreamRqTimeoutBudgetPercentUsed       api.HistogramIndex = 1
)

// TimeoutBudgets is for clusters with track_cluster_stats.timeout_budgets, "cluster.<name>.".
var TimeoutBudgets = api.MustTemplate("timeout budgets",
	api.Histogram(BudgetUpstreamRqTimeoutBudgetPerTryPercentUsed, "upstream_rq_timeout_budget_per_try_percent_used", api.Unspecified),
	api.Histogram(BudgetUpstreamRqTimeoutBudgetPercentUsed, "upstream_rq_timeout_budget_percent_used", api.Unspecified),
)

// Indices of RequestResponseSizes.
const (
	SizesUpstreamRqBodySize     api.HistogramIndex = 0
	SizesUpstreamRqHeadersCount api.HistogramIndex = 1
	SizesUpstreamRqHeadersSize  api.HistogramIndex = 2
	SizesUpstreamRsBodySize     api.HistogramIndex = 3
	SizesUpstreamRsHeadersCount api.HistogramIndex = 4
	SizesUpstreamRsHeadersSize  api.HistogramIndex = 5
)

// RequestResponseSizes is for clusters with track_cluster_stats.request_response_sizes, "cluster.<name>.".
var RequestResponseSizes = api.MustTemplate("request response sizes",
	api.Histogram(SizesUpstreamRqBodySize, "upstream_rq_body_size", api.Bytes),
	api.Histogram(SizesUpstreamRqHeadersCount, "upstream_rq_headers_count", api.Unspecified),
	api.Histogram(SizesUpstreamRqHeadersSize, "upstream_rq_headers_size", api.Bytes),
	api.Histogram(SizesUpstreamRsBodySize, "upstream_rs_body_size", api.Bytes),
	api.Histogram(SizesUpstreamRsHeadersCount, "upstream_rs_headers_count", api.Unspecified),
	api.Histogram(SizesUpstreamRsHeadersSize, "upstream_rs_headers_size", api.Bytes),
)

// Indices of ClusterManager.
const (
	ClusterManagerActiveClusters         api.GaugeIndex   = 0
	ClusterManagerClusterAdded           api.CounterIndex = 1
	ClusterManagerClusterModified        api.CounterIndex = 2
	ClusterManagerClusterRemoved         api.CounterIndex = 3
	ClusterManagerClusterUpdated         api.CounterIndex = 4
	ClusterManagerClusterUpdatedViaMerge api.CounterIndex = 5
	ClusterManagerUpdateMergeCancelled   api.CounterIndex = 6
	ClusterManagerUpdateOutOfMergeWindow api.CounterIndex = 7
	ClusterManagerWarmingClusters        api.GaugeIndex   = 8
)

// ClusterManager is "cluster_manager.".
var ClusterManager = api.MustTemplate("cluster manager",
	api.Gauge(ClusterManagerActiveClusters, "active_clusters"),
	api.Counter(ClusterManagerClusterAdded, "cluster_added"),
	api.Counter(ClusterManagerClusterModified, "cluster_modified"),
	api.Counter(ClusterManagerClusterRemoved, "cluster_removed"),
	api.Counter(ClusterManagerClusterUpdated, "cluster_updated"),
	api.Counter(ClusterManagerClusterUpdatedViaMerge, "cluster_updated_via_merge"),
	api.Counter(ClusterManagerUpdateMergeCancelled, "update_merge_cancelled"),
	api.Counter(ClusterManagerUpdateOutOfMergeWindow, "update_out_of_merge_window"),
	api.Gauge(ClusterManagerWarmingClusters, "warming_clusters"),
)
