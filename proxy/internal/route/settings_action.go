package route

import (
	"errors"
	"fmt"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	uritmplrv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/rewrite/uri_template/v3"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

func (c *compiler) forward(e *Entry, vh *routev3.VirtualHost, r *routev3.Route, a *routev3.RouteAction, resp [][]mutation) error {
	if err := unsupported(vh, a); err != nil {
		return err
	}
	e.NotFoundCode = map[routev3.RouteAction_ClusterNotFoundResponseCode]int{0: 503, 1: 404, 2: 500}[a.ClusterNotFoundResponseCode]
	c.timeouts(e, a)
	e.HighPriority = a.Priority == 1
	e.TimeoutRetryHeader = vh.IncludeIsTimeoutRetryHeader
	e.Hedge = a.HedgePolicy.GetHedgeOnPerTryTimeout() || a.HedgePolicy == nil && vh.HedgePolicy.GetHedgeOnPerTryTimeout()
	var err error
	if e.HashPolicy, err = c.hashPolicy(a.HashPolicy); err != nil {
		return err
	}
	if e.rateLimits, err = RateLimits(a.RateLimits, c.Format, c.formats()); err != nil {
		return err
	}
	e.includeHostRateLimits = a.GetIncludeVhRateLimits().GetValue()
	p, err := retryPolicy(vh, a)
	if err != nil {
		return err
	}
	if p != nil {
		if e.Retry, err = c.retry(p); err != nil {
			return err
		}
	}
	if e.Mirrors, err = c.mirrors(vh, a); err != nil {
		return err
	}
	if e.InternalRedirect, err = internalRedirect(a); err != nil {
		return err
	}
	if err := c.rewrites(e, a); err != nil {
		return err
	}
	if err := e.upgrades(a.UpgradeConfigs); err != nil {
		return err
	}
	return c.cluster(e, a, resp)
}

// upgrades reads which other protocols the route's requests may have.
func (e *Entry) upgrades(list []*routev3.RouteAction_UpgradeConfig) error {
	for _, u := range list {
		if e.Upgrades == nil {
			e.Upgrades = map[string]bool{}
		}
		name := strings.ToLower(u.UpgradeType)
		if _, dup := e.Upgrades[name]; dup {
			return fmt.Errorf("Duplicate upgrade %s", u.UpgradeType) //nolint:staticcheck // Envoy's text
		}
		e.Upgrades[name] = u.Enabled == nil || u.Enabled.Value
		c := u.ConnectConfig
		switch {
		case c == nil:
		case name == "connect-udp":
			return errors.New("upgrade_configs.connect_config of CONNECT-UDP is not supported yet")
		case name != "connect":
			return fmt.Errorf("Non-CONNECT upgrade type %s has ConnectConfig", u.UpgradeType) //nolint:staticcheck // Envoy's text
		case c.ProxyProtocolConfig != nil:
			return errors.New("upgrade_configs.connect_config.proxy_protocol_config is not supported yet")
		default:
			e.Connect = &ConnectConfig{AllowPost: c.AllowPost}
		}
	}
	return nil
}

// retryPolicy is the policy that applies: the route's own in either form, or the virtual host's.
func retryPolicy(vh *routev3.VirtualHost, a *routev3.RouteAction) (*routev3.RetryPolicy, error) {
	p, typed := a.RetryPolicy, a.RetryPolicyTypedConfig
	if p == nil && typed == nil {
		p, typed = vh.RetryPolicy, vh.RetryPolicyTypedConfig
	}
	if p != nil || typed == nil {
		return p, nil
	}
	p = &routev3.RetryPolicy{}
	if err := typed.UnmarshalTo(p); err != nil {
		return nil, fmt.Errorf("retry_policy_typed_config: %w", err)
	}
	return p, nil
}

// unsupported refuses by name what would silently do something else.
func unsupported(vh *routev3.VirtualHost, a *routev3.RouteAction) error {
	switch {
	case a.FlushTimeout != nil:
		return errors.New("flush_timeout is not supported yet")
	}
	return nil
}

func (c *compiler) timeouts(e *Entry, a *routev3.RouteAction) {
	e.RouteTimeout = 15 * time.Second
	if a.Timeout != nil {
		e.RouteTimeout = a.Timeout.AsDuration()
	}
	if a.IdleTimeout != nil {
		e.IdleTimeout, e.HasIdleTimeout = a.IdleTimeout.AsDuration(), true
	}
	if m := a.MaxStreamDuration; m != nil {
		if m.MaxStreamDuration != nil {
			e.MaxStreamDuration, e.HasMaxStreamDuration = m.MaxStreamDuration.AsDuration(), true
		}
		e.NewTimeouts = true
		if m.GrpcTimeoutHeaderMax != nil {
			e.GRPCTimeoutMax, e.HasGRPCTimeoutMax = m.GrpcTimeoutHeaderMax.AsDuration(), true
		}
		e.GRPCTimeoutOffset = m.GetGrpcTimeoutHeaderOffset().AsDuration()
	}
	if a.MaxGrpcTimeout != nil { //nolint:staticcheck // deprecated and still accepted
		e.GRPCTimeoutMax, e.HasGRPCTimeoutMax = a.MaxGrpcTimeout.AsDuration(), true //nolint:staticcheck // see above
		e.GRPCTimeoutOffset = a.GetGrpcTimeoutOffset().AsDuration()                 //nolint:staticcheck // see above
	}
}

func dur(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.AsDuration()
}

func (c *compiler) rewrites(e *Entry, a *routev3.RouteAction) (err error) {
	regex, policy := a.RegexRewrite != nil, a.PathRewritePolicy != nil
	if regex && policy || a.PrefixRewrite != "" && (regex || policy) {
		return errors.New("specify only one of prefix_rewrite, regex_rewrite or path_rewrite_policy")
	}
	if a.PrefixRewrite != "" {
		e.PrefixRewrite, e.HasPrefixRewrite = a.PrefixRewrite, true
	}
	if e.RegexRewrite, err = c.rewriteRegex(a.RegexRewrite); err != nil {
		return err
	}
	if a.PathRewrite != "" {
		if e.PathFormat, err = format.ParseHeader(a.PathRewrite, c.Format); err != nil {
			return err
		}
	}
	if p := a.PathRewritePolicy; p != nil {
		var cfg uritmplrv3.UriTemplateRewriteConfig
		if err := p.GetTypedConfig().UnmarshalTo(&cfg); err != nil {
			return err
		}
		if e.match.path.tmpl == nil {
			return errors.New("unable to use path_rewrite_policy without path_match_policy")
		}
		if e.TemplateRewrite, err = parseRewrite(cfg.PathTemplateRewrite, e.match.path.tmpl); err != nil {
			return err
		}
	}
	switch h := a.HostRewriteSpecifier.(type) {
	case *routev3.RouteAction_HostRewriteLiteral:
		e.HostRewrite = h.HostRewriteLiteral
	case *routev3.RouteAction_AutoHostRewrite:
		e.AutoHostRewrite = h.AutoHostRewrite.GetValue()
	case *routev3.RouteAction_HostRewriteHeader:
		e.HostRewriteHeader = strings.ToLower(h.HostRewriteHeader)
	case *routev3.RouteAction_HostRewritePathRegex:
		e.HostRewritePath, err = c.rewriteRegex(h.HostRewritePathRegex)
	case *routev3.RouteAction_HostRewrite:
		e.HostFormat, err = format.ParseText(h.HostRewrite, c.Format)
	}
	e.AppendXFH = a.AppendXForwardedHost
	return err
}
