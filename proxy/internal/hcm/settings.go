package hcm

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Deps is what building a manager needs of its surroundings. owner: main loop.
type Deps struct {
	// Root is the root of all stats, Listener the listener's scope.
	Root, Listener astats.Scope
	Format         *format.Options
	// Filter finds an HTTP filter's factory by the type URL of its configuration.
	Filter func(name string, a *anypb.Any) (f filter.Factory, terminal bool, err error)
	// Routes returns the slot of an inline configuration, or of one that RDS brings.
	Inline func(cfg *hcmv3.HttpConnectionManager) (*route.Slot, error)
	RDS    func(rds *hcmv3.Rds, statPrefix string) (*route.Slot, error)
	// AccessLogs builds loggers.
	AccessLogs   func(cfg *hcmv3.HttpConnectionManager) (accesslog.Loggers, error)
	LocalAddress netip.Addr
	BufferLimit  int
	Runtime      route.RuntimeReader
	Draining     func() bool
	// LogFilter compiles the filter of a local reply mapper.
	LogFilter func(m *hcmv3.ResponseMapper) (accesslog.Filter, error)
}

// New builds a manager's configuration. Errors name the field.
func New(p *hcmv3.HttpConnectionManager, d Deps) (*Config, error) {
	if err := unsupported(p); err != nil {
		return nil, err
	}
	scope := d.Root.Scope("http." + p.StatPrefix)
	scope.Scope("tracing").Group(stats.Tracing) // shown, and zero: there is no tracing yet
	c := &Config{
		StatPrefix: p.StatPrefix, Stats: scope.Group(stats.HCM),
		ListenerStats: d.Listener.Scope("http." + p.StatPrefix).Group(stats.ListenerHTTP),
		H1Stats:       d.Root.Scope("http1").Group(stats.HTTP1), H2Stats: d.Root.Scope("http2").Group(stats.HTTP2),
		ServerName: "envoy", Via: p.Via, UseRemoteAddress: p.GetUseRemoteAddress().GetValue(), SkipXFFAppend: p.SkipXffAppend,
		AppendXForwardedPort: p.AppendXForwardedPort, XFFTrustedHops: int(p.XffNumTrustedHops), LocalAddress: d.LocalAddress,
		GenerateRequestID: p.GenerateRequestId == nil || p.GenerateRequestId.Value, PreserveRequestID: p.PreserveExternalRequestId,
		RequestIDInResponse: p.AlwaysSetRequestIdInResponse, Proxy100Continue: p.Proxy_100Continue,
		NormalizePath: p.GetNormalizePath().GetValue(), MergeSlashes: p.MergeSlashes, RejectFragment: true,
		StripMatchingPort: p.StripMatchingHostPort, StripAnyPort: p.GetStripAnyHostPort(), StripTrailingDot: p.StripTrailingHostDot,
		BufferLimit: d.BufferLimit, Draining: d.Draining, Runtime: d.Runtime,
		IdleTimeout: time.Hour, StreamIdleTimeout: or(p.StreamIdleTimeout, 5*time.Minute), RequestTimeout: or(p.RequestTimeout, 0),
		RequestHeadersTimeout: or(p.RequestHeadersTimeout, 0), DrainTimeout: or(p.DrainTimeout, 5*time.Second),
		DelayedCloseTimeout: or(p.DelayedCloseTimeout, time.Second),
	}
	if p.ServerName != "" {
		c.ServerName = p.ServerName
	}
	c.ServerHeader = ServerHeader(p.ServerHeaderTransformation)
	switch p.CodecType {
	case hcmv3.HttpConnectionManager_HTTP1:
		c.Codec = HTTP1
	case hcmv3.HttpConnectionManager_HTTP2:
		c.Codec = HTTP2
	}
	c.common(p.CommonHttpProtocolOptions)
	c.codecs(p, d)
	if x := p.GetSchemeHeaderTransformation().GetSchemeToOverwrite(); x != "" {
		c.SchemeOverwrite = x
	}
	for _, x := range p.GetInternalAddressConfig().GetCidrRanges() {
		a, err := netip.ParseAddr(x.AddressPrefix)
		if err != nil {
			return nil, fmt.Errorf("internal_address_config: %w", err)
		}
		c.Internal = append(c.Internal, netip.PrefixFrom(a, int(x.GetPrefixLen().GetValue())))
	}
	for _, u := range p.UpgradeConfigs {
		if len(u.Filters) > 0 {
			return nil, errors.New("upgrade_configs.filters is not supported yet")
		}
		if c.Upgrades == nil {
			c.Upgrades = map[string]bool{}
		}
		name := strings.ToLower(u.UpgradeType)
		if _, dup := c.Upgrades[name]; dup {
			return nil, fmt.Errorf("Error: multiple upgrade configs with the same name: '%s'", name) //nolint:staticcheck // Envoy's text
		}
		c.Upgrades[name] = u.Enabled == nil || u.Enabled.Value
	}
	if err := c.filters(p, d); err != nil {
		return nil, err
	}
	if err := c.routes(p, d); err != nil {
		return nil, err
	}
	if err := c.localReplies(p, d); err != nil {
		return nil, err
	}
	var err error
	c.Logs, err = d.AccessLogs(p)
	return c, err
}

