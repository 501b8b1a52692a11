package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of HCM.
const (
	HCMDownstreamRqTotal                        api.CounterIndex = 0
	HCMDownstreamRqActive                       api.GaugeIndex   = 1
	HCMDownstreamRqHttp1Total                   api.CounterIndex = 2
	HCMDownstreamRqHttp2Total                   api.CounterIndex = 3
	HCMDownstreamRqCompleted                    api.CounterIndex = 4
	HCMDownstreamRq1xx                          api.CounterIndex = 5
	HCMDownstreamRq2xx                          api.CounterIndex = 6
	HCMDownstreamRq3xx                          api.CounterIndex = 7
	HCMDownstreamRq4xx                          api.CounterIndex = 8
	HCMDownstreamRq5xx                          api.CounterIndex = 9
	HCMDownstreamCxRxBytesTotal                 api.CounterIndex = 10
	HCMDownstreamCxTxBytesTotal                 api.CounterIndex = 11
	HCMDownstreamCxRxBytesBuffered              api.GaugeIndex   = 12
	HCMDownstreamCxTxBytesBuffered              api.GaugeIndex   = 13
	HCMDownstreamCxTotal                        api.CounterIndex = 14
	HCMDownstreamCxActive                       api.GaugeIndex   = 15
	HCMDownstreamCxHttp1Total                   api.CounterIndex = 16
	HCMDownstreamCxHttp1Active                  api.GaugeIndex   = 17
	HCMDownstreamCxHttp2Total                   api.CounterIndex = 18
	HCMDownstreamCxHttp2Active                  api.GaugeIndex   = 19
	HCMDownstreamCxSslTotal                     api.CounterIndex = 20
	HCMDownstreamCxSslActive                    api.GaugeIndex   = 21
	HCMDownstreamCxDestroy                      api.CounterIndex = 22
	HCMDownstreamCxDestroyLocal                 api.CounterIndex = 23
	HCMDownstreamCxDestroyRemote                api.CounterIndex = 24
	HCMDownstreamCxDelayedCloseTimeout          api.CounterIndex = 25
	HCMDownstreamCxDestroyActiveRq              api.CounterIndex = 26
	HCMDownstreamCxDestroyLocalActiveRq         api.CounterIndex = 27
	HCMDownstreamCxDestroyRemoteActiveRq        api.CounterIndex = 28
	HCMDownstreamCxDrainClose                   api.CounterIndex = 29
	HCMDownstreamCxHttp1SoftDrain               api.GaugeIndex   = 30
	HCMDownstreamCxHttp3Active                  api.GaugeIndex   = 31
	HCMDownstreamCxHttp3Total                   api.CounterIndex = 32
	HCMDownstreamCxIdleTimeout                  api.CounterIndex = 33
	HCMDownstreamCxMaxDurationReached           api.CounterIndex = 34
	HCMDownstreamCxMaxRequestsReached           api.CounterIndex = 35
	HCMDownstreamCxOverloadDisableKeepalive     api.CounterIndex = 36
	HCMDownstreamCxProtocolError                api.CounterIndex = 37
	HCMDownstreamCxUpgradesActive               api.GaugeIndex   = 38
	HCMDownstreamCxUpgradesTotal                api.CounterIndex = 39
	HCMDownstreamFlowControlPausedReadingTotal  api.CounterIndex = 40
	HCMDownstreamFlowControlResumedReadingTotal api.CounterIndex = 41
	HCMDownstreamRqFailedPathNormalization      api.CounterIndex = 42
	HCMDownstreamRqHeaderTimeout                api.CounterIndex = 43
	HCMDownstreamRqHttp3Total                   api.CounterIndex = 44
	HCMDownstreamRqIdleTimeout                  api.CounterIndex = 45
	HCMDownstreamRqMaxDurationReached           api.CounterIndex = 46
	HCMDownstreamRqNonRelativePath              api.CounterIndex = 47
	HCMDownstreamRqOverloadClose                api.CounterIndex = 48
	HCMDownstreamRqRedirectedWithNormalizedPath api.CounterIndex = 49
	HCMDownstreamRqRejectedViaIpDetection       api.CounterIndex = 50
	HCMDownstreamRqResponseBeforeRqComplete     api.CounterIndex = 51
	HCMDownstreamRqRxReset                      api.CounterIndex = 52
	HCMDownstreamRqTimeout                      api.CounterIndex = 53
	HCMDownstreamRqTooLarge                     api.CounterIndex = 54
	HCMDownstreamRqTooManyPrematureResets       api.CounterIndex = 55
	HCMDownstreamRqTxReset                      api.CounterIndex = 56
	HCMDownstreamRqWsOnNonWsRoute               api.CounterIndex = 57
	HCMRsTooLarge                               api.CounterIndex = 58

	HCMDownstreamCxLengthMs api.HistogramIndex = 0
	HCMDownstreamRqTime     api.HistogramIndex = 1
	// Of record_route_resolution_stats.
	HCMDownstreamRqRouteResolutionTimeUs api.HistogramIndex = 2
	HCMDownstreamRqRouteResolutions      api.HistogramIndex = 3
)

