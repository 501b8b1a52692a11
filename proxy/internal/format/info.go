package format

import (
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
)

var (
	local        = connAddress(func(n *network.ConnInfo) network.Address { return n.Local })
	peer         = connAddress(func(n *network.ConnInfo) network.Address { return n.Remote })
	directLocal  = connAddress(func(n *network.ConnInfo) network.Address { return n.DirectLocal() })
	directRemote = connAddress(func(n *network.ConnInfo) network.Address { return n.DirectRemote() })
)

// remote is the client: the peer, or whom a trusted peer names.
func remote(c *Context) network.Address {
	if c.Info.Remote.Valid() {
		return c.Info.Remote
	}
	return peer(c)
}

func upstreamHost(c *Context) network.Address  { return c.Info.Upstream.Host }
func upstreamLocal(c *Context) network.Address { return c.Info.Upstream.Local }

// upstreamRemote is known only of an attempt that got a connection.
func upstreamRemote(c *Context) (a network.Address) {
	if n := c.Info.Upstream.Conn; n != nil {
		return n.Remote
	}
	if c.Info.Upstream.Local.Valid() {
		return c.Info.Upstream.Host
	}
	return a
}

// infoCommands are the facts of a stream.Info that need no more than printing.
var infoCommands = map[string]command{
	"ACCESS_LOG_TYPE":       mayBeEmpty(func(c *Context) string { return c.Type.String() }),
	"PROTOCOL":              text(func(c *Context) string { return c.Info.Protocol.String() }),
	"RESPONSE_CODE":         count(func(c *Context) uint64 { return uint64(c.Info.Code) }),
	"RESPONSE_CODE_DETAILS": {params, buildDetails},
	"CONNECTION_TERMINATION_DETAILS": text(func(c *Context) string {
		return c.Info.TerminationDetails
	}),
	"RESPONSE_FLAGS": {bare, op(func(dst []byte, c *Context) ([]byte, bool) {
		return c.Info.Flags.AppendShort(dst), true
	})},
	"RESPONSE_FLAGS_LONG": {bare, op(func(dst []byte, c *Context) ([]byte, bool) {
		return c.Info.Flags.AppendLong(dst), true
	})},
	"CUSTOM_FLAGS":     mayBeEmpty(func(*Context) string { return "" }),
	"ROUTE_NAME":       text(func(c *Context) string { return c.Info.RouteName }),
	"LOCAL_REPLY_BODY": mayBeEmpty(func(c *Context) string { return c.Info.LocalReplyBody }),
	"TRACE_ID":         text(func(c *Context) string { return c.Info.TraceID }),
	"SPAN_ID":          text(func(c *Context) string { return c.Info.SpanID }),
	"STREAM_ID":        text(streamID),
	"UNIQUE_ID": {bare, op(func(dst []byte, c *Context) ([]byte, bool) {
		if c.Rand == nil {
			return dst, false
		}
		return c.Rand.AppendUUID(dst), true
	})},
	"VIRTUAL_CLUSTER_NAME": text(func(c *Context) string { return c.Info.VirtualCluster }),
	"HOSTNAME": {bare, func(b *builder) (*operator, error) {
		return constant(b.opts.Hostname, b.opts.Hostname != ""), nil
	}},
	"ENVIRONMENT": {required | length, buildEnvironment},

	"BYTES_RECEIVED":                   count(func(c *Context) uint64 { return c.Info.BytesReceived }),
	"BYTES_SENT":                       count(func(c *Context) uint64 { return c.Info.BytesSent }),
	"DOWNSTREAM_WIRE_BYTES_RECEIVED":   count(func(c *Context) uint64 { return c.Info.WireReceived }),
	"DOWNSTREAM_WIRE_BYTES_SENT":       count(func(c *Context) uint64 { return c.Info.WireSent }),
	"DOWNSTREAM_HEADER_BYTES_RECEIVED": count(func(c *Context) uint64 { return c.Info.HeaderReceived }),
	"DOWNSTREAM_HEADER_BYTES_SENT":     count(func(c *Context) uint64 { return c.Info.HeaderSent }),
	"UPSTREAM_WIRE_BYTES_RECEIVED":     count(func(c *Context) uint64 { return c.Info.Upstream.WireRecv }),
	"UPSTREAM_WIRE_BYTES_SENT":         count(func(c *Context) uint64 { return c.Info.Upstream.WireSent }),
	"UPSTREAM_HEADER_BYTES_RECEIVED":   count(func(c *Context) uint64 { return c.Info.Upstream.HeaderRecv }),
	"UPSTREAM_HEADER_BYTES_SENT":       count(func(c *Context) uint64 { return c.Info.Upstream.HeaderSent }),

	"CONNECTION_ID": count(func(c *Context) uint64 {
		if c.Info.Conn == nil {
			return 0
		}
		return c.Info.Conn.ID
	}),
	"REQUESTED_SERVER_NAME": {params, buildServerName},
	"TLS_JA3_FINGERPRINT": connText(downstream, func(n *network.ConnInfo) string {
		if f := n.Said().Fingerprints; f != nil {
			return f.JA3
		}
		return ""
	}),
	"TLS_JA4_FINGERPRINT": connText(downstream, func(n *network.ConnInfo) string {
		if f := n.Said().Fingerprints; f != nil {
			return f.JA4
		}
		return ""
	}),
	"FILTER_CHAIN_NAME": connText(downstream, func(n *network.ConnInfo) string { return n.Entered().ChainName }),
	"LISTENER_NAME":     connText(downstream, func(n *network.ConnInfo) string { return n.Entered().ListenerName }),
	"DOWNSTREAM_TRANSPORT_FAILURE_REASON": connReason(downstream, func(n *network.ConnInfo) string {
		return n.Ended().TransportFailure
	}),
	"DOWNSTREAM_LOCAL_CLOSE_REASON":  connReason(downstream, func(n *network.ConnInfo) string { return n.Ended().CloseReason }),
	"DOWNSTREAM_DETECTED_CLOSE_TYPE": closeType(downstream),

	"DOWNSTREAM_LOCAL_ADDRESS":                      address(local),
	"DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT":         addressIP(local),
	"DOWNSTREAM_LOCAL_PORT":                         addressPort(local),
	"DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID":          endpointID(local),
	"DOWNSTREAM_REMOTE_ADDRESS":                     address(remote),
	"DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT":        addressIP(remote),
	"DOWNSTREAM_REMOTE_PORT":                        addressPort(remote),
	"DOWNSTREAM_DIRECT_LOCAL_ADDRESS":               address(directLocal),
	"DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT":  addressIP(directLocal),
	"DOWNSTREAM_DIRECT_LOCAL_PORT":                  addressPort(directLocal),
	"DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID":   endpointID(directLocal),
	"DOWNSTREAM_DIRECT_REMOTE_ADDRESS":              address(directRemote),
	"DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT": addressIP(directRemote),
	"DOWNSTREAM_DIRECT_REMOTE_PORT":                 addressPort(directRemote),

	"UPSTREAM_CLUSTER":                     text(func(c *Context) string { return c.Info.ClusterName }),
	"UPSTREAM_CLUSTER_RAW":                 text(func(c *Context) string { return c.Info.ClusterNameRaw }),
	"UPSTREAM_HOST":                        address(upstreamHost),
	"UPSTREAM_HOST_NAME":                   {bare, op(hostName)},
	"UPSTREAM_HOST_NAME_WITHOUT_PORT":      {bare, op(hostNameWithoutPort)},
	"UPSTREAM_LOCAL_ADDRESS":               address(upstreamLocal),
	"UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT":  addressIP(upstreamLocal),
	"UPSTREAM_LOCAL_PORT":                  addressPort(upstreamLocal),
	"UPSTREAM_REMOTE_ADDRESS":              address(upstreamRemote),
	"UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": addressIP(upstreamRemote),
	"UPSTREAM_REMOTE_PORT":                 addressPort(upstreamRemote),
	"UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID":  endpointID(upstreamRemote),
	"UPSTREAM_PROTOCOL":                    text(func(c *Context) string { return c.Info.Upstream.Protocol.String() }),
	"UPSTREAM_CONNECTION_ID":               count(func(c *Context) uint64 { return c.Info.Upstream.ConnID }),
	"UPSTREAM_REQUEST_ATTEMPT_COUNT":       count(func(c *Context) uint64 { return uint64(c.Info.Attempts) }),
	"UPSTREAM_TRANSPORT_FAILURE_REASON":    reason(func(c *Context) string { return c.Info.Upstream.Failure }),
	"UPSTREAM_SERVER_NAME":                 connText(upstream, func(n *network.ConnInfo) string { return n.Said().ServerName }),
	"UPSTREAM_DETECTED_CLOSE_TYPE":         closeType(upstream),
	"UPSTREAM_LOCAL_CLOSE_REASON":          connReason(upstream, func(n *network.ConnInfo) string { return n.Ended().CloseReason }),
}

