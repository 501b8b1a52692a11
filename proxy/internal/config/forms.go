package config

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// This file writes messages from what people write in one piece.

// pairs write messages from a key and a value.
var pairs = map[string]func(key, value string) string{
	"envoy.config.core.v3.HeaderValue":            func(k, v string) string { return headerForm(k + ":" + v) },
	"envoy.config.core.v3.HeaderValueOption":      func(k, v string) string { return "{header: " + headerForm(k+":"+v) + "}" },
	"envoy.config.route.v3.HeaderMatcher":         exactForm,
	"envoy.config.route.v3.QueryParameterMatcher": exactForm,
	"envoy.config.metrics.v3.TagSpecifier": func(k, v string) string {
		return "{tag_name: " + scalarText(k) + ", fixed_value: " + scalarText(v) + "}"
	},
}

func exactForm(k, v string) string {
	return "{name: " + scalarText(k) + ", string_match: {exact: " + scalarText(v) + "}}"
}

// forms write the message of a name as a map, from what people write in one piece; "" if that says nothing.
var forms = map[string]func(text string) string{
	"envoy.config.core.v3.CidrRange":                      rangeForm,
	"xds.core.v3.CidrRange":                               rangeForm,
	"envoy.config.core.v3.Address":                        addressForm,
	"envoy.config.core.v3.SocketAddress":                  socketForm,
	"envoy.config.accesslog.v3.AccessLog":                 logForm,
	"envoy.config.core.v3.HealthCheck.HttpHealthCheck":    field1("path"),
	"envoy.config.route.v3.RouteAction.HashPolicy.Header": field1("header_name"),
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.UpgradeConfig": field1("upgrade_type"),
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter":                          filterForm,
	"envoy.config.listener.v3.Filter":                           filterForm,
	"envoy.config.listener.v3.ListenerFilter":                   filterForm,
	"envoy.config.core.v3.Locality":                             field1("region"),
	"envoy.config.core.v3.Pipe":                                 field1("path"),
	"envoy.config.endpoint.v3.Endpoint":                         inside("address", addressForm),
	"envoy.config.endpoint.v3.LbEndpoint":                       inside("endpoint", inside("address", addressForm)),
	"envoy.config.core.v3.DataSource":                           sourceForm,
	"envoy.config.core.v3.SubstitutionFormatString":             inside("text_format_source", field1("inline_string")),
	"envoy.config.core.v3.HeaderValue":                          headerForm,
	"envoy.config.core.v3.HeaderValueOption":                    inside("header", headerForm),
	"envoy.config.core.v3.ConfigSource":                         configSourceForm,
	"envoy.config.core.v3.Node":                                 field1("id"),
	"envoy.config.core.v3.RuntimeFeatureFlag":                   field1("default_value"),
	"envoy.config.core.v3.RuntimeFractionalPercent":             inside("default_value", percentForm("numerator")),
	"envoy.config.core.v3.RuntimeUInt32":                        numberForm("default_value"),
	"envoy.config.core.v3.RuntimeDouble":                        numberForm("default_value"),
	"envoy.config.core.v3.RuntimePercent":                       inside("default_value", percentForm("value")),
	"envoy.config.route.v3.RouteMatch":                          pathForm,
	"envoy.config.route.v3.RouteAction":                         field1("cluster"),
	"envoy.config.route.v3.RetryPolicy":                         field1("retry_on"),
	"envoy.config.route.v3.HeaderMatcher":                       matcherForm,
	"envoy.config.route.v3.QueryParameterMatcher":               matcherForm,
	"envoy.config.route.v3.RedirectAction":                      redirectForm,
	"envoy.config.route.v3.RouteAction.RequestMirrorPolicy":     field1("cluster"),
	"envoy.config.route.v3.RouteAction.HashPolicy.Cookie":       field1("name"),
	"envoy.config.core.v3.HealthCheck.Payload":                  payloadForm,
	"envoy.config.trace.v3.Tracing.Http":                        filterForm,
	"envoy.config.listener.v3.FilterChainMatch":                 matchForm,
	"envoy.config.endpoint.v3.LocalityLbEndpoints":              listed("lb_endpoints", inside("endpoint", inside("address", addressForm))),
	"envoy.config.bootstrap.v3.Admin":                           inside("address", addressForm),
	"envoy.config.core.v3.PathConfigSource":                     field1("path"),
	"envoy.config.cluster.v3.LoadBalancingPolicy":               balancerForm,
	"envoy.config.route.v3.RouteAction.MaxStreamDuration":       durationForm("max_stream_duration"),
	"envoy.config.route.v3.Decorator":                           field1("operation"),
	"envoy.type.v3.Int64Range":                                  rangeOfOne,
	"envoy.extensions.filters.common.fault.v3.FaultDelay":       durationForm("fixed_delay"),
	"envoy.config.route.v3.DirectResponseAction":                responseForm,
	"envoy.config.core.v3.GrpcService.EnvoyGrpc":                field1("cluster_name"),
	"envoy.config.core.v3.TransportSocket":                      field1("name"),
	"envoy.type.v3.Percent":                                     percentForm("value"),
	"envoy.type.v3.FractionalPercent":                           percentForm("numerator"),
	"envoy.type.matcher.v3.StringMatcher":                       field1("exact"),
	"envoy.type.matcher.v3.RegexMatcher":                        field1("regex"),
	"envoy.type.matcher.v3.PathMatcher":                         inside("path", field1("exact")),
	"envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig": field1("name"),
}

