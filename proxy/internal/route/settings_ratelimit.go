package route

import (
	"errors"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/network"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// RateLimits compiles a list of rate_limits, of a route or of a filter's own configuration. formats: descriptor_value may be a format
// string everywhere (envoy.reloadable_features.enable_formatter_for_ratelimit_action_descriptor_value).
func RateLimits(list []*routev3.RateLimit, o *format.Options, formats bool) ([]aroute.RateLimit, error) {
	var out []aroute.RateLimit
	var errs config.Errors
	c := rateCompiler{o, formats}
	for i, x := range list {
		l, err := c.limit(x)
		errs.Collect(fmt.Sprintf("rate_limits[%d]", i), err)
		out = append(out, l)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

type rateCompiler struct {
	format  *format.Options
	formats bool
}

func (c rateCompiler) limit(x *routev3.RateLimit) (*rateLimit, error) {
	l := &rateLimit{stage: x.GetStage().GetValue(), disableKey: x.DisableKey, onDone: x.ApplyOnStreamDone}
	var errs config.Errors
	for i, a := range x.Actions {
		f, err := c.action(a)
		errs.Collect(fmt.Sprintf("actions[%d]", i), err)
		l.actions = append(l.actions, f)
	}
	switch o := x.GetLimit().GetOverrideSpecifier().(type) {
	case *routev3.RateLimit_Override_DynamicMetadata_:
		l.override = overrideOf(o.DynamicMetadata.GetMetadataKey())
	case *routev3.RateLimit_Override_RateLimit:
		fixed := &aroute.Limit{Requests: o.RateLimit.RequestsPerUnit, Unit: aroute.LimitUnit(o.RateLimit.Unit)}
		l.override = func(*aroute.RateLimitRequest) *aroute.Limit { return fixed }
	}
	switch x.XRatelimitOption {
	case routev3.RateLimit_OFF:
		l.headers = new(aroute.RateLimitHeaders)
	case routev3.RateLimit_DRAFT_VERSION_03:
		v := aroute.DraftVersion03
		l.headers = &v
	}
	errs.Collect("", c.hits(l, x.HitsAddend))
	return l, errs.Err()
}

func (c rateCompiler) hits(l *rateLimit, h *routev3.RateLimit_HitsAddend) error {
	if h == nil {
		return nil
	}
	l.refill = h.IsNegativeHits
	switch {
	case h.Number != nil && h.Format != "":
		return errors.New("hits_addend must have either number or format, not both")
	case h.Number != nil:
		n := h.Number.Value
		l.hits = func(*aroute.RateLimitRequest) (uint64, bool) { return n, true }
	case h.Format != "":
		f, err := format.ParseHeader(h.Format, c.format)
		if err != nil {
			return config.At("hits_addend.format", err)
		}
		l.hits = formatHits(f)
	}
	return nil
}

func (c rateCompiler) action(a *routev3.RateLimit_Action) (rateAction, error) {
	switch x := a.ActionSpecifier.(type) {
	case *routev3.RateLimit_Action_SourceCluster_:
		return sourceCluster, nil
	case *routev3.RateLimit_Action_DestinationCluster_:
		return destinationCluster, nil
	case *routev3.RateLimit_Action_RequestHeaders_:
		h := x.RequestHeaders
		return limitHeader(h.HeaderName, h.DescriptorKey, h.SkipIfAbsent), nil
	case *routev3.RateLimit_Action_QueryParameters_:
		return limitParam(x.QueryParameters), nil
	case *routev3.RateLimit_Action_RemoteAddress_:
		return remoteAddress, nil
	case *routev3.RateLimit_Action_MaskedRemoteAddress_:
		m := x.MaskedRemoteAddress
		return maskedAddress(bitsOr(m.V4PrefixMaskLen, 32), bitsOr(m.V6PrefixMaskLen, 128)), nil
	case *routev3.RateLimit_Action_GenericKey_:
		g := x.GenericKey
		return c.value(or(g.DescriptorKey, "generic_key"), g.DescriptorValue, g.DefaultValue, c.formats)
	case *routev3.RateLimit_Action_HeaderValueMatch_:
		return c.headerValue(x.HeaderValueMatch)
	case *routev3.RateLimit_Action_QueryParameterValueMatch_:
		return c.paramValue(x.QueryParameterValueMatch)
	case *routev3.RateLimit_Action_RemoteAddressMatch_:
		return c.addressValue(x.RemoteAddressMatch)
	case *routev3.RateLimit_Action_DynamicMetadata: //nolint:staticcheck // deprecated and still accepted
		d := x.DynamicMetadata
		return byValue(d.DescriptorKey, d.DefaultValue, false, dynamicValue(d.MetadataKey)), nil
	case *routev3.RateLimit_Action_Metadata:
		return metadataValue(x.Metadata)
	case *routev3.RateLimit_Action_Extension:
		return nil, config.At("extension", noDescriptor(x.Extension))
	}
	return nil, errors.New("an action is required")
}

// noDescriptor says of an extension for descriptors that it is not there: in Envoy, the inputs of matchers are some, too.
func noDescriptor(x *corev3.TypedExtensionConfig) error {
	url := config.PayloadURL(x.GetTypedConfig())
	name := url[strings.LastIndexByte(url, '/')+1:]
	if strings.HasPrefix(name, "envoy.type.matcher.v3.Http") && strings.HasSuffix(name, "MatchInput") {
		return &config.Error{Path: "typed_config", Kind: config.Unsupported, Extension: name, Msg: name + " as a descriptor: not supported yet"}
	}
	return config.Unregistered(x.GetName(), x.GetTypedConfig())
}

// value compiles what is put into a descriptor.
func (c rateCompiler) value(key, text, def string, formats bool) (rateAction, error) {
	if !formats {
		return formatted(key, nil, text, ""), nil
	}
	f, err := format.ParseHeader(text, c.format)
	if err != nil {
		return nil, config.At("descriptor_value", err)
	}
	if lit, ok := f.Literal(); ok {
		return formatted(key, nil, lit, def), nil
	}
	return formatted(key, f, "", def), nil
}

func (c rateCompiler) headerValue(x *routev3.RateLimit_Action_HeaderValueMatch) (rateAction, error) {
	list, err := HeaderMatchers(x.Headers)
	if err != nil {
		return nil, config.At("header_value_match.headers", err)
	}
	then, err := c.value(or(x.DescriptorKey, "header_match"), x.DescriptorValue, x.DefaultValue, c.formats)
	return ifHeaders(list, x.ExpectMatch == nil || x.ExpectMatch.Value, then), err
}

func (c rateCompiler) paramValue(x *routev3.RateLimit_Action_QueryParameterValueMatch) (rateAction, error) {
	list, err := paramMatchers(x.QueryParameters)
	if err != nil {
		return nil, config.At("query_parameter_value_match.query_parameters", err)
	}
	then, err := c.value(or(x.DescriptorKey, "query_match"), x.DescriptorValue, x.DefaultValue, c.formats)
	return ifParams(list, x.ExpectMatch == nil || x.ExpectMatch.Value, then), err
}

func (c rateCompiler) addressValue(x *routev3.RateLimit_Action_RemoteAddressMatch) (rateAction, error) {
	nets, err := match.Prefixes(x.GetAddressMatcher().GetRanges())
	if err != nil {
		return nil, config.At("remote_address_match.address_matcher", err)
	}
	then, err := c.value(or(x.DescriptorKey, "remote_address_match"), x.DescriptorValue, x.DefaultValue, true)
	return ifAddress(nets, x.GetAddressMatcher().GetInvertMatch(), then), err
}

func limitParam(x *routev3.RateLimit_Action_QueryParameters) rateAction {
	key := or(x.DescriptorKey, x.QueryParameterName)
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		v, ok := match.QueryParam(pathOf(r.Headers), x.QueryParameterName)
		if !ok {
			return absent(x.SkipIfAbsent)
		}
		return entry(key, v)
	}
}

func bitsOr(v *wrapperspb.UInt32Value, def int) int {
	if v == nil {
		return def
	}
	return int(v.Value)
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func pathOfKey(k *metadatav3.MetadataKey) []string {
	var path []string
	for _, p := range k.GetPath() {
		path = append(path, p.GetKey())
	}
	return path
}

// dynamicValue reads dynamic metadata.
func dynamicValue(k *metadatav3.MetadataKey) func(r *aroute.RateLimitRequest) (any, bool) {
	space, path := k.GetKey(), pathOfKey(k)
	return func(r *aroute.RateLimitRequest) (any, bool) {
		if !r.Info.HasMetadata() {
			return nil, false
		}
		return r.Info.Metadata().Get(space, path...)
	}
}

// metadataValue reads metadata of the request, or of its route or cluster.
func metadataValue(x *routev3.RateLimit_Action_MetaData) (rateAction, error) {
	space, path := x.MetadataKey.GetKey(), pathOfKey(x.MetadataKey)
	of := func(kind stream.MetadataKind) func(r *aroute.RateLimitRequest) (any, bool) {
		return func(r *aroute.RateLimitRequest) (any, bool) {
			if r.Info.Static == nil {
				return nil, false
			}
			tree := r.Info.Static.StaticMetadata(kind, space)
			if tree == nil {
				return nil, false
			}
			return network.Follow(tree, path...)
		}
	}
	get := dynamicValue(x.MetadataKey)
	switch x.Source {
	case routev3.RateLimit_Action_MetaData_DYNAMIC:
	case routev3.RateLimit_Action_MetaData_ROUTE_ENTRY:
		get = of(stream.RouteMetadata)
	case routev3.RateLimit_Action_MetaData_CLUSTER_ENTRY:
		get = of(stream.ClusterMetadata)
	default:
		return nil, fmt.Errorf("metadata.source %s is not supported yet", strings.ToLower(x.Source.String()))
	}
	return byValue(x.DescriptorKey, x.DefaultValue, x.SkipIfAbsent, get), nil
}

// overrideOf reads a limit from dynamic metadata: {requests_per_unit: 42, unit: HOUR}.
func overrideOf(k *metadatav3.MetadataKey) func(r *aroute.RateLimitRequest) *aroute.Limit {
	get := dynamicValue(k)
	units := map[string]aroute.LimitUnit{"SECOND": aroute.Second, "MINUTE": aroute.Minute, "HOUR": aroute.Hour, "DAY": aroute.Day,
		"MONTH": aroute.Month, "YEAR": aroute.Year, "UNKNOWN": aroute.UnknownUnit}
	return func(r *aroute.RateLimitRequest) *aroute.Limit {
		v, _ := get(r)
		m, _ := v.(map[string]any)
		n, ok := m["requests_per_unit"].(float64)
		name, _ := m["unit"].(string)
		unit, known := units[name]
		if !ok || !known {
			return nil
		}
		return &aroute.Limit{Requests: uint32(n), Unit: unit}
	}
}
