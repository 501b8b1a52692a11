package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of Cluster.
const (
	ClusterUpstreamRqTotal                        api.CounterIndex = 0
	ClusterUpstreamRqActive                       api.GaugeIndex   = 1
	ClusterUpstreamRqPendingTotal                 api.CounterIndex = 2
	ClusterUpstreamRqPendingActive                api.GaugeIndex   = 3
	ClusterUpstreamRqCompleted                    api.CounterIndex = 4
	ClusterUpstreamCxRxBytesTotal                 api.CounterIndex = 5
	ClusterUpstreamCxTxBytesTotal                 api.CounterIndex = 6
	ClusterUpstreamCxRxBytesBuffered              api.GaugeIndex   = 7
	ClusterUpstreamCxTxBytesBuffered              api.GaugeIndex   = 8
	ClusterUpstreamCxTotal                        api.CounterIndex = 9
	ClusterUpstreamCxActive                       api.GaugeIndex   = 10
	ClusterUpstreamCxHttp1Total                   api.CounterIndex = 11
	ClusterUpstreamCxHttp2Total                   api.CounterIndex = 12
	ClusterUpstreamCxDestroy                      api.CounterIndex = 13
	ClusterUpstreamCxDestroyLocal                 api.CounterIndex = 14
	ClusterUpstreamCxDestroyRemote                api.CounterIndex = 15
	ClusterUpstreamRqCodes                        api.CodesIndex   = 16
	ClusterBindErrors                             api.CounterIndex = 56
	ClusterLbHealthyPanic                         api.CounterIndex = 57
	ClusterLbLocalClusterNotOk                    api.CounterIndex = 58
	ClusterLbSubsetsFallback                      api.CounterIndex = 59
	ClusterLbSubsetsFallbackPanic                 api.CounterIndex = 60
	ClusterLbSubsetsSelected                      api.CounterIndex = 61
	ClusterLbZoneClusterTooSmall                  api.CounterIndex = 62
	ClusterLbZoneNoCapacityLeft                   api.CounterIndex = 63
	ClusterLbZoneRoutingAllDirectly               api.CounterIndex = 64
	ClusterLbZoneRoutingCrossZone                 api.CounterIndex = 65
	ClusterLbZoneRoutingSampled                   api.CounterIndex = 66
	ClusterOriginalDstHostInvalid                 api.CounterIndex = 67
	ClusterRetryOrShadowAbandoned                 api.CounterIndex = 68
	ClusterUpstreamCxCloseNotify                  api.CounterIndex = 69
	ClusterUpstreamCxConnectAttemptsExceeded      api.CounterIndex = 70
	ClusterUpstreamCxConnectFail                  api.CounterIndex = 71
	ClusterUpstreamCxConnectTimeout               api.CounterIndex = 72
	ClusterUpstreamCxConnectWith0Rtt              api.CounterIndex = 73
	ClusterUpstreamCxDestroyLocalWithActiveRq     api.CounterIndex = 74
	ClusterUpstreamCxDestroyRemoteWithActiveRq    api.CounterIndex = 75
	ClusterUpstreamCxDestroyWithActiveRq          api.CounterIndex = 76
	ClusterUpstreamCxHttp3Total                   api.CounterIndex = 77
	ClusterUpstreamCxIdleTimeout                  api.CounterIndex = 78
	ClusterUpstreamCxMaxDurationReached           api.CounterIndex = 79
	ClusterUpstreamCxMaxRequests                  api.CounterIndex = 80
	ClusterUpstreamCxNoneHealthy                  api.CounterIndex = 81
	ClusterUpstreamCxOverflow                     api.CounterIndex = 82
	ClusterUpstreamCxPoolOverflow                 api.CounterIndex = 83
	ClusterUpstreamCxPreconnectSkipped            api.CounterIndex = 84
	ClusterUpstreamCxProtocolError                api.CounterIndex = 85
	ClusterUpstreamFlowControlBackedUpTotal       api.CounterIndex = 86
	ClusterUpstreamFlowControlDrainedTotal        api.CounterIndex = 87
	ClusterUpstreamFlowControlPausedReadingTotal  api.CounterIndex = 88
	ClusterUpstreamFlowControlResumedReadingTotal api.CounterIndex = 89
	ClusterUpstreamHttp3Broken                    api.CounterIndex = 90
	ClusterUpstreamInternalRedirectFailedTotal    api.CounterIndex = 91
	ClusterUpstreamInternalRedirectSucceededTotal api.CounterIndex = 92
	ClusterUpstreamQueueOverloaded                api.GaugeIndex   = 93
	ClusterUpstreamRq0rtt                         api.CounterIndex = 94
	ClusterUpstreamRqActiveOverflow               api.CounterIndex = 95
	ClusterUpstreamRqCancelled                    api.CounterIndex = 96
	ClusterUpstreamRqMaintenanceMode              api.CounterIndex = 97
	ClusterUpstreamRqMaxDurationReached           api.CounterIndex = 98
	ClusterUpstreamRqPendingFailureEject          api.CounterIndex = 99
	ClusterUpstreamRqPendingOverflow              api.CounterIndex = 100
	ClusterUpstreamRqPerTryIdleTimeout            api.CounterIndex = 101
	ClusterUpstreamRqPerTryTimeout                api.CounterIndex = 102
	ClusterUpstreamRqRetry                        api.CounterIndex = 103
	ClusterUpstreamRqRetryBackoffExponential      api.CounterIndex = 104
	ClusterUpstreamRqRetryBackoffRatelimited      api.CounterIndex = 105
	ClusterUpstreamRqRetryLimitExceeded           api.CounterIndex = 106
	ClusterUpstreamRqRetryOverflow                api.CounterIndex = 107
	ClusterUpstreamRqRetrySuccess                 api.CounterIndex = 108
	ClusterUpstreamRqRxReset                      api.CounterIndex = 109
	ClusterUpstreamRqRxResetNoError               api.CounterIndex = 110
	ClusterUpstreamRqTimeout                      api.CounterIndex = 111
	ClusterUpstreamRqTxReset                      api.CounterIndex = 112
	ClusterAssignmentStale                        api.CounterIndex = 128
	ClusterAssignmentTimeoutReceived              api.CounterIndex = 129
	ClusterAssignmentUseCached                    api.CounterIndex = 130
	ClusterDefaultTotalMatchCount                 api.CounterIndex = 131
	ClusterLbRecalculateZoneStructures            api.CounterIndex = 132
	ClusterLbSubsetsCreated                       api.CounterIndex = 133
	ClusterLbSubsetsRemoved                       api.CounterIndex = 134
	ClusterMembershipChange                       api.CounterIndex = 135
	ClusterUpdateAttempt                          api.CounterIndex = 136
	ClusterUpdateEmpty                            api.CounterIndex = 137
	ClusterUpdateFailure                          api.CounterIndex = 138
	ClusterUpdateNoRebuild                        api.CounterIndex = 139
	ClusterUpdateSuccess                          api.CounterIndex = 140
	ClusterCircuitBreakersDefaultCxOpen           api.GaugeIndex   = 141
	ClusterCircuitBreakersDefaultCxPoolOpen       api.GaugeIndex   = 142
	ClusterCircuitBreakersDefaultRqOpen           api.GaugeIndex   = 143
	ClusterCircuitBreakersDefaultRqPendingOpen    api.GaugeIndex   = 144
	ClusterCircuitBreakersDefaultRqRetryOpen      api.GaugeIndex   = 145
	ClusterCircuitBreakersHighCxOpen              api.GaugeIndex   = 146
	ClusterCircuitBreakersHighCxPoolOpen          api.GaugeIndex   = 147
	ClusterCircuitBreakersHighRqOpen              api.GaugeIndex   = 148
	ClusterCircuitBreakersHighRqPendingOpen       api.GaugeIndex   = 149
	ClusterCircuitBreakersHighRqRetryOpen         api.GaugeIndex   = 150
	ClusterLbSubsetsActive                        api.GaugeIndex   = 151
	ClusterMaxHostWeight                          api.GaugeIndex   = 152
	ClusterMembershipDegraded                     api.GaugeIndex   = 153
	ClusterMembershipExcluded                     api.GaugeIndex   = 154
	ClusterMembershipHealthy                      api.GaugeIndex   = 155
	ClusterMembershipTotal                        api.GaugeIndex   = 156
	ClusterVersion                                api.GaugeIndex   = 157
	ClusterWarmingState                           api.GaugeIndex   = 158
	ClusterExternal                               api.BlockIndex   = 160
	ClusterInternal                               api.BlockIndex   = 201
	ClusterCanary                                 api.BlockIndex   = 242
	ClusterHTTP1                                  api.BlockIndex   = 283
	ClusterHTTP2                                  api.BlockIndex   = 288
	ClusterRetry                                  api.BlockIndex   = 318
	ClusterDragoman                               api.BlockIndex   = 359

	ClusterUpstreamCxConnectMs api.HistogramIndex = 0
	ClusterUpstreamCxLengthMs  api.HistogramIndex = 1
	ClusterUpstreamRqPerCx     api.HistogramIndex = 2
	ClusterUpstreamRqTime      api.HistogramIndex = 3
)

