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
	// Cluster and Node are what the process says it is, for add_user_agent.
	Cluster, Node string
}

// New builds a manager's configuration. Errors name the field.
func New(p *hcmv3.HttpConnectionManager, d Deps) (*Config, error) {
	if err := config.Refuse(gaps, p, ""); err != nil {
		return nil, err
	}
	if id := p.RequestIdExtension; id != nil && !strings.HasSuffix(id.GetTypedConfig().GetTypeUrl(), "UuidRequestIdConfig") {
		return nil, &config.Error{Path: "request_id_extension", Msg: "not supported yet"}
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
		MergeSlashes:      p.MergeSlashes,
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
	if err := c.codecs(p, d); err != nil {
		return nil, err
	}
	if err := c.identity(p, d); err != nil {
		return nil, err
	}
	c.logging(p)
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

func (c *Config) filters(p *hcmv3.HttpConnectionManager, d Deps) (err error) {
	if c.Chain, err = chain(p.HttpFilters, "http_filters", d); err != nil {
		return err
	}
	for i, u := range p.UpgradeConfigs {
		if c.Upgrades == nil {
			c.Upgrades = map[string]Upgrade{}
		}
		name := strings.ToLower(u.UpgradeType)
		if _, dup := c.Upgrades[name]; dup {
			return fmt.Errorf("Error: multiple upgrade configs with the same name: '%s'", name) //nolint:staticcheck // Envoy's text
		}
		x := Upgrade{Enabled: u.Enabled == nil || u.Enabled.Value}
		if len(u.Filters) > 0 {
			if x.Chain, err = chain(u.Filters, fmt.Sprintf("upgrade_configs[%d].filters", i), d); err != nil {
				return err
			}
		}
		c.Upgrades[name] = x
	}
	return nil
}

// chain builds a list of HTTP filters.
func chain(list []*hcmv3.HttpFilter, field string, d Deps) (*fm.Chain, error) {
	out := &fm.Chain{}
	for i, f := range list {
		if f.GetConfigDiscovery() != nil {
			return nil, &config.Error{Path: fmt.Sprintf("%s[%d].config_discovery", field, i), Msg: "not supported yet"}
		}
		factory, terminal, err := d.Filter(f.Name, f.GetTypedConfig())
		if err != nil {
			if f.IsOptional {
				continue
			}
			return nil, config.At(fmt.Sprintf("%s[%d]", field, i), err)
		}
		last := i == len(list)-1
		short := shortURL(f.GetTypedConfig())
		if terminal && !last {
			return nil, fmt.Errorf("Error: terminal filter named %s of type %s must be the last filter in a http filter chain.", f.Name, kindOf(short)) //nolint:staticcheck // Envoy's text
		}
		if !terminal && last {
			return nil, fmt.Errorf("Error: non-terminal filter named %s of type %s is the last filter in a http filter chain.", f.Name, kindOf(short)) //nolint:staticcheck // Envoy's text
		}
		out.Entries = append(out.Entries, fm.Entry{Name: f.Name, Factory: factory, Disabled: f.Disabled})
	}
	return out, nil
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
			if x.Body, err = d.DataSource(m.Body); err != nil {
				return err
			}
			x.HasBody = true
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