// HCM is what every HTTP connection manager has, "http.<stat_prefix>.".
var HCM = api.MustTemplate("http connection manager",
	api.Counter(HCMDownstreamRqTotal, "downstream_rq_total"),
	api.Gauge(HCMDownstreamRqActive, "downstream_rq_active"),
	api.Counter(HCMDownstreamRqHttp1Total, "downstream_rq_http1_total"),
	api.Counter(HCMDownstreamRqHttp2Total, "downstream_rq_http2_total"),
	api.Counter(HCMDownstreamRqCompleted, "downstream_rq_completed"),
	api.Counter(HCMDownstreamRq1xx, "downstream_rq_1xx"),
	api.Counter(HCMDownstreamRq2xx, "downstream_rq_2xx"),
	api.Counter(HCMDownstreamRq3xx, "downstream_rq_3xx"),
	api.Counter(HCMDownstreamRq4xx, "downstream_rq_4xx"),
	api.Counter(HCMDownstreamRq5xx, "downstream_rq_5xx"),
	api.Counter(HCMDownstreamCxRxBytesTotal, "downstream_cx_rx_bytes_total"),
	api.Counter(HCMDownstreamCxTxBytesTotal, "downstream_cx_tx_bytes_total"),
	api.Gauge(HCMDownstreamCxRxBytesBuffered, "downstream_cx_rx_bytes_buffered"),
	api.Gauge(HCMDownstreamCxTxBytesBuffered, "downstream_cx_tx_bytes_buffered"),
	api.Counter(HCMDownstreamCxTotal, "downstream_cx_total"),
	api.Gauge(HCMDownstreamCxActive, "downstream_cx_active"),
	api.Counter(HCMDownstreamCxHttp1Total, "downstream_cx_http1_total"),
	api.Gauge(HCMDownstreamCxHttp1Active, "downstream_cx_http1_active"),
	api.Counter(HCMDownstreamCxHttp2Total, "downstream_cx_http2_total"),
	api.Gauge(HCMDownstreamCxHttp2Active, "downstream_cx_http2_active"),
	api.Counter(HCMDownstreamCxSslTotal, "downstream_cx_ssl_total"),
	api.Gauge(HCMDownstreamCxSslActive, "downstream_cx_ssl_active"),
	api.Counter(HCMDownstreamCxDestroy, "downstream_cx_destroy"),
	api.Counter(HCMDownstreamCxDestroyLocal, "downstream_cx_destroy_local"),
	api.Counter(HCMDownstreamCxDestroyRemote, "downstream_cx_destroy_remote"),
	api.Counter(HCMDownstreamCxDelayedCloseTimeout, "downstream_cx_delayed_close_timeout"),
	api.Counter(HCMDownstreamCxDestroyActiveRq, "downstream_cx_destroy_active_rq"),
	api.Counter(HCMDownstreamCxDestroyLocalActiveRq, "downstream_cx_destroy_local_active_rq"),
	api.Counter(HCMDownstreamCxDestroyRemoteActiveRq, "downstream_cx_destroy_remote_active_rq"),
	api.Counter(HCMDownstreamCxDrainClose, "downstream_cx_drain_close"),
	api.Gauge(HCMDownstreamCxHttp1SoftDrain, "downstream_cx_http1_soft_drain"),
	api.Gauge(HCMDownstreamCxHttp3Active, "downstream_cx_http3_active"),
	api.Counter(HCMDownstreamCxHttp3Total, "downstream_cx_http3_total"),
	api.Counter(HCMDownstreamCxIdleTimeout, "downstream_cx_idle_timeout"),
	api.Counter(HCMDownstreamCxMaxDurationReached, "downstream_cx_max_duration_reached"),
	api.Counter(HCMDownstreamCxMaxRequestsReached, "downstream_cx_max_requests_reached"),
	api.Counter(HCMDownstreamCxOverloadDisableKeepalive, "downstream_cx_overload_disable_keepalive"),
	api.Counter(HCMDownstreamCxProtocolError, "downstream_cx_protocol_error"),
	api.Gauge(HCMDownstreamCxUpgradesActive, "downstream_cx_upgrades_active"),
	api.Counter(HCMDownstreamCxUpgradesTotal, "downstream_cx_upgrades_total"),
	api.Counter(HCMDownstreamFlowControlPausedReadingTotal, "downstream_flow_control_paused_reading_total"),
	api.Counter(HCMDownstreamFlowControlResumedReadingTotal, "downstream_flow_control_resumed_reading_total"),
	api.Counter(HCMDownstreamRqFailedPathNormalization, "downstream_rq_failed_path_normalization"),
	api.Counter(HCMDownstreamRqHeaderTimeout, "downstream_rq_header_timeout"),
	api.Counter(HCMDownstreamRqHttp3Total, "downstream_rq_http3_total"),
	api.Counter(HCMDownstreamRqIdleTimeout, "downstream_rq_idle_timeout"),
	api.Counter(HCMDownstreamRqMaxDurationReached, "downstream_rq_max_duration_reached"),
	api.Counter(HCMDownstreamRqNonRelativePath, "downstream_rq_non_relative_path"),
	api.Counter(HCMDownstreamRqOverloadClose, "downstream_rq_overload_close"),
	api.Counter(HCMDownstreamRqRedirectedWithNormalizedPath, "downstream_rq_redirected_with_normalized_path"),
	api.Counter(HCMDownstreamRqRejectedViaIpDetection, "downstream_rq_rejected_via_ip_detection"),
	api.Counter(HCMDownstreamRqResponseBeforeRqComplete, "downstream_rq_response_before_rq_complete"),
	api.Counter(HCMDownstreamRqRxReset, "downstream_rq_rx_reset"),
	api.Counter(HCMDownstreamRqTimeout, "downstream_rq_timeout"),
	api.Counter(HCMDownstreamRqTooLarge, "downstream_rq_too_large"),
	api.Counter(HCMDownstreamRqTooManyPrematureResets, "downstream_rq_too_many_premature_resets"),
	api.Counter(HCMDownstreamRqTxReset, "downstream_rq_tx_reset"),
	api.Counter(HCMDownstreamRqWsOnNonWsRoute, "downstream_rq_ws_on_non_ws_route"),
	api.Counter(HCMRsTooLarge, "rs_too_large"),
	api.Histogram(HCMDownstreamCxLengthMs, "downstream_cx_length_ms", api.Milliseconds),
	api.Histogram(HCMDownstreamRqTime, "downstream_rq_time", api.Milliseconds),
	api.LazyHistogram(HCMDownstreamRqRouteResolutionTimeUs, "downstream_rq_route_resolution_time_us", api.Microseconds),
	api.LazyHistogram(HCMDownstreamRqRouteResolutions, "downstream_rq_route_resolutions", api.Unspecified),
)

