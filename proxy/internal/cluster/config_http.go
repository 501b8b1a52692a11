package cluster

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	preservev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/header_formatters/preserve_case/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// defaultKeepaliveJitter is interval_jitter in percent.
const defaultKeepaliveJitter = 15

// unusedOptionsName is a second name of these options: Envoy reads what it has, and nothing uses it.
const unusedOptionsName = "envoy.upstreams.http.http_protocol_options"

var tcpOptionsNames = []string{"envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions", "envoy.upstreams.tcp.tcp_protocol_options"}

const httpOptionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// poolOptions are pool.Options whose codec options are values, so that equal ones can be found.
type poolOptions struct {
	pool.Options
	h1 h1Options
	h2 h2Options
}

// h1Options and h2Options are what of the codec options can be set for a cluster.
type h1Options struct {
	maxHeadBytes, maxHeaders                                  int
	trailers, chunkedLength, qualified, properCase, anyMethod bool
	preserveCase, preserveReason, preserveProper              bool
}

type h2Options struct {
	table, streams, streamWindow, connWindow       uint32
	outFrames, outControl, empty, priority, update uint32
	maxHeaderBytes, maxHeaders                     uint32
	connect, streamError                           bool
}

func (o *h1Options) options() *h1.Options {
	x := &h1.Options{MaxHeadBytes: o.maxHeadBytes, MaxHeaders: o.maxHeaders, EnableTrailers: o.trailers,
		AllowChunkedLength: o.chunkedLength, SendFullyQualifiedURL: o.qualified, ProperCase: o.properCase,
		AllowCustomMethods: o.anyMethod}
	if o.preserveCase {
		reason, proper := o.preserveReason, o.preserveProper
		x.NewFormatter = func(*http.Arena) http.KeyFormatter {
			return &h1.PreserveCase{ForwardReason: reason, ProperEnvoy: proper}
		}
	}
	return x
}

func (o *h2Options) options() *h2.Options {
	x := h2.DefaultOptions()
	x.HpackTableSize, x.MaxConcurrentStreams = o.table, o.streams
	x.InitialStreamWindow, x.InitialConnWindow = o.streamWindow, o.connWindow
	x.MaxOutboundFrames, x.MaxOutboundControlFrames = o.outFrames, o.outControl
	x.MaxInboundEmptyFrames, x.MaxInboundPriority, x.MaxInboundUpdates = o.empty, o.priority, o.update
	x.MaxHeaderBytes, x.MaxHeaders = o.maxHeaderBytes, o.maxHeaders
	x.AllowConnect, x.StreamErrorOnInvalid = o.connect, o.streamError
	return &x
}

// httpConfig is what HttpProtocolOptions and the older fields of the cluster say.
type httpConfig struct {
	path   string // of the fields, for errors
	common *corev3.HttpProtocolOptions
	h1     *corev3.Http1ProtocolOptions
	h2     *corev3.Http2ProtocolOptions
}

// buildPoolOptions reads what concerns connections.
func buildPoolOptions(cfg *clusterv3.Cluster, d *Deps) (*poolOptions, error) {
	o := &poolOptions{}
	o.ConnectTimeout = duration(cfg.GetConnectTimeout(), pool.DefaultConnectTimeout)
	o.Preconnect = cfg.GetPreconnectPolicy().GetPerUpstreamPreconnectRatio().GetValue()
	o.Predict = cfg.GetPreconnectPolicy().GetPredictivePreconnectRatio().GetValue()
	o.BufferLimit = number(cfg.GetPerConnectionBufferLimitBytes(), pool.DefaultBufferLimit)
	var errs config.Errors
	errs.Collect("", buildSockets(cfg, d, &o.Options))
	c, err := protocol(cfg, d, &o.Options)
	errs.Collect("", err)
	if c == nil {
		return nil, errs.Err()
	}
	o.MaxRequests = number(cfg.GetMaxRequestsPerConnection(), 0)                                   //nolint:staticcheck // deprecated, still read by Envoy
	if cfg.GetMaxRequestsPerConnection() != nil && c.common.GetMaxRequestsPerConnection() != nil { //nolint:staticcheck // deprecated, still read by Envoy
		errs.Collect("", &config.Error{Path: "max_requests_per_connection", Kind: config.Invalid,
			Msg: "Only one of max_requests_per_connection from Cluster or HttpProtocolOptions can be specified"})
	}
	errs.Collect("", c.buildCommon(o))
	errs.Collect("", c.buildH1(o))
	errs.Collect("", c.buildH2(o))
	return o, errs.Err()
}