func or(d *durationpb.Duration, def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	return d.AsDuration()
}

// unsupported refuses by name what would silently do something else.
func unsupported(p *hcmv3.HttpConnectionManager) error {
	no := func(field string, set bool) error {
		if set {
			return fmt.Errorf("%s is not supported yet", field)
		}
		return nil
	}
	return errors.Join(
		no("codec_type: HTTP3", p.CodecType == hcmv3.HttpConnectionManager_HTTP3),
		no("tracing", p.Tracing != nil),
		no("scoped_routes", p.GetScopedRoutes() != nil),
		no("original_ip_detection_extensions", len(p.OriginalIpDetectionExtensions) > 0),
		no("early_header_mutation_extensions", len(p.EarlyHeaderMutationExtensions) > 0),
		no("request_id_extension", p.RequestIdExtension != nil && !strings.HasSuffix(p.RequestIdExtension.GetTypedConfig().GetTypeUrl(), "UuidRequestIdConfig")),
		no("forward_client_cert_details", p.ForwardClientCertDetails != hcmv3.HttpConnectionManager_SANITIZE),
		no("path_with_escaped_slashes_action", p.PathWithEscapedSlashesAction > hcmv3.HttpConnectionManager_KEEP_UNCHANGED),
		no("proxy_status_config", p.ProxyStatusConfig != nil),
		no("typed_header_validation_config", p.TypedHeaderValidationConfig != nil),
		no("access_log_options", p.AccessLogOptions != nil),
	)
}

func (c *Config) common(o *corev3.HttpProtocolOptions) {
	if o == nil {
		return
	}
	c.IdleTimeout = or(o.IdleTimeout, time.Hour)
	c.MaxConnectionDuration = or(o.MaxConnectionDuration, 0)
	c.MaxStreamDuration = or(o.MaxStreamDuration, 0)
	c.MaxRequests = int(o.GetMaxRequestsPerConnection().GetValue())
}

func (c *Config) codecs(p *hcmv3.HttpConnectionManager, d Deps) {
	maxBytes := 60 << 10
	if p.MaxRequestHeadersKb != nil {
		maxBytes = int(p.MaxRequestHeadersKb.Value) << 10
	}
	maxHeaders := int(p.GetCommonHttpProtocolOptions().GetMaxHeadersCount().GetValue())
	under := p.GetCommonHttpProtocolOptions().GetHeadersWithUnderscoresAction()
	o := p.HttpProtocolOptions
	streamError := p.GetStreamErrorOnInvalidHttpMessage().GetValue()
	c.StreamErrorOnInvalid = streamError
	if v := o.GetOverrideStreamErrorOnInvalidHttpMessage(); v != nil {
		c.StreamErrorOnInvalid = v.Value
	}
	c.AcceptHTTP10, c.DefaultHTTP10Host = o.GetAcceptHttp_10(), o.GetDefaultHostForHttp_10()
	c.H1 = h1.Options{
		MaxHeadBytes: maxBytes, MaxHeaders: maxHeaders, AllowAbsoluteURL: o.GetAllowAbsoluteUrl() == nil || o.GetAllowAbsoluteUrl().Value,
		AcceptHTTP10: c.AcceptHTTP10, AllowChunkedLength: o.GetAllowChunkedLength(), EnableTrailers: o.GetEnableTrailers(),
		AllowCustomMethods: o.GetAllowCustomMethods(), Underscores: h1.Underscores(under),
	}
	H1HeaderFormat(&c.H1, o.GetHeaderKeyFormat())
	c.H2 = h2.DefaultOptions()
	H2Settings(&c.H2, p.Http2ProtocolOptions)
	c.H2.MaxHeaderBytes = uint32(maxBytes)
	if maxHeaders > 0 {
		c.H2.MaxHeaders = uint32(maxHeaders)
	}
	c.H2.Underscores = h2.Underscores(under)
	c.H2.StreamErrorOnInvalid = streamError
	if v := p.GetHttp2ProtocolOptions().GetOverrideStreamErrorOnInvalidHttpMessage(); v != nil {
		c.H2.StreamErrorOnInvalid = v.Value
	}
	c.H2.Stats = c.H2Stats
}

// H1HeaderFormat sets how names of HTTP/1 headers are written.
func H1HeaderFormat(o *h1.Options, f *corev3.Http1ProtocolOptions_HeaderKeyFormat) {
	switch f.GetHeaderFormat().(type) {
	case *corev3.Http1ProtocolOptions_HeaderKeyFormat_ProperCaseWords_:
		o.ProperCase = true
	case *corev3.Http1ProtocolOptions_HeaderKeyFormat_StatefulFormatter:
		o.NewFormatter = func(*http.Arena) http.KeyFormatter { return &h1.PreserveCase{} }
	}
}