// Indices of Router.
const (
	RouterRqTotal                                     api.CounterIndex = 0
	RouterNoCluster                                   api.CounterIndex = 1
	RouterNoRoute                                     api.CounterIndex = 2
	RouterPassthroughInternalRedirectBadLocation      api.CounterIndex = 3
	RouterPassthroughInternalRedirectNoRoute          api.CounterIndex = 4
	RouterPassthroughInternalRedirectPredicate        api.CounterIndex = 5
	RouterPassthroughInternalRedirectTooManyRedirects api.CounterIndex = 6
	RouterPassthroughInternalRedirectUnsafeScheme     api.CounterIndex = 7
	RouterRqDirectResponse                            api.CounterIndex = 8
	RouterRqOverloadLocalReply                        api.CounterIndex = 9
	RouterRqRedirect                                  api.CounterIndex = 10
	RouterRqResetAfterDownstreamResponseStarted       api.CounterIndex = 11
)

// Router is what the router filter counts, "http.<stat_prefix>."; the main loop's HTTP client has it under "http.async-client.".
var Router = api.MustTemplate("router",
	api.Counter(RouterRqTotal, "rq_total"),
	api.Counter(RouterNoCluster, "no_cluster"),
	api.Counter(RouterNoRoute, "no_route"),
	api.Counter(RouterPassthroughInternalRedirectBadLocation, "passthrough_internal_redirect_bad_location"),
	api.Counter(RouterPassthroughInternalRedirectNoRoute, "passthrough_internal_redirect_no_route"),
	api.Counter(RouterPassthroughInternalRedirectPredicate, "passthrough_internal_redirect_predicate"),
	api.Counter(RouterPassthroughInternalRedirectTooManyRedirects, "passthrough_internal_redirect_too_many_redirects"),
	api.Counter(RouterPassthroughInternalRedirectUnsafeScheme, "passthrough_internal_redirect_unsafe_scheme"),
	api.Counter(RouterRqDirectResponse, "rq_direct_response"),
	api.Counter(RouterRqOverloadLocalReply, "rq_overload_local_reply"),
	api.Counter(RouterRqRedirect, "rq_redirect"),
	api.Counter(RouterRqResetAfterDownstreamResponseStarted, "rq_reset_after_downstream_response_started"),
)