// protocol finds out where the protocol options are, and which protocol they mean.
func protocol(cfg *clusterv3.Cluster, d *Deps, o *pool.Options) (*httpConfig, error) {
	var errs config.Errors
	for _, name := range slices.Sorted(maps.Keys(cfg.GetTypedExtensionProtocolOptions())) {
		path := "typed_extension_protocol_options[" + strconv.Quote(name) + "]"
		any := cfg.GetTypedExtensionProtocolOptions()[name]
		switch {
		case name == httpOptionsName:
		case name == unusedOptionsName:
			if !config.Holds(any, &httpv3.HttpProtocolOptions{}) {
				errs.Collect(path, wrongOptions(any))
			}
		case slices.Contains(tcpOptionsNames, name):
			errs.Collect("", notYet(path))
		case strings.HasPrefix(name, "envoy.filters.network."):
			errs.Collect("", notYet(path))
		default:
			meant := config.Nearest(name, []string{httpOptionsName})
			if config.Holds(any, &httpv3.HttpProtocolOptions{}) {
				meant = httpOptionsName
			}
			errs.Collect("", &config.Error{Path: path, Kind: config.Invalid, Suggestion: meant,
				Msg: "Didn't find a registered network or http filter or protocol options implementation for name: '" + name + "'"})
		}
	}
	if any := cfg.GetTypedExtensionProtocolOptions()[httpOptionsName]; any != nil {
		c, err := typedProtocol(cfg, any, d, o)
		errs.Collect("", err)
		return c, errs.Err()
	}
	c := &httpConfig{common: cfg.GetCommonHttpProtocolOptions(), //nolint:staticcheck // deprecated, still read by Envoy
		h1: cfg.GetHttpProtocolOptions(), h2: cfg.GetHttp2ProtocolOptions()} //nolint:staticcheck // deprecated, still read by Envoy
	upstreamHTTP(o, cfg.GetUpstreamHttpProtocolOptions()) //nolint:staticcheck // deprecated, still read by Envoy
	switch {
	case cfg.GetProtocolSelection() == clusterv3.Cluster_USE_DOWNSTREAM_PROTOCOL: //nolint:staticcheck // deprecated, still read by Envoy
		o.Protocol = pool.Downstream
	case c.h2 != nil:
		o.Protocol = pool.HTTP2
	}
	return c, errs.Err()
}

// wrongOptions is the error about another message in the place of the options of HTTP.
func wrongOptions(any *anypb.Any) error {
	return &config.Error{Path: "@type", Kind: config.Invalid, Msg: "Unable to unpack as " + httpOptionsName + ": " + string(any.MessageName()) + " is another message",
		Suggestion: "type.googleapis.com/" + httpOptionsName}
}

func typedProtocol(cfg *clusterv3.Cluster, any *anypb.Any, d *Deps, o *pool.Options) (*httpConfig, error) {
	const path = `typed_extension_protocol_options["` + httpOptionsName + `"].`
	var m httpv3.HttpProtocolOptions
	if !config.Holds(any, &m) {
		return nil, config.At(strings.TrimSuffix(path, "."), wrongOptions(any))
	}
	if err := config.Into(any, &m); err != nil {
		return nil, rejected(strings.TrimSuffix(path, "."), err.Error())
	}
	upstreamHTTP(o, m.GetUpstreamHttpProtocolOptions())
	var errs config.Errors
	if list := m.GetHttpFilters(); len(list) > 0 && d.HTTPFilters != nil {
		var err error
		o.Filters, err = d.HTTPFilters(list, path+"http_filters", d.Store.Root().Scope("cluster").Scope(observed(cfg)))
		errs.Collect("", err)
	}
	if d.Policies != nil {
		var err error
		o.Policies, err = d.Policies(&m)
		errs.Collect(strings.TrimSuffix(path, "."), err)
	}
	errs.Collect("", config.Refuse(protocolGaps, &m, path))
	c := &httpConfig{path: path, common: m.GetCommonHttpProtocolOptions()}
	switch u := m.GetUpstreamProtocolOptions().(type) {
	case *httpv3.HttpProtocolOptions_ExplicitHttpConfig_:
		x := u.ExplicitHttpConfig
		c.h1, c.h2 = x.GetHttpProtocolOptions(), x.GetHttp2ProtocolOptions()
		c.path += "explicit_http_config."
		if c.h2 != nil {
			o.Protocol = pool.HTTP2
		}
	case *httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig:
		x := u.UseDownstreamProtocolConfig
		o.Protocol = pool.Downstream
		c.h1, c.h2 = x.GetHttpProtocolOptions(), x.GetHttp2ProtocolOptions()
		c.path += "use_downstream_protocol_config."
	case *httpv3.HttpProtocolOptions_AutoConfig:
		x := u.AutoConfig
		o.Protocol = pool.Auto
		c.h1, c.h2 = x.GetHttpProtocolOptions(), x.GetHttp2ProtocolOptions()
		c.path += "auto_config."
	}
	return c, errs.Err()
}

// observed is the name under which stats know a cluster.
func observed(cfg *clusterv3.Cluster) string {
	if n := cfg.GetAltStatName(); n != "" {
		return n
	}
	return cfg.GetName()
}

