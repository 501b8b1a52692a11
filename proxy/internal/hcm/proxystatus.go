package hcm

import (
	"strconv"
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// ProxyStatus says what responses tell of what went wrong here (proxy_status_config; RFC 9209).
type ProxyStatus struct {
	// Name is who says it.
	Name string
	// Details, Termination and Flags are what the details parameter holds.
	Details, Termination, Flags bool
	// SetCode makes the status the one that RFC 9209 recommends for the error.
	SetCode bool
}

// proxyErrors are the error types of the response flags, in the order in which they are looked for, with the recommended status.
var proxyErrors = [...]struct {
	flag stream.Flag
	name string
	code int
}{
	{stream.FailedLocalHealthCheck, "destination_unavailable", 503},
	{stream.NoHealthyUpstream, "destination_unavailable", 503},
	{stream.UpstreamRequestTimeout, "http_response_timeout", 504},
	{stream.LocalReset, "connection_timeout", 504},
	{stream.UpstreamRemoteReset, "connection_terminated", 502},
	{stream.UpstreamConnectionFailure, "connection_refused", 502},
	{stream.UpstreamConnectionTermination, "connection_terminated", 502},
	{stream.UpstreamOverflow, "connection_limit_reached", 503},
	{stream.NoRouteFound, "destination_not_found", 500},
	{stream.RateLimited, "connection_limit_reached", 503},
	{stream.RateLimitServiceError, "connection_limit_reached", 503},
	{stream.UpstreamRetryLimitExceeded, "destination_unavailable", 503},
	{stream.StreamIdleTimeout, "http_response_timeout", 504},
	{stream.InvalidEnvoyRequestHeaders, "http_request_error", 400},
	{stream.DownstreamProtocolError, "http_request_error", 400},
	{stream.UpstreamMaxStreamDurationReached, "http_response_timeout", 504},
	{stream.NoFilterConfigFound, "proxy_configuration_error", 500},
	{stream.UpstreamProtocolError, "http_protocol_error", 502},
	{stream.NoClusterFound, "destination_unavailable", 503},
	{stream.DNSResolutionFailed, "dns_error", 502},
}

func proxyStatus(p *hcmv3.HttpConnectionManager, node string) *ProxyStatus {
	c := p.ProxyStatusConfig
	if c == nil {
		return nil
	}
	out := &ProxyStatus{Name: "envoy", Details: !c.RemoveDetails, Termination: !c.RemoveConnectionTerminationDetails,
		Flags: !c.RemoveResponseFlags, SetCode: c.SetRecommendedResponseCode}
	if p.ServerName != "" {
		out.Name = p.ServerName
	}
	switch x := c.ProxyName.(type) {
	case *hcmv3.HttpConnectionManager_ProxyStatusConfig_UseNodeId:
		out.Name = node
	case *hcmv3.HttpConnectionManager_ProxyStatusConfig_LiteralProxyName:
		out.Name = x.LiteralProxyName
	}
	return out
}

// apply adds the proxy-status of a stream on which something went wrong.
func (p *ProxyStatus) apply(s *Stream, h *http.HeaderMap) {
	inf := &s.inf
	for _, e := range &proxyErrors {
		if !inf.Flags.Has(e.flag) {
			continue
		}
		appendList(h, http.ProxyStatus, ", ", s.arena.String(p.text(e.name, inf)))
		if p.SetCode {
			h.SetConst(http.Status, statusText(e.code, &s.arena))
		}
		return
	}
}

func (p *ProxyStatus) text(kind string, inf *stream.Info) string {
	text := p.Name + "; error=" + kind
	if !p.Details || inf.Details == "" {
		return text
	}
	details := inf.Details
	if p.Termination && inf.TerminationDetails != "" {
		details += "; " + inf.TerminationDetails
	}
	if p.Flags && inf.Flags.Any() {
		details += "; " + string(inf.Flags.AppendShort(nil))
	}
	return text + `; details="` + escape(details) + `"`
}

// escape makes a text fit between quotes.
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '"', '\'', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			if c < 0x20 || c == 0x7f {
				b.WriteString(`\x` + strconv.FormatUint(uint64(c), 16))
				continue
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}
