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
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
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
	// Scoped returns what chooses among route configurations.
	Scoped func(p *hcmv3.ScopedRoutes, statPrefix string) (*route.Scopes, error)
	// AccessLogs builds loggers.
	AccessLogs   func(cfg *hcmv3.HttpConnectionManager) (accesslog.Loggers, error)
	LocalAddress netip.Addr
	BufferLimit  int
	Runtime      route.RuntimeReader
	Draining     func() bool
	// LogFilter compiles the filter of a local reply mapper.
	LogFilter func(m *hcmv3.ResponseMapper) (accesslog.Filter, error)
	// DataSource reads a data source (inline or file).
	DataSource func(s *corev3.DataSource) (string, error)
	// Overloaded tells whether requests are to be refused now; nil: never.
	Overloaded func(w *event.Worker) bool
	// Metadata is the listener's.
	Metadata map[string]map[string]any
	// Direction is the listener's traffic_direction.
	Direction corev3.TrafficDirection
	// Cluster and Node are what the process says it is, for add_user_agent.
	Cluster, Node string
}

// New builds a manager's configuration. Errors name the field.
func New(p *hcmv3.HttpConnectionManager, d Deps) (*Config, error) {
	var errs config.Errors
	errs.Collect("", config.Refuse(gaps, p, ""))
	if id := p.RequestIdExtension; id != nil && !strings.HasSuffix(id.GetTypedConfig().GetTypeUrl(), "UuidRequestIdConfig") {
		errs.Collect("request_id_extension", errors.New("not supported yet"))
	}
	if x := p.TypedHeaderValidationConfig; x != nil {
		errs.Collect("", fmt.Errorf("This Envoy binary does not support header validator extensions.: '%s'", x.GetName())) //nolint:staticcheck // Envoy's text
	}
	if p.StripMatchingHostPort && p.GetStripAnyHostPort() {
		errs.Collect("strip_matching_host_port", errors.New("Error: Only one of `strip_matching_host_port` or `strip_any_host_port` can be set.")) //nolint:staticcheck // Envoy's text
	}
	scope := d.Root.Scope("http." + p.StatPrefix)
	c := &Config{
		StatPrefix: p.StatPrefix, Stats: scope.Group(stats.HCM),
		ListenerStats: d.Listener.Scope("http." + p.StatPrefix).Group(stats.ListenerHTTP),
		H1Stats:       d.Root.Scope("http1").Group(stats.HTTP1), H2Stats: d.Root.Scope("http2").Group(stats.HTTP2),
		ServerName: "envoy", Via: p.Via, UseRemoteAddress: p.GetUseRemoteAddress().GetValue(), SkipXFFAppend: p.SkipXffAppend,
		AppendXForwardedPort: p.AppendXForwardedPort, XFFTrustedHops: int(p.XffNumTrustedHops), LocalAddress: d.LocalAddress,
		GenerateRequestID: p.GenerateRequestId == nil || p.GenerateRequestId.Value, PreserveRequestID: p.PreserveExternalRequestId,
		RequestIDInResponse: p.AlwaysSetRequestIdInResponse, Proxy100Continue: p.Proxy_100Continue,
		MergeSlashes: p.MergeSlashes, RecordRoutes: p.RecordRouteResolutionStats,
		StripMatchingPort: p.StripMatchingHostPort, StripAnyPort: p.GetStripAnyHostPort(), StripTrailingDot: p.StripTrailingHostDot,
		BufferLimit: d.BufferLimit, Draining: d.Draining, Runtime: d.Runtime,
		IdleTimeout: time.Hour, StreamIdleTimeout: or(p.StreamIdleTimeout, 5*time.Minute), RequestTimeout: or(p.RequestTimeout, 0),
		RequestHeadersTimeout: or(p.RequestHeadersTimeout, 0), DrainTimeout: or(p.DrainTimeout, 5*time.Second),
		DelayedCloseTimeout: or(p.DelayedCloseTimeout, time.Second), DrainJitter: uint64(p.GetDrainTimeoutJitter().GetValue() * 1e4),
		SoftMaxDuration: p.Http1SafeMaxConnectionDuration, Overloaded: d.Overloaded, LocalOverload: p.AppendLocalOverload,
		Listener: d.Metadata, SchemeUpstream: p.GetSchemeHeaderTransformation().GetMatchUpstream(), ProxyStatus: proxyStatus(p, d.Node),
		Keepalive: keepaliveOf(p.GetHttp2ProtocolOptions().GetConnectionKeepalive()),
	}
	c.StreamFlushTimeout = or(p.StreamFlushTimeout, c.StreamIdleTimeout)
	c.paths(p)
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
	errs.Collect("", c.codecs(p, d))
	errs.Collect("http2_protocol_options", checkCustomSettings(p.GetHttp2ProtocolOptions()))
	errs.Collect("", c.identity(p, d))
	errs.Collect("", c.tracing(p, d, scope.Scope("tracing").Group(stats.Tracing)))
	errs.Collect("", c.logging(p))
	errs.Collect("", c.filters(p, d))
	errs.Collect("", c.routes(p, d))
	errs.Collect("local_reply_config", c.localReplies(p, d))
	var err error
	c.Logs, err = d.AccessLogs(p)
	errs.Collect("access_log", err)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func or(d *durationpb.Duration, def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	return d.AsDuration()
}

func (c *Config) filters(p *hcmv3.HttpConnectionManager, d Deps) (err error) {
	var errs config.Errors
	c.Chain, err = chain(p.HttpFilters, d)
	errs.Collect("http_filters", err)
	for i, u := range p.UpgradeConfigs {
		if c.Upgrades == nil {
			c.Upgrades = map[string]Upgrade{}
		}
		path, name := fmt.Sprintf("upgrade_configs[%d]", i), strings.ToLower(u.UpgradeType)
		if _, dup := c.Upgrades[name]; dup {
			errs.Collect(path+".upgrade_type", errors.New("Error: multiple upgrade configs with the same name: '"+name+"'")) //nolint:staticcheck // Envoy's text
		}
		x := Upgrade{Enabled: u.Enabled == nil || u.Enabled.Value}
		if len(u.Filters) > 0 {
			x.Chain, err = chain(u.Filters, d)
			errs.Collect(path+".filters", err)
		}
		c.Upgrades[name] = x
	}
	return errs.Err()
}

// chain builds a list of HTTP filters.
func chain(list []*hcmv3.HttpFilter, d Deps) (*fm.Chain, error) {
	out := &fm.Chain{}
	var errs config.Errors
	misplaced := false // a terminal filter: then what is last is not told too
	for i, f := range list {
		path := fmt.Sprintf("[%d]", i)
		if f.GetConfigDiscovery() != nil {
			errs.Collect(path+".config_discovery", errors.New("not supported yet"))
			continue
		}
		factory, terminal, err := d.Filter(f.Name, f.GetTypedConfig())
		if err != nil {
			if !f.IsOptional {
				errs.Collect(path+".typed_config", err)
			}
			continue
		}
		switch last, kind := i == len(list)-1, kindOf(shortURL(config.PayloadURL(f.GetTypedConfig()))); {
		case terminal && !last:
			misplaced = true
			errs.Collect(path, fmt.Errorf("Error: terminal filter named %s of type %s must be the last filter in a http filter chain.", f.Name, kind)) //nolint:staticcheck // Envoy's text
		case !terminal && last && !misplaced:
			errs.Collect(path, &config.Error{Msg: fmt.Sprintf("Error: non-terminal filter named %s of type %s is the last filter in a http filter chain.", f.Name, kind),
				Advice: "envoy.filters.http.router is the last one, mostly"})
		}
		if terminal && f.Disabled {
			errs.Collect(path+".disabled", fm.LastDisabled(f.Name))
		}
		out.Entries = append(out.Entries, fm.Entry{Name: f.Name, Factory: factory, Disabled: f.Disabled})
	}
	return out, errs.Err()
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
		err = config.At("route_config", err)
	case *hcmv3.HttpConnectionManager_Rds:
		c.Routes, err = d.RDS(r.Rds, p.StatPrefix)
		err = config.At("rds", err)
	case *hcmv3.HttpConnectionManager_ScopedRoutes:
		c.Scopes, err = d.Scoped(r.ScopedRoutes, p.StatPrefix)
		err = config.At("scoped_routes", err)
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
	var errs config.Errors
	var err error
	if lr.BodyFormat != nil {
		out.Body, out.ContentType, err = route.Body(lr.BodyFormat, d.Format)
		errs.Collect("body_format", err)
	}
	for i, m := range lr.Mappers {
		x, err := mapper(m, d)
		errs.Collect(fmt.Sprintf("mappers[%d]", i), err)
		out.Mappers = append(out.Mappers, x)
	}
	c.LocalReply = out
	return errs.Err()
}

func mapper(m *hcmv3.ResponseMapper, d Deps) (x LocalReplyMapper, err error) {
	var errs config.Errors
	x.Code = int(m.GetStatusCode().GetValue())
	x.Filter, err = d.LogFilter(m)
	errs.Collect("filter", err)
	if m.Body != nil {
		x.Body, err = d.DataSource(m.Body)
		errs.Collect("body", err)
		x.HasBody = true
	}
	if m.BodyFormatOverride != nil {
		x.Format, x.ContentType, err = route.Body(m.BodyFormatOverride, d.Format)
		errs.Collect("body_format_override", err)
	}
	x.Headers, err = route.NewMutations(m.HeadersToAdd, nil, d.Format)
	errs.Collect("", err)
	return x, errs.Err()
}
