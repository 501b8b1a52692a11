//go:build peers

package peer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// diffManagers are the connection managers that the streams are written to, by listener: what is on by default, and all that changes what
// is let in and what is forwarded.
var diffManagers = map[string]string{
	"default": "",
	"edge":    "use_remote_address: true, via: us, normalize_path: true, merge_slashes: true, http_protocol_options: {enable_trailers: true}",
	"lenient": `http_protocol_options: {accept_http_10: true, default_host_for_http_10: old, allow_chunked_length: true, enable_trailers: true, allow_custom_methods: true,
 header_key_format: {proper_case_words: {}}}, strip_any_host_port: true, append_x_forwarded_port: true, upgrade_configs: [{upgrade_type: websocket}, {upgrade_type: CONNECT}]`,
	"strict": `common_http_protocol_options: {headers_with_underscores_action: REJECT_REQUEST, max_headers_count: 10}, max_request_headers_kb: 1,
 path_with_escaped_slashes_action: REJECT_REQUEST, normalize_path: true, strip_trailing_host_dot: true`,
	"odd": `common_http_protocol_options: {headers_with_underscores_action: DROP_HEADER}, path_with_escaped_slashes_action: UNESCAPE_AND_FORWARD, normalize_path: true,
 http_protocol_options: {override_stream_error_on_invalid_http_message: true, ignore_http_11_upgrade: [{exact: ignored}], header_key_format: {stateful_formatter: {name: p,
 typed_config: {"@type": type.googleapis.com/envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig}}}},
 proxy_100_continue: true, preserve_external_request_id: true, always_set_request_id_in_response: true, skip_xff_append: true`,
}

func diffListeners() []string { return slices.Sorted(maps.Keys(diffManagers)) }

// diffBootstrap is the same for both proxies, but for the upstream and the log. All but one listener tell in the bodies of their local replies why.
func diffBootstrap(upstream, log string) string {
	c := new(config).cluster("up", upstream)
	for _, name := range diffListeners() {
		more := diffManagers[name]
		if name != "default" {
			more += `, local_reply_config: {body_format: {text_format_source: {inline_string: "details %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %PROTOCOL%\r\n"}}}`
		}
		more = strings.TrimPrefix(strings.ReplaceAll(more, "\n", ""), ", ")
		if more != "" {
			more = ", " + more
		}
		fmt.Fprintf(&c.listeners, `
  - name: %s
    address: %s
    filter_chains:
    - filters:
      - name: hcm
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: %[1]s,
          access_log: [{name: file, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: %[4]s,
            log_format: {text_format_source: {inline_string: %[5]s}}}}],
          route_config: {name: r, request_headers_to_add: [{header: {key: x-tag, value: "%%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%%"},
            append_action: OVERWRITE_IF_EXISTS_OR_ADD}],
            virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {connect_matcher: {}}, route: {cluster: up1}}, {match: {prefix: /}, route: {cluster: up1}}]}]},
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]%[3]s}`,
			name, socketAddress("127.0.0.1:0"), more, quote(log), strings.ReplaceAll(quote(logFormat), `\\n`, `\n`))
	}
	return c.String()
}
