package hcm

import (
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	preservev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/header_formatters/preserve_case/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

func (c *Config) common(o *corev3.HttpProtocolOptions) {
	if o == nil {
		return
	}
	c.IdleTimeout = or(o.IdleTimeout, time.Hour)
	c.MaxConnectionDuration = or(o.MaxConnectionDuration, 0)
	c.MaxStreamDuration = or(o.MaxStreamDuration, 0)
	c.MaxRequests = int(o.GetMaxRequestsPerConnection().GetValue())
}

func (c *Config) codecs(p *hcmv3.HttpConnectionManager, d Deps) error {
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
		ValidateScheme:     c.UseRemoteAddress && c.XFFTrustedHops == 0,
		AllowCustomMethods: o.GetAllowCustomMethods(), Underscores: h1.Underscores(under),
	}
	c.H1.StrictChunks = c.feature("envoy.reloadable_features.strict_chunk_parsing", false)
	var errs config.Errors
	errs.Collect("http_protocol_options.header_key_format", H1HeaderFormat(&c.H1, o.GetHeaderKeyFormat()))
	errs.Collect("http_protocol_options", c.ignoreUpgrades(o.GetIgnoreHttp_11Upgrade()))
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
	return errs.Err()
}

// ignoreUpgrades is ignore_http_11_upgrade: requests to upgrade to these protocols are plain requests.
func (c *Config) ignoreUpgrades(list []*matcherv3.StringMatcher) error {
	var all []route.StringMatch
	for i, m := range list {
		f, err := route.StringMatcher(m)
		if err != nil {
			return config.At(fmt.Sprintf("ignore_http_11_upgrade[%d]", i), err)
		}
		all = append(all, f)
	}
	if len(all) > 0 {
		c.H1.IgnoreUpgrade = func(value string) bool {
			for _, f := range all {
				if f.Match(value) {
					return true
				}
			}
			return false
		}
	}
	return nil
}

// H1HeaderFormat sets how names of HTTP/1 headers are written.
func H1HeaderFormat(o *h1.Options, f *corev3.Http1ProtocolOptions_HeaderKeyFormat) error {
	switch x := f.GetHeaderFormat().(type) {
	case *corev3.Http1ProtocolOptions_HeaderKeyFormat_ProperCaseWords_:
		o.ProperCase = true
	case *corev3.Http1ProtocolOptions_HeaderKeyFormat_StatefulFormatter:
		var p preservev3.PreserveCaseFormatterConfig
		a := x.StatefulFormatter.GetTypedConfig()
		if !config.Holds(a, &p) {
			return config.Unregistered(x.StatefulFormatter.GetName(), a)
		}
		if err := config.Into(a, &p); err != nil {
			return err
		}
		reason, proper := p.ForwardReasonPhrase, p.FormatterTypeOnEnvoyHeaders == preservev3.PreserveCaseFormatterConfig_PROPER_CASE
		o.NewFormatter = func(*http.Arena) http.KeyFormatter {
			return &h1.PreserveCase{ForwardReason: reason, ProperEnvoy: proper}
		}
	}
	return nil
}

func shortURL(u string) string { return u[strings.LastIndexByte(u, '/')+1:] }

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