// closeType is how a connection ended. Requests are logged before Envoy has looked how the peer did.
func closeType(conn connOf) command {
	return text(func(c *Context) string {
		n := conn(c)
		switch {
		case n == nil:
			return ""
		case c.Info.Protocol != http.ProtoNone:
			return "Normal"
		}
		return n.Ended().CloseType
	})
}

// streamID is the request's identifier, as Envoy's stream id provider gives it for HTTP.
func streamID(c *Context) string {
	if h := c.Info.RequestHeaders; h != nil {
		return h.Get(http.XRequestID)
	}
	return ""
}

func constant(s string, ok bool) *operator {
	return &operator{constant: true, append: func(dst []byte, _ *Context) ([]byte, bool) { return append(dst, s...), ok }}
}

// buildEnvironment looks the variable up once. Envoy prints "-" for a missing one, in JSON too.
func buildEnvironment(b *builder) (*operator, error) {
	v, ok := "", false
	if b.opts.Env != nil {
		v, ok = b.opts.Env(b.param)
	}
	if !ok {
		v = "-"
	}
	return constant(v, true), nil
}

// buildDetails replaces spaces in response code details unless it is told not to.
func buildDetails(b *builder) (*operator, error) {
	if b.param == "ALLOW_WHITESPACES" {
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			return append(dst, c.Info.Details...), c.Info.Details != ""
		}}, nil
	}
	return &operator{append: func(dst []byte, c *Context) ([]byte, bool) { return appendWord(dst, c.Info.Details) }}, nil
}

// hostName prints the host's name, its address if it has none.
func hostName(dst []byte, c *Context) ([]byte, bool) {
	u := &c.Info.Upstream
	return appendHostName(dst, u.HostName, u.Host)
}

func hostNameWithoutPort(dst []byte, c *Context) ([]byte, bool) {
	u := &c.Info.Upstream
	return appendBareHostName(dst, u.HostName, u.Host)
}

func appendHostName(dst []byte, name string, host network.Address) ([]byte, bool) {
	if name != "" {
		return append(dst, name...), true
	}
	return host.Append(dst), host.Valid()
}

func appendBareHostName(dst []byte, name string, host network.Address) ([]byte, bool) {
	if name == "" {
		return host.AppendIP(dst), host.Valid()
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		if _, err := strconv.ParseUint(name[i+1:], 10, 16); err == nil {
			name = name[:i]
		}
	}
	return append(dst, name...), true
}