// H2Settings takes over what is set of the protocol's options.
func H2Settings(o *h2.Options, p *corev3.Http2ProtocolOptions) {
	set := func(dst *uint32, v interface{ GetValue() uint32 }, is bool) {
		if is {
			*dst = v.GetValue()
		}
	}
	set(&o.HpackTableSize, p.GetHpackTableSize(), p.GetHpackTableSize() != nil)
	set(&o.MaxConcurrentStreams, p.GetMaxConcurrentStreams(), p.GetMaxConcurrentStreams() != nil)
	set(&o.InitialStreamWindow, p.GetInitialStreamWindowSize(), p.GetInitialStreamWindowSize() != nil)
	set(&o.InitialConnWindow, p.GetInitialConnectionWindowSize(), p.GetInitialConnectionWindowSize() != nil)
	set(&o.MaxOutboundFrames, p.GetMaxOutboundFrames(), p.GetMaxOutboundFrames() != nil)
	set(&o.MaxOutboundControlFrames, p.GetMaxOutboundControlFrames(), p.GetMaxOutboundControlFrames() != nil)
	set(&o.MaxInboundEmptyFrames, p.GetMaxConsecutiveInboundFramesWithEmptyPayload(), p.GetMaxConsecutiveInboundFramesWithEmptyPayload() != nil)
	set(&o.MaxInboundPriority, p.GetMaxInboundPriorityFramesPerStream(), p.GetMaxInboundPriorityFramesPerStream() != nil)
	set(&o.MaxInboundUpdates, p.GetMaxInboundWindowUpdateFramesPerDataFrameSent(), p.GetMaxInboundWindowUpdateFramesPerDataFrameSent() != nil)
	o.AllowConnect = p.GetAllowConnect()
	for _, s := range p.GetCustomSettingsParameters() {
		o.CustomSettings = append(o.CustomSettings, h2.Setting{ID: uint16(s.GetIdentifier().GetValue()), Value: s.GetValue().GetValue()})
	}
}

func (c *Config) filters(p *hcmv3.HttpConnectionManager, d Deps) error {
	c.Chain = &fm.Chain{}
	for i, f := range p.HttpFilters {
		if f.GetConfigDiscovery() != nil {
			return fmt.Errorf("http_filters[%d].config_discovery is not supported yet", i)
		}
		factory, terminal, err := d.Filter(f.Name, f.GetTypedConfig())
		if err != nil {
			if f.IsOptional {
				continue
			}
			return err
		}
		last := i == len(p.HttpFilters)-1
		short := strings.TrimPrefix(f.GetTypedConfig().GetTypeUrl(), "type.googleapis.com/")
		if terminal && !last {
			return fmt.Errorf("Error: terminal filter named %s of type %s must be the last filter in a http filter chain.", f.Name, kindOf(short)) //nolint:staticcheck // Envoy's text
		}
		if !terminal && last {
			return fmt.Errorf("Error: non-terminal filter named %s of type %s is the last filter in a http filter chain.", f.Name, kindOf(short)) //nolint:staticcheck // Envoy's text
		}
		c.Chain.Entries = append(c.Chain.Entries, fm.Entry{Name: f.Name, Factory: factory, Disabled: f.Disabled})
	}
	return nil
}

// kindOf turns the name of a filter's message into the filter's own name: "envoy.extensions.filters.http.router.v3.Router" is
// envoy.filters.http.router.
func kindOf(message string) string {
	parts := strings.Split(message, ".")
	if len(parts) > 4 && parts[1] == "extensions" {
		return "envoy." + strings.Join(parts[2:len(parts)-2], ".")
	}
	return message
}

func (c *Config) routes(p *hcmv3.HttpConnectionManager, d Deps) (err error) {
	switch r := p.RouteSpecifier.(type) {
	case *hcmv3.HttpConnectionManager_RouteConfig:
		c.Routes, err = d.Inline(p)
	case *hcmv3.HttpConnectionManager_Rds:
		c.Routes, err = d.RDS(r.Rds, p.StatPrefix)
	default:
		err = errors.New("route_specifier is required")
	}
	return err
}

func (c *Config) localReplies(p *hcmv3.HttpConnectionManager, d Deps) error {
	lr := p.LocalReplyConfig
	if lr == nil {
		return nil
	}
	out := &LocalReplyConfig{}
	var err error
	if lr.BodyFormat != nil {
		if out.Body, out.ContentType, err = route.Body(lr.BodyFormat, d.Format); err != nil {
			return err
		}
	}
	for _, m := range lr.Mappers {
		f, err := d.LogFilter(m)
		if err != nil {
			return err
		}
		x := LocalReplyMapper{Filter: f, Code: int(m.GetStatusCode().GetValue())}
		if m.Body != nil {
			x.Body, x.HasBody = m.Body.GetInlineString(), true
		}
		if m.BodyFormatOverride != nil {
			if x.Format, x.ContentType, err = route.Body(m.BodyFormatOverride, d.Format); err != nil {
				return err
			}
		}
		if x.Headers, err = route.NewMutations(m.HeadersToAdd, nil, d.Format); err != nil {
			return err
		}
		out.Mappers = append(out.Mappers, x)
	}
	c.LocalReply = out
	return nil
}
