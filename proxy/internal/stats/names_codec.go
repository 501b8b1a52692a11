package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of HTTP1.
const (
	HTTP1InUse                                    api.CounterIndex = 0
	HTTP1DroppedHeadersWithUnderscores            api.CounterIndex = 1
	HTTP1MetadataNotSupportedError                api.CounterIndex = 2
	HTTP1RequestsRejectedWithUnderscoresInHeaders api.CounterIndex = 3
	HTTP1ResponseFlood                            api.CounterIndex = 4
)

// HTTP1 holds the stats of the HTTP/1 codec, "http1.": at the root for downstream connections, in a block of Cluster for upstream
// ones. They show once HTTP1InUse was counted, which a codec does when it is made.
var HTTP1 = api.MustTemplate("http1",
	api.Marker(HTTP1InUse),
	api.Counter(HTTP1DroppedHeadersWithUnderscores, "dropped_headers_with_underscores"),
	api.Counter(HTTP1MetadataNotSupportedError, "metadata_not_supported_error"),
	api.Counter(HTTP1RequestsRejectedWithUnderscoresInHeaders, "requests_rejected_with_underscores_in_headers"),
	api.Counter(HTTP1ResponseFlood, "response_flood"),
)

// Indices of HTTP2.
const (
	HTTP2InUse                                    api.CounterIndex = 0
	HTTP2StreamsActive                            api.GaugeIndex   = 1
	HTTP2OutboundFramesActive                     api.GaugeIndex   = 2
	HTTP2OutboundControlFramesActive              api.GaugeIndex   = 3
	HTTP2PendingSendBytes                         api.GaugeIndex   = 4
	HTTP2DeferredStreamClose                      api.GaugeIndex   = 5
	HTTP2CookiesTotalBytesTooLarge                api.CounterIndex = 6
	HTTP2DroppedHeadersWithUnderscores            api.CounterIndex = 7
	HTTP2GoawaySent                               api.CounterIndex = 8
	HTTP2HeaderListSizeTooLarge                   api.CounterIndex = 9
	HTTP2HeaderOverflow                           api.CounterIndex = 10
	HTTP2HeadersCbNoStream                        api.CounterIndex = 11
	HTTP2InboundEmptyFramesFlood                  api.CounterIndex = 12
	HTTP2InboundPriorityFramesFlood               api.CounterIndex = 13
	HTTP2InboundWindowUpdateFramesFlood           api.CounterIndex = 14
	HTTP2KeepaliveTimeout                         api.CounterIndex = 15
	HTTP2MetadataEmptyFrames                      api.CounterIndex = 16
	HTTP2Nghttp2DownstreamConnections             api.CounterIndex = 17
	HTTP2Nghttp2UpstreamConnections               api.CounterIndex = 18
	HTTP2Oghttp2DownstreamConnections             api.CounterIndex = 19
	HTTP2Oghttp2UpstreamConnections               api.CounterIndex = 20
	HTTP2OutboundControlFlood                     api.CounterIndex = 21
	HTTP2OutboundFlood                            api.CounterIndex = 22
	HTTP2RequestsRejectedWithUnderscoresInHeaders api.CounterIndex = 23
	HTTP2RxMessagingError                         api.CounterIndex = 24
	HTTP2RxReset                                  api.CounterIndex = 25
	HTTP2StreamRefusedErrors                      api.CounterIndex = 26
	HTTP2Trailers                                 api.CounterIndex = 27
	HTTP2TxFlushTimeout                           api.CounterIndex = 28
	HTTP2TxReset                                  api.CounterIndex = 29

	HTTP2CookieCount    api.HistogramIndex = 0
	HTTP2CookieSize     api.HistogramIndex = 1
	HTTP2HeaderCount    api.HistogramIndex = 2
	HTTP2HeaderListSize api.HistogramIndex = 3
)

// HTTP2 holds the stats of the HTTP/2 codec, "http2."; see HTTP1.
var HTTP2 = api.MustTemplate("http2",
	api.Marker(HTTP2InUse),
	api.Gauge(HTTP2StreamsActive, "streams_active"),
	api.Gauge(HTTP2OutboundFramesActive, "outbound_frames_active"),
	api.Gauge(HTTP2OutboundControlFramesActive, "outbound_control_frames_active"),
	api.Gauge(HTTP2PendingSendBytes, "pending_send_bytes"),
	api.Gauge(HTTP2DeferredStreamClose, "deferred_stream_close"),
	api.Counter(HTTP2CookiesTotalBytesTooLarge, "cookies_total_bytes_too_large"),
	api.Counter(HTTP2DroppedHeadersWithUnderscores, "dropped_headers_with_underscores"),
	api.Counter(HTTP2GoawaySent, "goaway_sent"),
	api.Counter(HTTP2HeaderListSizeTooLarge, "header_list_size_too_large"),
	api.Counter(HTTP2HeaderOverflow, "header_overflow"),
	api.Counter(HTTP2HeadersCbNoStream, "headers_cb_no_stream"),
	api.Counter(HTTP2InboundEmptyFramesFlood, "inbound_empty_frames_flood"),
	api.Counter(HTTP2InboundPriorityFramesFlood, "inbound_priority_frames_flood"),
	api.Counter(HTTP2InboundWindowUpdateFramesFlood, "inbound_window_update_frames_flood"),
	api.Counter(HTTP2KeepaliveTimeout, "keepalive_timeout"),
	api.Counter(HTTP2MetadataEmptyFrames, "metadata_empty_frames"),
	api.Counter(HTTP2Nghttp2DownstreamConnections, "nghttp2_downstream_connections"),
	api.Counter(HTTP2Nghttp2UpstreamConnections, "nghttp2_upstream_connections"),
	api.Counter(HTTP2Oghttp2DownstreamConnections, "oghttp2_downstream_connections"),
	api.Counter(HTTP2Oghttp2UpstreamConnections, "oghttp2_upstream_connections"),
	api.Counter(HTTP2OutboundControlFlood, "outbound_control_flood"),
	api.Counter(HTTP2OutboundFlood, "outbound_flood"),
	api.Counter(HTTP2RequestsRejectedWithUnderscoresInHeaders, "requests_rejected_with_underscores_in_headers"),
	api.Counter(HTTP2RxMessagingError, "rx_messaging_error"),
	api.Counter(HTTP2RxReset, "rx_reset"),
	api.Counter(HTTP2StreamRefusedErrors, "stream_refused_errors"),
	api.Counter(HTTP2Trailers, "trailers"),
	api.Counter(HTTP2TxFlushTimeout, "tx_flush_timeout"),
	api.Counter(HTTP2TxReset, "tx_reset"),
	api.Histogram(HTTP2CookieCount, "cookie_count", api.Unspecified),
	api.Histogram(HTTP2CookieSize, "cookie_size", api.Bytes),
	api.Histogram(HTTP2HeaderCount, "header_count", api.Unspecified),
	api.Histogram(HTTP2HeaderListSize, "header_list_size", api.Bytes),
)