// inside writes the map of one field whose value is a map.
func inside(field string, form func(string) string) func(string) string {
	return func(text string) string {
		if s := form(text); s != "" {
			return "{" + field + ": " + s + "}"
		}
		return ""
	}
}

// field1 writes the map of one field.
func field1(field string) func(string) string {
	return func(text string) string { return "{" + field + ": " + scalarText(text) + "}" }
}

// scalarText writes text as one value of YAML's flow style.
func scalarText(text string) string {
	if only(text, "/_.+-") && text[0] != '-' {
		return text
	}
	return strconv.Quote(text)
}

// rangeForm: 10.0.0.0/8.
func rangeForm(text string) string {
	p, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return ""
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	return "{address_prefix: " + scalarText(p.Addr().String()) + ", prefix_len: " + strconv.Itoa(p.Bits()) + "}"
}

// addressForm: 127.0.0.1:80, example.com:80, :80, /run/a.sock, unix:/run/a.sock.
func addressForm(text string) string {
	if path, ok := strings.CutPrefix(strings.TrimPrefix(text, "unix:"), "/"); ok {
		return "{pipe: {path: " + scalarText("/"+strings.TrimLeft(path, "/")) + "}}"
	}
	return inside("socket_address", socketForm)(text)
}

func socketForm(text string) string {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = strings.TrimRight(rest, "/")
	}
	host, port := text, "..."
	if i := strings.LastIndexByte(text, ':'); i >= 0 && strings.Trim(text[i+1:], "0123456789") == "" && (strings.Count(text, ":") == 1 || text[i-1] == ']') {
		host, port = text[:i], text[i+1:]
	}
	if strings.Trim(text, "0123456789") == "" {
		host, port = "", text
	}
	if host = strings.Trim(host, "[]"); host == "" || host == "*" {
		host = "0.0.0.0"
	}
	return "{address: " + scalarText(host) + ", port_value: " + port + "}"
}

// sourceForm: a file, or the text itself.
func sourceForm(text string) string {
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") {
		return "{filename: " + scalarText(text) + "}"
	}
	return "{inline_string: " + scalarText(text) + "}"
}

// headerForm: name: value.
func headerForm(text string) string {
	key, value, ok := strings.Cut(text, ":")
	if !ok {
		key, value, ok = strings.Cut(text, "=")
	}
	if !ok {
		return "{key: " + scalarText(text) + ", value: ...}"
	}
	return "{key: " + scalarText(strings.TrimSpace(key)) + ", value: " + scalarText(strings.TrimSpace(value)) + "}"
}

// filterForm: the name of a filter.
func filterForm(text string) string {
	return "{name: " + scalarText(text) + `, typed_config: {"@type": ...}}`
}

