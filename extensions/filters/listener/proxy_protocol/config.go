package proxy_protocol //nolint:revive // Envoy's name

import (
	"encoding/base64"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"

	"github.com/dragoman-proxy/dragoman/api/stats"
)

// defaultNamespace is where values of TLVs go if a rule does not say.
const defaultNamespace = "envoy.filters.listener.proxy_protocol"

// The indices of the filter's stats.
const (
	notFoundAllowed stats.CounterIndex = iota
	notFoundDisallowed
	v1Disallowed
	v1Error
	v1Found
	v2Disallowed
	v2Error
	v2Found
)

var template = stats.MustTemplate("proxy protocol filter",
	stats.Counter(notFoundAllowed, "not_found_allowed"),
	stats.Counter(notFoundDisallowed, "not_found_disallowed"),
	stats.Counter(v1Disallowed, "versions.v1.disallowed"),
	stats.Counter(v1Error, "versions.v1.error"),
	stats.Counter(v1Found, "versions.v1.found"),
	stats.Counter(v2Disallowed, "versions.v2.disallowed"),
	stats.Counter(v2Error, "versions.v2.error"),
	stats.Counter(v2Found, "versions.v2.found"),
)

// config is shared by all connections.
type config struct {
	stats stats.GroupBase
	// legacy counts all errors, under its old name.
	legacy stats.CounterID
	rules  []rule
	// optional lets connections without a header in.
	optional bool
	allowed  [3]bool // by version
}

// rule takes the value of a TLV into dynamic metadata.
type rule struct {
	tlv            byte
	namespace, key string
	encode         func(b []byte) string
}

func newConfig(p *proxyv3.ProxyProtocol, scope stats.Scope) *config {
	c := &config{optional: p.GetAllowRequestsWithoutProxyProtocol(), allowed: [3]bool{1: true, 2: true},
		legacy: scope.Counter("downstream_cx_proxy_proto_error")}
	s := scope.Scope("proxy_proto")
	if n := p.GetStatPrefix(); n != "" {
		s = s.Scope(n)
	}
	c.stats = s.Group(template)
	for _, v := range p.GetDisallowedVersions() {
		switch v {
		case corev3.ProxyProtocolConfig_V1:
			c.allowed[1] = false
		case corev3.ProxyProtocolConfig_V2:
			c.allowed[2] = false
		}
	}
	for _, r := range p.GetRules() {
		k := r.GetOnTlvPresent()
		if k == nil {
			continue
		}
		x := rule{tlv: byte(r.GetTlvType()), namespace: k.GetMetadataNamespace(), key: k.GetKey(), encode: text}
		if x.namespace == "" {
			x.namespace = defaultNamespace
		}
		if k.GetValueStringEncoding() == proxyv3.ProxyProtocol_KeyValuePair_BASE64 {
			x.encode = base64.StdEncoding.EncodeToString
		}
		c.rules = append(c.rules, x)
	}
	return c
}

// text makes valid UTF-8 of a value.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "!") }
