package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of TCP.
const (
	TCPDownstreamCxTotal                        api.CounterIndex = 0
	TCPDownstreamCxRxBytesTotal                 api.CounterIndex = 1
	TCPDownstreamCxTxBytesTotal                 api.CounterIndex = 2
	TCPDownstreamCxRxBytesBuffered              api.GaugeIndex   = 3
	TCPDownstreamCxTxBytesBuffered              api.GaugeIndex   = 4
	TCPDownstreamCxDrainClose                   api.CounterIndex = 5
	TCPDownstreamCxNoRoute                      api.CounterIndex = 6
	TCPDownstreamCxOverloadClose                api.CounterIndex = 7
	TCPDownstreamFlowControlPausedReadingTotal  api.CounterIndex = 8
	TCPDownstreamFlowControlResumedReadingTotal api.CounterIndex = 9
	TCPEarlyDataReceivedCountTotal              api.CounterIndex = 10
	TCPIdleTimeout                              api.CounterIndex = 11
	TCPMaxDownstreamConnectionDuration          api.CounterIndex = 12
	TCPRouteDelayedTotal                        api.CounterIndex = 13
	TCPUpstreamFlushActive                      api.GaugeIndex   = 14
	TCPUpstreamFlushTotal                       api.CounterIndex = 15
)

// TCP is what a TCP proxy has, "tcp.<stat_prefix>.".
var TCP = api.MustTemplate("tcp proxy",
	api.Counter(TCPDownstreamCxTotal, "downstream_cx_total"),
	api.Counter(TCPDownstreamCxRxBytesTotal, "downstream_cx_rx_bytes_total"),
	api.Counter(TCPDownstreamCxTxBytesTotal, "downstream_cx_tx_bytes_total"),
	api.Gauge(TCPDownstreamCxRxBytesBuffered, "downstream_cx_rx_bytes_buffered"),
	api.Gauge(TCPDownstreamCxTxBytesBuffered, "downstream_cx_tx_bytes_buffered"),
	api.Counter(TCPDownstreamCxDrainClose, "downstream_cx_drain_close"),
	api.Counter(TCPDownstreamCxNoRoute, "downstream_cx_no_route"),
	api.Counter(TCPDownstreamCxOverloadClose, "downstream_cx_overload_close"),
	api.Counter(TCPDownstreamFlowControlPausedReadingTotal, "downstream_flow_control_paused_reading_total"),
	api.Counter(TCPDownstreamFlowControlResumedReadingTotal, "downstream_flow_control_resumed_reading_total"),
	api.Counter(TCPEarlyDataReceivedCountTotal, "early_data_received_count_total"),
	api.Counter(TCPIdleTimeout, "idle_timeout"),
	api.Counter(TCPMaxDownstreamConnectionDuration, "max_downstream_connection_duration"),
	api.Counter(TCPRouteDelayedTotal, "route_delayed_total"),
	api.Gauge(TCPUpstreamFlushActive, "upstream_flush_active"),
	api.Counter(TCPUpstreamFlushTotal, "upstream_flush_total"),
)
