package route

import (
	"errors"
	"fmt"
	"google.golang.org/protobuf/types/known/anypb"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/early_data/v3"
	uritmplrv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/rewrite/uri_template/v3"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

func (c *compiler) forward(h *hostBuilder, e *Entry, a *routev3.RouteAction, resp [][]mutation) error {
	vh := h.vh
	var err error
	var errs config.Errors
	switch a.ClusterNotFoundResponseCode {
	case routev3.RouteAction_NOT_FOUND:
		e.NotFoundCode = 404
	case routev3.RouteAction_INTERNAL_SERVER_ERROR:
		e.NotFoundCode = 500
	}
	c.timeouts(e, a)
	if x := a.EarlyDataPolicy; x != nil && !config.Holds(x.GetTypedConfig(), &earlyv3.DefaultEarlyDataPolicy{}) {
		errs.Collect("early_data_policy", config.Unregistered(x.GetName(), x.GetTypedConfig()))
	}
	e.HighPriority = a.Priority == 1
	e.TimeoutRetryHeader = vh.IncludeIsTimeoutRetryHeader
	e.Hedge = a.HedgePolicy.GetHedgeOnPerTryTimeout() || a.HedgePolicy == nil && vh.HedgePolicy.GetHedgeOnPerTryTimeout()
	e.HashPolicy, err = c.hashPolicy(a.HashPolicy)
	errs.Collect("hash_policy", err)
	e.rateLimits, err = RateLimits(a.RateLimits, c.Format, c.formats())
	errs.Collect("", err)
	e.includeHostRateLimits = a.GetIncludeVhRateLimits().GetValue()
	if a.RetryPolicy != nil || a.RetryPolicyTypedConfig != nil {
		e.Retry, err = c.retryPolicy(a.RetryPolicy, a.RetryPolicyTypedConfig)
		errs.Collect("", err)
	} else {
		e.Retry = h.retry()
	}
	e.Mirrors, err = c.mirrors(h, a)
	errs.Collect("request_mirror_policies", err)
	e.InternalRedirect, err = internalRedirect(a)
	errs.Collect("internal_redirect_policy", err)
	errs.Collect("", c.rewrites(e, a))
	errs.Collect("upgrade_configs", e.upgrades(a.UpgradeConfigs))
	errs.Collect("", c.cluster(e, a, resp))
	return errs.Err()
}

// upgrades reads which other protocols the route's requests may have.
func (e *Entry) upgrades(list []*routev3.RouteAction_UpgradeConfig) error {
	var errs config.Errors
	for i, u := range list {
		errs.Collect(fmt.Sprintf("[%d]", i), e.upgrade(u))
	}
	return errs.Err()
}

func (e *Entry) upgrade(u *routev3.RouteAction_UpgradeConfig) error {
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
		return config.At("connect_config", errors.New("of CONNECT-UDP: not supported yet"))
	case name != "connect":
		return fmt.Errorf("Non-CONNECT upgrade type %s has ConnectConfig", u.UpgradeType) //nolint:staticcheck // Envoy's text
	case c.ProxyProtocolConfig != nil:
		return config.At("connect_config.proxy_protocol_config", errNotYet)
	default:
		e.Connect = &ConnectConfig{AllowPost: c.AllowPost}
	}
	return nil
}

// retryPolicy compiles a policy, which is in one of two fields; nil: there is none.
func (c *compiler) retryPolicy(p *routev3.RetryPolicy, typed *anypb.Any) (*RetryPolicy, error) {
	switch {
	case p != nil:
		out, err := c.retry(p)
		return out, config.At("retry_policy", err)
	case typed == nil:
		return nil, nil
	}
	p = &routev3.RetryPolicy{}
	if err := typed.UnmarshalTo(p); err != nil {
		return nil, config.At("retry_policy_typed_config", err)
	}
	out, err := c.retry(p)
	return out, config.At("retry_policy_typed_config", err)
}

func (c *compiler) timeouts(e *Entry, a *routev3.RouteAction) {
	e.RouteTimeout = 15 * time.Second
	if a.Timeout != nil {
		e.RouteTimeout = a.Timeout.AsDuration()
	}
	if a.IdleTimeout != nil {
		e.IdleTimeout, e.HasIdleTimeout = a.IdleTimeout.AsDuration(), true
	}
	if a.FlushTimeout != nil {
		e.FlushTimeout, e.HasFlushTimeout = a.FlushTimeout.AsDuration(), true
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
	var errs config.Errors
	regex, policy := a.RegexRewrite != nil, a.PathRewritePolicy != nil
	if regex && policy || a.PrefixRewrite != "" && (regex || policy) {
		errs.Collect("", errors.New("specify only one of prefix_rewrite, regex_rewrite or path_rewrite_policy"))
	}
	if a.PrefixRewrite != "" {
		e.PrefixRewrite, e.HasPrefixRewrite = a.PrefixRewrite, true
	}
	e.RegexRewrite, err = c.rewriteRegex(a.RegexRewrite)
	errs.Collect("regex_rewrite", err)
	if a.PathRewrite != "" {
		e.PathFormat, err = format.ParseHeader(a.PathRewrite, c.Format)
		errs.Collect("path_rewrite", err)
	}
	if policy {
		errs.Collect("path_rewrite_policy", e.rewriteTemplate(a.PathRewritePolicy))
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
		errs.Collect("host_rewrite_path_regex", err)
	case *routev3.RouteAction_HostRewrite:
		e.HostFormat, err = format.ParseText(h.HostRewrite, c.Format)
		errs.Collect("host_rewrite", err)
	}
	e.AppendXFH = a.AppendXForwardedHost
	return errs.Err()
}

// rewriteTemplate takes over a path_rewrite_policy.
func (e *Entry) rewriteTemplate(p *corev3.TypedExtensionConfig) (err error) {
	var cfg uritmplrv3.UriTemplateRewriteConfig
	a := p.GetTypedConfig()
	switch {
	case !config.Holds(a, &cfg):
		return config.Unregistered(p.GetName(), a)
	case e.match.path.kind == pathTemplate && e.match.path.tmpl == nil:
		return nil // the template is wrong, which is told already
	case e.match.path.tmpl == nil:
		return errors.New("unable to use path_rewrite_policy without path_match_policy")
	}
	if err := config.Into(a, &cfg); err != nil {
		return err
	}
	e.TemplateRewrite, err = parseRewrite(cfg.PathTemplateRewrite, e.match.path.tmpl)
	return config.At("typed_config.path_template_rewrite", err)
}
