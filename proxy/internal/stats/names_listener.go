package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of Listener.
const (
	ListenerDownstreamCxTotal                         api.CounterIndex = 0
	ListenerDownstreamCxActive                        api.GaugeIndex   = 1
	ListenerDownstreamCxDestroy                       api.CounterIndex = 2
	ListenerDownstreamCxOverflow                      api.CounterIndex = 3
	ListenerDownstreamCxOverloadReject                api.CounterIndex = 4
	ListenerDownstreamCxTransportSocketConnectTimeout api.CounterIndex = 5
	ListenerDownstreamGlobalCxOverflow                api.CounterIndex = 6
	ListenerDownstreamListenerFilterError             api.CounterIndex = 7
	ListenerDownstreamListenerFilterRemoteClose       api.CounterIndex = 8
	ListenerDownstreamPreCxActive                     api.GaugeIndex   = 9
	ListenerDownstreamPreCxTimeout                    api.CounterIndex = 10
	ListenerNoFilterChainMatch                        api.CounterIndex = 11

	ListenerConnectionsAcceptedPerSocketEvent api.HistogramIndex = 0
	ListenerDownstreamCxLengthMs              api.HistogramIndex = 1
)

// Listener is what every listener has, "listener.<address>.", the admin's too.
var Listener = api.MustTemplate("listener",
	api.Counter(ListenerDownstreamCxTotal, "downstream_cx_total"),
	api.Gauge(ListenerDownstreamCxActive, "downstream_cx_active"),
	api.Counter(ListenerDownstreamCxDestroy, "downstream_cx_destroy"),
	api.Counter(ListenerDownstreamCxOverflow, "downstream_cx_overflow"),
	api.Counter(ListenerDownstreamCxOverloadReject, "downstream_cx_overload_reject"),
	api.Counter(ListenerDownstreamCxTransportSocketConnectTimeout, "downstream_cx_transport_socket_connect_timeout"),
	api.Counter(ListenerDownstreamGlobalCxOverflow, "downstream_global_cx_overflow"),
	api.Counter(ListenerDownstreamListenerFilterError, "downstream_listener_filter_error"),
	api.Counter(ListenerDownstreamListenerFilterRemoteClose, "downstream_listener_filter_remote_close"),
	api.Gauge(ListenerDownstreamPreCxActive, "downstream_pre_cx_active"),
	api.Counter(ListenerDownstreamPreCxTimeout, "downstream_pre_cx_timeout"),
	api.Counter(ListenerNoFilterChainMatch, "no_filter_chain_match"),
	api.Histogram(ListenerConnectionsAcceptedPerSocketEvent, "connections_accepted_per_socket_event", api.Unspecified),
	api.Histogram(ListenerDownstreamCxLengthMs, "downstream_cx_length_ms", api.Milliseconds),
)

// Indices of ListenerConfig.
const (
	ListenerConfigExtensionConfigMissing        api.CounterIndex = 0
	ListenerConfigNetworkExtensionConfigMissing api.CounterIndex = 1
)

// ListenerConfig is what a configured listener has beside Listener.
var ListenerConfig = api.MustTemplate("listener config",
	api.Counter(ListenerConfigExtensionConfigMissing, "extension_config_missing"),
	api.Counter(ListenerConfigNetworkExtensionConfigMissing, "network_extension_config_missing"),
)

// Indices of ListenerWorker.
const (
	ListenerWorkerDownstreamCxActive api.GaugeIndex   = 0
	ListenerWorkerDownstreamCxTotal  api.CounterIndex = 1
)

// ListenerWorker is counted for each worker of a listener, "listener.<address>.worker_<n>."; the admin listener has it under
// "listener.admin.main_thread.".
var ListenerWorker = api.MustTemplate("listener worker",
	api.Gauge(ListenerWorkerDownstreamCxActive, "downstream_cx_active"),
	api.Counter(ListenerWorkerDownstreamCxTotal, "downstream_cx_total"),
)

// Indices of ListenerHTTP.
const (
	ListenerHTTPDownstreamRq1xx       api.CounterIndex = 0
	ListenerHTTPDownstreamRq2xx       api.CounterIndex = 1
	ListenerHTTPDownstreamRq3xx       api.CounterIndex = 2
	ListenerHTTPDownstreamRq4xx       api.CounterIndex = 3
	ListenerHTTPDownstreamRq5xx       api.CounterIndex = 4
	ListenerHTTPDownstreamRqCompleted api.CounterIndex = 5
)