// Indices of Tracing.
const (
	TracingClientEnabled  api.CounterIndex = 0
	TracingHealthCheck    api.CounterIndex = 1
	TracingNotTraceable   api.CounterIndex = 2
	TracingRandomSampling api.CounterIndex = 3
	TracingServiceForced  api.CounterIndex = 4
)

// Tracing is counted by every connection manager but the admin's, "http.<stat_prefix>.tracing.".
var Tracing = api.MustTemplate("tracing",
	api.Counter(TracingClientEnabled, "client_enabled"),
	api.Counter(TracingHealthCheck, "health_check"),
	api.Counter(TracingNotTraceable, "not_traceable"),
	api.Counter(TracingRandomSampling, "random_sampling"),
	api.Counter(TracingServiceForced, "service_forced"),
)

// Indices of VirtualCluster.
const (
	VirtualClusterUpstreamRqRetry              api.CounterIndex = 0
	VirtualClusterUpstreamRqRetryLimitExceeded api.CounterIndex = 1
	VirtualClusterUpstreamRqRetryOverflow      api.CounterIndex = 2
	VirtualClusterUpstreamRqRetrySuccess       api.CounterIndex = 3
	VirtualClusterUpstreamRqTimeout            api.CounterIndex = 4
	VirtualClusterUpstreamRqTotal              api.CounterIndex = 5
	VirtualClusterUpstreamRqCompleted          api.CounterIndex = 6
	VirtualClusterUpstreamRqCodes              api.CodesIndex   = 7

	VirtualClusterUpstreamRqTime api.HistogramIndex = 0
)

// VirtualCluster is for a virtual cluster, "vhost.<vhost>.vcluster.<name>.", and for a route with a stat_prefix,
// "vhost.<vhost>.route.<stat_prefix>.".
var VirtualCluster = api.MustTemplate("virtual cluster",
	api.Counter(VirtualClusterUpstreamRqRetry, "upstream_rq_retry"),
	api.Counter(VirtualClusterUpstreamRqRetryLimitExceeded, "upstream_rq_retry_limit_exceeded"),
	api.Counter(VirtualClusterUpstreamRqRetryOverflow, "upstream_rq_retry_overflow"),
	api.Counter(VirtualClusterUpstreamRqRetrySuccess, "upstream_rq_retry_success"),
	api.Counter(VirtualClusterUpstreamRqTimeout, "upstream_rq_timeout"),
	api.Counter(VirtualClusterUpstreamRqTotal, "upstream_rq_total"),
	api.LazyCounter(VirtualClusterUpstreamRqCompleted, "upstream_rq_completed"),
	api.Codes(VirtualClusterUpstreamRqCodes, "upstream_rq_"),
	api.LazyHistogram(VirtualClusterUpstreamRqTime, "upstream_rq_time", api.Milliseconds),
)
