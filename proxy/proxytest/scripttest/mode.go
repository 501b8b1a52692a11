package scripttest

import (
	"strings"
	"testing"
)

// Protocol is what a peer speaks with the proxy.
type Protocol uint8

// HTTP/1.1 and HTTP/2, plain (with prior knowledge) and over TLS (chosen by ALPN).
const (
	H1 Protocol = iota
	H1S
	H2C
	H2
)

func (p Protocol) String() string { return [...]string{"h1", "h1s", "h2c", "h2"}[p] }

// TLS tells whether it runs over TLS, Streams whether it is HTTP/2.
func (p Protocol) TLS() bool { return p == H1S || p == H2 }

// Streams tells whether it is HTTP/2, where a connection has many requests at a time, and lives on when one fails.
func (p Protocol) Streams() bool { return p >= H2C }

// Scheme is "http" or "https".
func (p Protocol) Scheme() string {
	if p.TLS() {
		return "https"
	}
	return "http"
}

// Name is the protocol's name in %PROTOCOL%.
func (p Protocol) Name() string {
	if p.Streams() {
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

// Mode is what clients (Down) and upstreams (Up) speak.
type Mode struct{ Down, Up Protocol }

// Modes are those that behaviour is tested in.
var Modes = []Mode{
	{H1, H1}, {H1, H2C}, {H1, H2}, {H2C, H1}, {H2C, H2C}, {H2C, H2},
	{H1S, H1}, {H1S, H2C}, {H1S, H2}, {H2, H1}, {H2, H2C}, {H2, H2},
}

func (m Mode) String() string { return m.Down.String() + " to " + m.Up.String() }

// Each runs a test of behaviour once in each mode. Requests and answers are written as text of HTTP/1 in all of them: where a peer
// speaks HTTP/2, heads become fields and bodies frames, and what comes back is written as text again. So a test is
//
//	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
//		p := m.Start(t, scripttest.Config{HCM: []string{"via: me"}}, scripttest.Upstream{Serve: ...})
//		a := p.Ask(scripttest.Request("/path", "x-a: b"))
//		... a.Status, a.Get("via"), a.Body, a.Whole
//	})
//
// Client.Got is the text itself, which has the transfer coding too where there is one; a Response is the same in all modes. What
// belongs to connections is not sent to peers with HTTP/2 (RFC 9113, section 8.2.2); an upgrade is an extended CONNECT there, and
// 101 its 200 (RFC 8441). A mode in which a behaviour cannot be the same is left out by Mode.Not, which says why.
func Each(t *testing.T, f func(t *testing.T, m Mode)) {
	t.Helper()
	for _, m := range Modes {
		t.Run(m.String(), func(t *testing.T) { f(t, m) })
	}
}

// Not leaves the modes out for which cond holds, and says why they differ.
func (m Mode) Not(t testing.TB, cond bool, why string) {
	t.Helper()
	if cond {
		t.Skipf("%v: %s", m, why)
	}
}

// Start starts a proxy whose peers speak what the mode says.
func (m Mode) Start(t testing.TB, c Config, upstreams ...Upstream) *Proxy {
	t.Helper()
	c.Mode = m
	return start(t, m, c.YAML(), upstreams)
}

const typeURL = "type.googleapis.com/envoy.extensions."

// downstream is the rest of the filter chain for a protocol, hcm what the connection manager needs for it.
func (p Protocol) downstream() string {
	if !p.TLS() {
		return ""
	}
	alpn := "http/1.1"
	if p.Streams() {
		alpn = "h2"
	}
	return `, transport_socket: {name: t, typed_config: {"@type": ` + typeURL + `transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {alpn_protocols: [` +
		alpn + `], tls_certificates: [{certificate_chain: {inline_string: ` + quote(identity().cert) + `}, private_key: {inline_string: ` + quote(identity().key) + `}}]}}}`
}

// Cluster is what a further cluster of the mode's upstreams needs to speak with them: fields of the message, each with ", " before it.
func (m Mode) Cluster() string {
	s := ""
	for _, f := range m.Up.upstream(nil) {
		s += ", " + f
	}
	return s
}

// upstream are the fields of a cluster for a protocol. more are further fields of its HttpProtocolOptions.
func (p Protocol) upstream(more []string) (fields []string) {
	if p.TLS() {
		fields = append(fields, `transport_socket: {name: t, typed_config: {"@type": `+typeURL+`transport_sockets.tls.v3.UpstreamTlsContext, sni: up.test, `+
			`common_tls_context: {validation_context: {trusted_ca: {inline_string: `+quote(identity().cert)+`}}}}}`)
	}
	if p.Streams() || len(more) > 0 {
		version := "http_protocol_options: {}"
		if p.Streams() {
			version = "http2_protocol_options: {allow_connect: true}"
		}
		fields = append(fields, `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": `+typeURL+
			`upstreams.http.v3.HttpProtocolOptions, `+strings.Join(append([]string{"explicit_http_config: {" + version + "}"}, more...), ", ")+`}}`)
	}
	return fields
}