// upstreamHTTP takes over what requests say about the TLS of their connections.
func upstreamHTTP(o *pool.Options, x *corev3.UpstreamHttpProtocolOptions) {
	o.AutoSNI, o.AutoSAN = x.GetAutoSni(), x.GetAutoSanValidation()
	o.SNIHeader = strings.ToLower(x.GetOverrideAutoSniHeader())
}

func (c *httpConfig) buildCommon(o *poolOptions) error {
	const path = "common_http_protocol_options."
	x := c.common
	o.IdleTimeout = duration(x.GetIdleTimeout(), pool.DefaultIdleTimeout)
	o.MaxDuration = duration(x.GetMaxConnectionDuration(), 0)
	if n := x.GetMaxRequestsPerConnection(); n != nil {
		o.MaxRequests = n.GetValue()
	}
	o.MaxStreamDuration = duration(x.GetMaxStreamDuration(), 0)
	kb := number(x.GetMaxResponseHeadersKb(), 0)
	o.h1.maxHeadBytes, o.h2.maxHeaderBytes = int(kb)<<10, h2.DefaultMaxHeaderBytes
	if kb > 0 {
		o.h2.maxHeaderBytes = kb << 10
	}
	n := number(x.GetMaxHeadersCount(), h2.DefaultMaxHeaders)
	o.h1.maxHeaders, o.h2.maxHeaders = int(n), n
	return nil
}

func (c *httpConfig) buildH1(o *poolOptions) error {
	const path = "http_protocol_options."
	x := c.h1
	o.h1.trailers, o.h1.chunkedLength = x.GetEnableTrailers(), x.GetAllowChunkedLength()
	o.h1.qualified, o.h1.anyMethod = x.GetSendFullyQualifiedUrl(), x.GetAllowCustomMethods()
	if f := x.GetHeaderKeyFormat(); f != nil {
		o.h1.properCase = f.GetProperCaseWords() != nil
		if a := f.GetStatefulFormatter().GetTypedConfig(); a != nil {
			var p preservev3.PreserveCaseFormatterConfig
			if !config.Holds(a, &p) {
				return notYet(c.path + path + "header_key_format.stateful_formatter")
			}
			if err := config.Into(a, &p); err != nil {
				return rejected(c.path+path+"header_key_format.stateful_formatter.typed_config", err.Error())
			}
			o.h1.preserveCase, o.h1.preserveReason = true, p.ForwardReasonPhrase
			o.h1.preserveProper = p.FormatterTypeOnEnvoyHeaders == preservev3.PreserveCaseFormatterConfig_PROPER_CASE
		}
	}
	return nil
}

func (c *httpConfig) buildH2(o *poolOptions) error {
	const path = "http2_protocol_options."
	x := c.h2
	switch {
	case x.GetAllowMetadata():
		return notYet(c.path + path + "allow_metadata")
	case len(x.GetCustomSettingsParameters()) > 0:
		return notYet(c.path + path + "custom_settings_parameters")
	}
	if k := x.GetConnectionKeepalive(); k != nil {
		o.Keepalive, o.KeepaliveTimeout = duration(k.GetInterval(), 0), duration(k.GetTimeout(), 0)
		o.KeepaliveIdle, o.KeepaliveJitter = duration(k.GetConnectionIdleInterval(), 0), defaultKeepaliveJitter
		if j := k.GetIntervalJitter(); j != nil {
			o.KeepaliveJitter = uint32(j.GetValue())
		}
	}
	h := &o.h2
	h.table = number(x.GetHpackTableSize(), h2.DefaultHpackTableSize)
	h.streams = number(x.GetMaxConcurrentStreams(), h2.DefaultMaxConcurrentStreams)
	h.streamWindow = number(x.GetInitialStreamWindowSize(), h2.DefaultInitialStreamWindow)
	h.connWindow = number(x.GetInitialConnectionWindowSize(), h2.DefaultInitialConnWindow)
	h.outFrames = number(x.GetMaxOutboundFrames(), h2.DefaultMaxOutboundFrames)
	h.outControl = number(x.GetMaxOutboundControlFrames(), h2.DefaultMaxOutboundControl)
	h.empty = number(x.GetMaxConsecutiveInboundFramesWithEmptyPayload(), h2.DefaultMaxInboundEmptyFrames)
	h.priority = number(x.GetMaxInboundPriorityFramesPerStream(), h2.DefaultMaxInboundPriority)
	h.update = number(x.GetMaxInboundWindowUpdateFramesPerDataFrameSent(), h2.DefaultMaxInboundUpdates)
	h.connect = x.GetAllowConnect()
	h.streamError = x.GetStreamErrorOnInvalidHttpMessaging() //nolint:staticcheck // deprecated, still read by Envoy
	if b := x.GetOverrideStreamErrorOnInvalidHttpMessage(); b != nil {
		h.streamError = b.GetValue()
	}
	return nil
}