// logForm: the file of an access log.
func logForm(text string) string {
	if !strings.HasPrefix(text, "/") {
		return filterForm(text)
	}
	return `{name: envoy.access_loggers.file, typed_config: {"@type": ` + typePrefix + "envoy.extensions.access_loggers.file.v3.FileAccessLog, path: " + scalarText(text) + "}}"
}

// configSourceForm: ads, or a file.
func configSourceForm(text string) string {
	switch {
	case strings.EqualFold(text, "ads"):
		return "{ads: {}}"
	case strings.ContainsAny(text, "/."):
		return "{path_config_source: {path: " + scalarText(text) + "}}"
	}
	return ""
}

// pathForm: the path of a route.
func pathForm(text string) string {
	if !strings.HasPrefix(text, "/") {
		return ""
	}
	return "{prefix: " + scalarText(text) + "}"
}

// percentForm: 50 or 50%.
func percentForm(field string) func(string) string {
	return func(text string) string { return numberForm(field)(strings.TrimSuffix(text, "%")) }
}

func numberForm(field string) func(string) string {
	return func(text string) string {
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return ""
		}
		return "{" + field + ": " + text + "}"
	}
}

// listed writes the map of one field whose value is a list of one.
func listed(field string, form func(string) string) func(string) string {
	return func(text string) string {
		if s := form(text); s != "" {
			return "{" + field + ": [" + s + "]}"
		}
		return ""
	}
}

// matcherForm: x-a: b, or the name alone.
func matcherForm(text string) string {
	for _, sep := range []string{":", "="} {
		if key, value, ok := strings.Cut(text, sep); ok && key != "" && value != "" {
			return exactForm(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
	return "{name: " + scalarText(text) + ", present_match: true}"
}

// redirectForm: https://example.com/path, a path, or a host.
func redirectForm(text string) string {
	if strings.HasPrefix(text, "/") {
		return "{path_redirect: " + scalarText(text) + "}"
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	}
	host, path, _ := strings.Cut(rest, "/")
	host, port, _ := strings.Cut(host, ":")
	if !only(host, ".-") || port != "" && strings.Trim(port, "0123456789") != "" {
		return ""
	}
	out := "{host_redirect: " + scalarText(host)
	if scheme != "" {
		out = "{scheme_redirect: " + scalarText(scheme) + ", host_redirect: " + scalarText(host)
	}
	if port != "" {
		out += ", port_redirect: " + port
	}
	if path != "" {
		out += ", path_redirect: " + scalarText("/"+path)
	}
	return out + "}"
}

// responseForm: the status, or the text of the response.
func responseForm(text string) string {
	if s := numberForm("status")(text); s != "" {
		return s
	}
	return "{status: 200, body: {inline_string: " + scalarText(text) + "}}"
}

// payloadForm: the text, of which the hexadecimal digits are wanted.
func payloadForm(text string) string {
	if text == "" {
		return ""
	}
	return "{text: \"" + hex.EncodeToString([]byte(text)) + "\"}"
}

// matchForm: the name of a server, or a range.
func matchForm(text string) string {
	if r := rangeForm(text); r != "" {
		return "{prefix_ranges: [" + r + "]}"
	}
	if only(text, ".-*") {
		return "{server_names: [" + scalarText(text) + "]}"
	}
	return ""
}

// rangeOfOne: 200, or 200-299. The end is not in it.
func rangeOfOne(text string) string {
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		last = first
	}
	n, err := strconv.ParseUint(strings.TrimSpace(last), 10, 31)
	if _, bad := strconv.ParseUint(strings.TrimSpace(first), 10, 31); err != nil || bad != nil {
		return ""
	}
	return "{start: " + strings.TrimSpace(first) + ", end: " + strconv.FormatUint(n+1, 10) + "}"
}

// durationForm: 5 or 5s.
func durationForm(field string) func(string) string {
	return func(text string) string {
		if d := meantDuration(text); d != "" {
			return "{" + field + ": " + d + "}"
		}
		return ""
	}
}

// balancerForm: ROUND_ROBIN, which is a value of another field.
func balancerForm(text string) string {
	if only(text, "_") {
		return "lb_policy: " + strings.ToUpper(text)
	}
	return ""
}
