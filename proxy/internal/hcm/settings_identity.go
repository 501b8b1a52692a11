package hcm

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	headerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/original_ip_detection/custom_header/v3"
	xffv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/original_ip_detection/xff/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// identity takes over what says who a client is, and what is told of it.
func (c *Config) identity(p *hcmv3.HttpConnectionManager, d Deps) error {
	c.SchemeOverwrite = p.GetSchemeHeaderTransformation().GetSchemeToOverwrite()
	c.ProtoPorts = protoPorts(p.ForwardProtoConfig)
	c.MapIPv4 = p.RepresentIpv4RemoteAddressAsIpv4MappedIpv6
	if p.GetAddUserAgent().GetValue() {
		c.UserAgent, c.Node = d.Cluster, d.Node
	}
	var err error
	var errs config.Errors
	c.Internal, err = prefixes(p.GetInternalAddressConfig().GetCidrRanges())
	errs.Collect("internal_address_config.cidr_ranges", err)
	c.InternalUnix = p.GetInternalAddressConfig().GetUnixSockets()
	c.ClientCert = clientCert(p)
	c.CertMatcher, err = certMatcher(p.ForwardClientCertMatcher)
	errs.Collect("forward_client_cert_matcher", err)
	if p.GetUseRemoteAddress().GetValue() && len(p.OriginalIpDetectionExtensions) > 0 {
		errs.Collect("original_ip_detection_extensions", errors.New("Original IP detection extensions and use_remote_address may not be mixed")) //nolint:staticcheck // Envoy's text
	}
	if p.XffNumTrustedHops > 0 && len(p.OriginalIpDetectionExtensions) > 0 {
		errs.Collect("original_ip_detection_extensions", errors.New("Original IP detection extensions and xff_num_trusted_hops may not be mixed")) //nolint:staticcheck // Envoy's text
	}
	for i, e := range p.OriginalIpDetectionExtensions {
		det, err := detector(e)
		errs.Collect(fmt.Sprintf("original_ip_detection_extensions[%d]", i), err)
		c.Detection = append(c.Detection, det)
	}
	for i, e := range p.EarlyHeaderMutationExtensions {
		out, err := earlyMutations(e, d)
		errs.Collect(fmt.Sprintf("early_header_mutation_extensions[%d]", i), err)
		c.EarlyMutations = append(c.EarlyMutations, out)
	}
	return errs.Err()
}

func earlyMutations(e *corev3.TypedExtensionConfig, d Deps) (*route.Mutations, error) {
	var m earlyv3.HeaderMutation
	a := e.GetTypedConfig()
	if !config.Holds(a, &m) {
		return nil, config.Unregistered(e.GetName(), e.GetTypedConfig())
	}
	if err := config.Into(a, &m); err != nil {
		return nil, config.At("typed_config", err)
	}
	out, err := route.HeaderMutations(m.Mutations, d.Format)
	return out, config.At("typed_config.mutations", err)
}

func prefixes(list []*corev3.CidrRange) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, x := range list {
		a, err := netip.ParseAddr(x.AddressPrefix)
		if err != nil {
			return nil, config.At(fmt.Sprintf("[%d]", i), config.BadRange(x.AddressPrefix))
		}
		out = append(out, netip.PrefixFrom(a, min(int(x.GetPrefixLen().GetValue()), a.BitLen())).Masked())
	}
	return out, nil
}

// usable are the prefixes of a list that are some: Envoy takes a list with others, which nobody is in.
func usable(list []*corev3.CidrRange) (out []netip.Prefix) {
	for i := range list {
		if one, err := prefixes(list[i : i+1]); err == nil {
			out = append(out, one...)
		}
	}
	return out
}

// detector builds one way to find out who the client is.
func detector(e *corev3.TypedExtensionConfig) (Detector, error) {
	a := e.GetTypedConfig()
	var h headerv3.CustomHeaderConfig
	var x xffv3.XffConfig
	switch {
	case config.Holds(a, &h):
		if err := config.Into(a, &h); err != nil {
			return nil, err
		}
		out := &headerDetector{name: strings.ToLower(h.HeaderName), trusted: h.AllowExtensionToSetAddressAsTrusted}
		if s := h.RejectWithStatus; s != nil {
			if out.reject = int(s.Code); out.reject < 400 || out.reject > 511 {
				out.reject = 403
			}
		}
		return out, nil
	case config.Holds(a, &x):
		if err := config.Into(a, &x); err != nil {
			return nil, err
		}
		if x.XffTrustedCidrs != nil && x.XffNumTrustedHops > 0 {
			return nil, errors.New("Cannot set both xff_num_trusted_hops and xff_trusted_cidrs") //nolint:staticcheck // Envoy's text
		}
		return &xffDetector{hops: int(x.XffNumTrustedHops), trusted: usable(x.GetXffTrustedCidrs().GetCidrs()), append: x.SkipXffAppend != nil && !x.SkipXffAppend.Value}, nil
	}
	return nil, config.Unregistered(e.GetName(), e.GetTypedConfig())
}