// ListenerHTTP is what a connection manager counts for its listener, "listener.<address>.http.<stat_prefix>.".
var ListenerHTTP = api.MustTemplate("listener http",
	api.Counter(ListenerHTTPDownstreamRq1xx, "downstream_rq_1xx"),
	api.Counter(ListenerHTTPDownstreamRq2xx, "downstream_rq_2xx"),
	api.Counter(ListenerHTTPDownstreamRq3xx, "downstream_rq_3xx"),
	api.Counter(ListenerHTTPDownstreamRq4xx, "downstream_rq_4xx"),
	api.Counter(ListenerHTTPDownstreamRq5xx, "downstream_rq_5xx"),
	api.Counter(ListenerHTTPDownstreamRqCompleted, "downstream_rq_completed"),
)

// Indices of ListenerManager.
const (
	ListenerManagerListenerAdded             api.CounterIndex = 0
	ListenerManagerListenerCreateFailure     api.CounterIndex = 1
	ListenerManagerListenerCreateSuccess     api.CounterIndex = 2
	ListenerManagerListenerInPlaceUpdated    api.CounterIndex = 3
	ListenerManagerListenerModified          api.CounterIndex = 4
	ListenerManagerListenerRemoved           api.CounterIndex = 5
	ListenerManagerListenerStopped           api.CounterIndex = 6
	ListenerManagerTotalFilterChainsDraining api.GaugeIndex   = 7
	ListenerManagerTotalListenersActive      api.GaugeIndex   = 8
	ListenerManagerTotalListenersDraining    api.GaugeIndex   = 9
	ListenerManagerTotalListenersWarming     api.GaugeIndex   = 10
	ListenerManagerWorkersPinned             api.GaugeIndex   = 11
	ListenerManagerWorkersStarted            api.GaugeIndex   = 12
)

// ListenerManager is "listener_manager.".
var ListenerManager = api.MustTemplate("listener manager",
	api.Counter(ListenerManagerListenerAdded, "listener_added"),
	api.Counter(ListenerManagerListenerCreateFailure, "listener_create_failure"),
	api.Counter(ListenerManagerListenerCreateSuccess, "listener_create_success"),
	api.Counter(ListenerManagerListenerInPlaceUpdated, "listener_in_place_updated"),
	api.Counter(ListenerManagerListenerModified, "listener_modified"),
	api.Counter(ListenerManagerListenerRemoved, "listener_removed"),
	api.Counter(ListenerManagerListenerStopped, "listener_stopped"),
	api.Gauge(ListenerManagerTotalFilterChainsDraining, "total_filter_chains_draining"),
	api.Gauge(ListenerManagerTotalListenersActive, "total_listeners_active"),
	api.Gauge(ListenerManagerTotalListenersDraining, "total_listeners_draining"),
	api.Gauge(ListenerManagerTotalListenersWarming, "total_listeners_warming"),
	api.Gauge(ListenerManagerWorkersPinned, "workers_pinned"),
	api.Gauge(ListenerManagerWorkersStarted, "workers_started"),
)

// Indices of TLSInspector.
const (
	TLSInspectorAlpnFound           api.CounterIndex = 0
	TLSInspectorAlpnNotFound        api.CounterIndex = 1
	TLSInspectorClientHelloTooLarge api.CounterIndex = 2
	TLSInspectorSniFound            api.CounterIndex = 3
	TLSInspectorSniNotFound         api.CounterIndex = 4
	TLSInspectorTlsFound            api.CounterIndex = 5
	TLSInspectorTlsNotFound         api.CounterIndex = 6

	TLSInspectorBytesProcessed api.HistogramIndex = 0
)

// TLSInspector is "tls_inspector.".
var TLSInspector = api.MustTemplate("tls inspector",
	api.Counter(TLSInspectorAlpnFound, "alpn_found"),
	api.Counter(TLSInspectorAlpnNotFound, "alpn_not_found"),
	api.Counter(TLSInspectorClientHelloTooLarge, "client_hello_too_large"),
	api.Counter(TLSInspectorSniFound, "sni_found"),
	api.Counter(TLSInspectorSniNotFound, "sni_not_found"),
	api.Counter(TLSInspectorTlsFound, "tls_found"),
	api.Counter(TLSInspectorTlsNotFound, "tls_not_found"),
	api.Histogram(TLSInspectorBytesProcessed, "bytes_processed", api.Bytes),
)