// Cluster holds what every cluster has, "cluster.<name>.". The first page is what a request touches, another one what only the
// main loop counts and sets.
var Cluster = api.MustTemplate("cluster",
	api.Counter(ClusterUpstreamRqTotal, "upstream_rq_total"),
	api.Gauge(ClusterUpstreamRqActive, "upstream_rq_active"),
	api.Counter(ClusterUpstreamRqPendingTotal, "upstream_rq_pending_total"),
	api.Gauge(ClusterUpstreamRqPendingActive, "upstream_rq_pending_active"),
	api.Counter(ClusterUpstreamRqCompleted, "upstream_rq_completed"),
	api.Counter(ClusterUpstreamCxRxBytesTotal, "upstream_cx_rx_bytes_total"),
	api.Counter(ClusterUpstreamCxTxBytesTotal, "upstream_cx_tx_bytes_total"),
	api.Gauge(ClusterUpstreamCxRxBytesBuffered, "upstream_cx_rx_bytes_buffered"),
	api.Gauge(ClusterUpstreamCxTxBytesBuffered, "upstream_cx_tx_bytes_buffered"),
	api.Counter(ClusterUpstreamCxTotal, "upstream_cx_total"),
	api.Gauge(ClusterUpstreamCxActive, "upstream_cx_active"),
	api.Counter(ClusterUpstreamCxHttp1Total, "upstream_cx_http1_total"),
	api.Counter(ClusterUpstreamCxHttp2Total, "upstream_cx_http2_total"),
	api.Counter(ClusterUpstreamCxDestroy, "upstream_cx_destroy"),
	api.Counter(ClusterUpstreamCxDestroyLocal, "upstream_cx_destroy_local"),
	api.Counter(ClusterUpstreamCxDestroyRemote, "upstream_cx_destroy_remote"),
	api.Codes(ClusterUpstreamRqCodes, "upstream_rq_"),
	api.Counter(ClusterBindErrors, "bind_errors"),
	api.Counter(ClusterLbHealthyPanic, "lb_healthy_panic"),
	api.Counter(ClusterLbLocalClusterNotOk, "lb_local_cluster_not_ok"),
	api.Counter(ClusterLbSubsetsFallback, "lb_subsets_fallback"),
	api.Counter(ClusterLbSubsetsFallbackPanic, "lb_subsets_fallback_panic"),
	api.Counter(ClusterLbSubsetsSelected, "lb_subsets_selected"),
	api.Counter(ClusterLbZoneClusterTooSmall, "lb_zone_cluster_too_small"),
	api.Counter(ClusterLbZoneNoCapacityLeft, "lb_zone_no_capacity_left"),
	api.Counter(ClusterLbZoneRoutingAllDirectly, "lb_zone_routing_all_directly"),
	api.Counter(ClusterLbZoneRoutingCrossZone, "lb_zone_routing_cross_zone"),
	api.Counter(ClusterLbZoneRoutingSampled, "lb_zone_routing_sampled"),
	api.Counter(ClusterOriginalDstHostInvalid, "original_dst_host_invalid"),
	api.Counter(ClusterRetryOrShadowAbandoned, "retry_or_shadow_abandoned"),
	api.Counter(ClusterUpstreamCxCloseNotify, "upstream_cx_close_notify"),
	api.Counter(ClusterUpstreamCxConnectAttemptsExceeded, "upstream_cx_connect_attempts_exceeded"),
	api.Counter(ClusterUpstreamCxConnectFail, "upstream_cx_connect_fail"),
	api.Counter(ClusterUpstreamCxConnectTimeout, "upstream_cx_connect_timeout"),
	api.Counter(ClusterUpstreamCxConnectWith0Rtt, "upstream_cx_connect_with_0_rtt"),
	api.Counter(ClusterUpstreamCxDestroyLocalWithActiveRq, "upstream_cx_destroy_local_with_active_rq"),
	api.Counter(ClusterUpstreamCxDestroyRemoteWithActiveRq, "upstream_cx_destroy_remote_with_active_rq"),
	api.Counter(ClusterUpstreamCxDestroyWithActiveRq, "upstream_cx_destroy_with_active_rq"),
	api.Counter(ClusterUpstreamCxHttp3Total, "upstream_cx_http3_total"),
	api.Counter(ClusterUpstreamCxIdleTimeout, "upstream_cx_idle_timeout"),
	api.Counter(ClusterUpstreamCxMaxDurationReached, "upstream_cx_max_duration_reached"),
	api.Counter(ClusterUpstreamCxMaxRequests, "upstream_cx_max_requests"),
	api.Counter(ClusterUpstreamCxNoneHealthy, "upstream_cx_none_healthy"),
	api.Counter(ClusterUpstreamCxOverflow, "upstream_cx_overflow"),
	api.Counter(ClusterUpstreamCxPoolOverflow, "upstream_cx_pool_overflow"),
	api.Counter(ClusterUpstreamCxPreconnectSkipped, "upstream_cx_preconnect_skipped"),
	api.Counter(ClusterUpstreamCxProtocolError, "upstream_cx_protocol_error"),
	api.Counter(ClusterUpstreamFlowControlBackedUpTotal, "upstream_flow_control_backed_up_total"),
	api.Counter(ClusterUpstreamFlowControlDrainedTotal, "upstream_flow_control_drained_total"),
	api.Counter(ClusterUpstreamFlowControlPausedReadingTotal, "upstream_flow_control_paused_reading_total"),
	api.Counter(ClusterUpstreamFlowControlResumedReadingTotal, "upstream_flow_control_resumed_reading_total"),
	api.Counter(ClusterUpstreamHttp3Broken, "upstream_http3_broken"),
	api.Counter(ClusterUpstreamInternalRedirectFailedTotal, "upstream_internal_redirect_failed_total"),
	api.Counter(ClusterUpstreamInternalRedirectSucceededTotal, "upstream_internal_redirect_succeeded_total"),
	api.Gauge(ClusterUpstreamQueueOverloaded, "upstream_queue_overloaded"),
	api.Counter(ClusterUpstreamRq0rtt, "upstream_rq_0rtt"),
	api.Counter(ClusterUpstreamRqActiveOverflow, "upstream_rq_active_overflow"),
	api.Counter(ClusterUpstreamRqCancelled, "upstream_rq_cancelled"),
	api.Counter(ClusterUpstreamRqMaintenanceMode, "upstream_rq_maintenance_mode"),
	api.Counter(ClusterUpstreamRqMaxDurationReached, "upstream_rq_max_duration_reached"),
	api.Counter(ClusterUpstreamRqPendingFailureEject, "upstream_rq_pending_failure_eject"),
	api.Counter(ClusterUpstreamRqPendingOverflow, "upstream_rq_pending_overflow"),
	api.Counter(ClusterUpstreamRqPerTryIdleTimeout, "upstream_rq_per_try_idle_timeout"),
	api.Counter(ClusterUpstreamRqPerTryTimeout, "upstream_rq_per_try_timeout"),
	api.Counter(ClusterUpstreamRqRetry, "upstream_rq_retry"),
	api.Counter(ClusterUpstreamRqRetryBackoffExponential, "upstream_rq_retry_backoff_exponential"),
	api.Counter(ClusterUpstreamRqRetryBackoffRatelimited, "upstream_rq_retry_backoff_ratelimited"),
	api.Counter(ClusterUpstreamRqRetryLimitExceeded, "upstream_rq_retry_limit_exceeded"),
	api.Counter(ClusterUpstreamRqRetryOverflow, "upstream_rq_retry_overflow"),
	api.Counter(ClusterUpstreamRqRetrySuccess, "upstream_rq_retry_success"),
	api.Counter(ClusterUpstreamRqRxReset, "upstream_rq_rx_reset"),
	api.Counter(ClusterUpstreamRqRxResetNoError, "upstream_rq_rx_reset_no_error"),
	api.Counter(ClusterUpstreamRqTimeout, "upstream_rq_timeout"),
	api.Counter(ClusterUpstreamRqTxReset, "upstream_rq_tx_reset"),
	api.Counter(ClusterAssignmentStale, "assignment_stale"),
	api.Counter(ClusterAssignmentTimeoutReceived, "assignment_timeout_received"),
	api.Counter(ClusterAssignmentUseCached, "assignment_use_cached"),
	api.Counter(ClusterDefaultTotalMatchCount, "default.total_match_count"),
	api.Counter(ClusterLbRecalculateZoneStructures, "lb_recalculate_zone_structures"),
	api.Counter(ClusterLbSubsetsCreated, "lb_subsets_created"),
	api.Counter(ClusterLbSubsetsRemoved, "lb_subsets_removed"),
	api.Counter(ClusterMembershipChange, "membership_change"),
	api.Counter(ClusterUpdateAttempt, "update_attempt"),
	api.Counter(ClusterUpdateEmpty, "update_empty"),
	api.Counter(ClusterUpdateFailure, "update_failure"),
	api.Counter(ClusterUpdateNoRebuild, "update_no_rebuild"),
	api.Counter(ClusterUpdateSuccess, "update_success"),
	api.Gauge(ClusterCircuitBreakersDefaultCxOpen, "circuit_breakers.default.cx_open"),
	api.Gauge(ClusterCircuitBreakersDefaultCxPoolOpen, "circuit_breakers.default.cx_pool_open"),
	api.Gauge(ClusterCircuitBreakersDefaultRqOpen, "circuit_breakers.default.rq_open"),
	api.Gauge(ClusterCircuitBreakersDefaultRqPendingOpen, "circuit_breakers.default.rq_pending_open"),
	api.Gauge(ClusterCircuitBreakersDefaultRqRetryOpen, "circuit_breakers.default.rq_retry_open"),
	api.Gauge(ClusterCircuitBreakersHighCxOpen, "circuit_breakers.high.cx_open"),
	api.Gauge(ClusterCircuitBreakersHighCxPoolOpen, "circuit_breakers.high.cx_pool_open"),
	api.Gauge(ClusterCircuitBreakersHighRqOpen, "circuit_breakers.high.rq_open"),
	api.Gauge(ClusterCircuitBreakersHighRqPendingOpen, "circuit_breakers.high.rq_pending_open"),
	api.Gauge(ClusterCircuitBreakersHighRqRetryOpen, "circuit_breakers.high.rq_retry_open"),
	api.Gauge(ClusterLbSubsetsActive, "lb_subsets_active"),
	api.Gauge(ClusterMaxHostWeight, "max_host_weight"),
	api.Gauge(ClusterMembershipDegraded, "membership_degraded"),
	api.Gauge(ClusterMembershipExcluded, "membership_excluded"),
	api.Gauge(ClusterMembershipHealthy, "membership_healthy"),
	api.Gauge(ClusterMembershipTotal, "membership_total"),
	api.Gauge(ClusterVersion, "version"),
	api.Gauge(ClusterWarmingState, "warming_state"),
	api.Block(ClusterExternal, 4, "external.", ClusterCodes),
	api.Block(ClusterInternal, 5, "internal.", ClusterCodes),
	api.Block(ClusterCanary, 6, "canary.", ClusterCodes),
	api.Block(ClusterHTTP1, 7, "http1.", HTTP1),
	api.Block(ClusterHTTP2, 7, "http2.", HTTP2),
	api.Block(ClusterRetry, 11, "retry.", ClusterRetryCodes),
	api.Block(ClusterDragoman, 11, "dragoman.", ClusterOwn),
	api.Histogram(ClusterUpstreamCxConnectMs, "upstream_cx_connect_ms", api.Milliseconds),
	api.Histogram(ClusterUpstreamCxLengthMs, "upstream_cx_length_ms", api.Milliseconds),
	api.Histogram(ClusterUpstreamRqPerCx, "upstream_rq_per_cx", api.Unspecified),
	api.LazyHistogram(ClusterUpstreamRqTime, "upstream_rq_time", api.Milliseconds),
)