// paths takes over the rules for paths.
func (c *Config) paths(p *hcmv3.HttpConnectionManager) {
	if p.NormalizePath != nil {
		c.NormalizePath = p.NormalizePath.Value
	} else if c.Runtime != nil {
		n, d := c.Runtime.Fraction("http_connection_manager.normalize_path", 0, 100)
		c.NormalizePath = d > 0 && n >= d
	}
	action := p.PathWithEscapedSlashesAction
	if action == hcmv3.HttpConnectionManager_IMPLEMENTATION_SPECIFIC_DEFAULT {
		action = hcmv3.HttpConnectionManager_PathWithEscapedSlashesAction(c.uint("http_connection_manager.path_with_escaped_slashes_action", 0))
	}
	switch action {
	case hcmv3.HttpConnectionManager_REJECT_REQUEST:
		c.EscapedSlashes = RejectSlashes
	case hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT:
		c.EscapedSlashes = RedirectSlashes
	case hcmv3.HttpConnectionManager_UNESCAPE_AND_FORWARD:
		c.EscapedSlashes = UnescapeSlashes
	}
}

// logging takes over when access logs are written.
func (c *Config) logging(p *hcmv3.HttpConnectionManager) error {
	c.LogStart, c.LogInterval = p.FlushAccessLogOnNewRequest, or(p.AccessLogFlushInterval, 0) //nolint:staticcheck // deprecated and still accepted
	if o := p.AccessLogOptions; o != nil {
		switch {
		case p.AccessLogFlushInterval != nil: //nolint:staticcheck // deprecated and still accepted
			return onlyOne("access_log_flush_interval")
		case p.FlushAccessLogOnNewRequest: //nolint:staticcheck // deprecated and still accepted
			return onlyOne("flush_access_log_on_new_request")
		}
		c.LogStart, c.LogInterval = o.FlushAccessLogOnNewRequest, or(o.AccessLogFlushInterval, 0)
		c.LogTunnel = o.FlushLogOnTunnelSuccessfullyEstablished
	}
	return nil
}

// onlyOne is the error about an old field beside the options that have taken its place.
func onlyOne(old string) error {
	return config.At("access_log_options", errors.New("Only one of "+old+" or access_log_options can be specified.")) //nolint:staticcheck // Envoy's text
}

// protoPorts are the destination ports of forward_proto_config. A port of both lists is one of https.
func protoPorts(p *hcmv3.ForwardProtoConfig) map[uint16]string {
	if p == nil {
		return nil
	}
	out := map[uint16]string{}
	for _, n := range p.HttpDestinationPorts {
		out[uint16(n)] = "http"
	}
	for _, n := range p.HttpsDestinationPorts {
		out[uint16(n)] = "https"
	}
	return out
}

// certDetails are the messages that say what is told of a client's certificate.
type certDetails interface {
	GetForwardClientCertDetails() hcmv3.HttpConnectionManager_ForwardClientCertDetails
	GetSetCurrentClientCertDetails() *hcmv3.HttpConnectionManager_SetCurrentClientCertDetails
}

func clientCert(p certDetails) ClientCert {
	x := p.GetSetCurrentClientCertDetails()
	return ClientCert{Mode: CertMode(p.GetForwardClientCertDetails()), Subject: x.GetSubject().GetValue(), Cert: x.GetCert(), Chain: x.GetChain(),
		DNS: x.GetDns(), URI: x.GetUri(), Issuer: x.GetIssuer(), JSON: x.GetFormat() == hcmv3.HttpConnectionManager_JSON}
}

func certMatcher(m *xdsmatcherv3.Matcher) (*match.Tree[*ClientCert], error) {
	if m == nil {
		return nil, nil
	}
	return match.New(m, match.Options[*ClientCert]{Action: func(_ string, a *anypb.Any) (*ClientCert, error) {
		var p hcmv3.HttpConnectionManager_ForwardClientCertConfig
		if err := config.Into(a, &p); err != nil {
			return nil, err
		}
		c := clientCert(&p)
		return &c, nil
	}})
}
