package tls

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Deps is what building contexts needs. owner: main loop.
type Deps struct {
	// Scope is the listener's or the cluster's.
	Scope astats.Scope
	// Match compiles a string matcher.
	Match func(m *matcherv3.StringMatcher) (interface{ Match(string) bool }, error)
	// Secrets finds the secrets of sds_secret_config entries; nil: there are none.
	Secrets Secrets
	// SetGauge gives a gauge its value, as stats.Store does; nil: nobody is told when certificates end.
	SetGauge func(id astats.GaugeID, v uint64)
	// Count counts one on the main loop; nil: nobody does.
	Count func(id astats.CounterID)
}

// Secrets finds secrets by configuration.
type Secrets interface {
	// Certificate and Validation return what gives the current secret, nil if it has not come yet; changed is called on the main loop
	// whenever that changes. release says that nobody asks any more.
	Certificate(c *tlsv3.SdsSecretConfig, changed func()) (current func() *tlsv3.TlsCertificate, release func(), err error)
	Validation(c *tlsv3.SdsSecretConfig, changed func()) (current func() *tlsv3.CertificateValidationContext, release func(), err error)
}

// ErrNotReady says that a secret has not come yet.
const errNotReady = "TLS_error: Secret is not supplied by SDS"

// Server makes the transport sockets of accepted connections. The context in it may be replaced while it serves.
type Server struct {
	ctx atomic.Pointer[Context]
	b   *builder
}

// Close gives the secrets and the stats up: no connection begins any more, and those that there are go on. owner: main loop.
func (s *Server) Close() { s.b.close() }

// New returns the transport of one accepted connection.
func (s *Server) New(*event.Worker) conn.Transport {
	if x := s.ctx.Load(); x != nil {
		return &Transport{ctx: x}
	}
	return notReady{s.b.factory.Counter(stats.SSLFactoryDownstreamContextSecretsNotReady)}
}

// Client makes the transport sockets of connections to upstreams.
type Client struct {
	ctx atomic.Pointer[Context]
	b   *builder
}

// Close is Server.Close.
func (c *Client) Close() { c.b.close() }

// New returns the transport of one connection to h, which offers alpn if the context names no protocols.
func (c *Client) New(w *event.Worker, h *host.Host, alpn []string) (conn.Transport, string) {
	x := c.ctx.Load()
	if x == nil {
		w.Stats.Inc(c.b.factory.Counter(stats.SSLFactoryUpstreamContextSecretsNotReady))
		return nil, errNotReady
	}
	cfg := x.offering(alpn)
	if x.autoHostSNI && h.Hostname != "" {
		cfg = cfg.Clone()
		cfg.ServerName = h.Hostname
	}
	if x.autoSAN && cfg.ServerName != "" {
		cfg = cfg.Clone()
		x.named(cfg, cfg.ServerName)
	}
	if cfg != x.config {
		y := *x
		y.config = cfg
		x = &y
	}
	return &Transport{ctx: x}, ""
}

// NewNamed is New for a connection whose server name, or whose certificate's name, the request says.
func (c *Client) NewNamed(w *event.Worker, h *host.Host, alpn []string, sni, san string) (conn.Transport, string) {
	t, failure := c.New(w, h, alpn)
	if failure != "" {
		return nil, failure
	}
	tr := t.(*Transport)
	x := *tr.ctx
	cfg := x.config.Clone()
	if sni != "" {
		cfg.ServerName = sni
	}
	if san != "" {
		x.named(cfg, san)
	}
	x.config = cfg
	tr.ctx = &x
	return tr, ""
}

// named makes cfg want a certificate for a name, if it checks certificates at all.
func (x *Context) named(cfg *tls.Config, name string) {
	if x.verifier == nil {
		return
	}
	v := *x.verifier
	v.name = name
	cfg.VerifyConnection = v.verify
}

// NewServer builds a server side from its configuration.
func NewServer(p *tlsv3.DownstreamTlsContext, d Deps) (*Server, error) {
	if err := config.Refuse(downstreamGaps, p, ""); err != nil {
		return nil, err
	}
	b, err := newBuilder(p.GetCommonTlsContext(), d, "server_ssl_socket_factory")
	if err != nil {
		return nil, err
	}
	if len(b.certs) == 0 { // also if something else is still to come
		b.close()
		return nil, config.At("common_tls_context", errors.New("No TLS certificates found for server context")) //nolint:staticcheck // Envoy's text
	}
	s, group := &Server{b: b}, b.stats
	build := func() (*Context, error) {
		x := &Context{stats: group}
		cfg, err := b.common(x, false)
		if err != nil || cfg == nil {
			return nil, err
		}
		if x.verifier != nil {
			x.verifier.serve(cfg, p.GetRequireClientCertificate().GetValue())
		}
		if p.GetDisableStatelessSessionResumption() && p.GetDisableStatefulSessionResumption() || p.GetDisableStatelessSessionResumption() {
			cfg.SessionTicketsDisabled = true
		}
		if keys := p.GetSessionTicketKeys(); keys != nil {
			if err := ticketKeys(cfg, keys); err != nil {
				return nil, config.At("session_ticket_keys", err)
			}
		}
		chooseCertificate(cfg)
		tolerateALPN(cfg)
		x.config = cfg
		return x, nil
	}
	x, err := build()
	if err != nil {
		b.close()
		return nil, err
	}
	s.ctx.Store(x)
	b.onChange(func() error { return replace(&s.ctx, build) })
	return s, nil
}

func replace(p *atomic.Pointer[Context], build func() (*Context, error)) error {
	x, err := build()
	if err == nil && x != nil {
		p.Store(x)
	}
	return err
}

func ticketKeys(cfg *tls.Config, keys *tlsv3.TlsSessionTicketKeys) error {
	var list [][32]byte
	for _, k := range keys.Keys {
		b, err := secret.ReadSource(k)
		if err != nil {
			return err
		}
		if len(b) != 80 {
			return fmt.Errorf("Incorrect TLS session ticket key length. Length %d, expected length 80.", len(b)) //nolint:staticcheck // Envoy's text
		}
		list = append(list, [32]byte(b[16:48]))
	}
	cfg.SetSessionTicketKeys(list)
	return nil
}

// NewClient builds a client side from its configuration.
func NewClient(p *tlsv3.UpstreamTlsContext, d Deps) (*Client, error) {
	if err := config.Refuse(upstreamGaps, p, ""); err != nil {
		return nil, err
	}
	common := p.GetCommonTlsContext()
	if max(len(common.GetTlsCertificates()), len(common.GetTlsCertificateSdsSecretConfigs())) > 1 {
		return nil, config.At("common_tls_context", errors.New("Multiple TLS certificates are not supported for client contexts")) //nolint:staticcheck // Envoy's text
	}
	b, err := newBuilder(common, d, "client_ssl_socket_factory")
	if err != nil {
		return nil, err
	}
	c, group := &Client{b: b}, b.stats
	if err := checkClient(p); err != nil {
		b.close()
		return nil, err
	}
	build := func() (*Context, error) {
		x := &Context{client: true, stats: group, autoHostSNI: p.GetAutoHostSni(), autoSAN: p.GetAutoSniSanValidation()}
		cfg, err := b.common(x, true)
		if err != nil || cfg == nil {
			return nil, err
		}
		cfg.ServerName = p.GetSni()
		if n := p.GetMaxSessionKeys(); n == nil || n.Value > 0 {
			cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		}
		x.config = cfg
		if len(cfg.NextProtos) == 0 {
			for i, protos := range [][]string{{"http/1.1"}, {"h2"}, {"h2", "http/1.1"}} {
				x.alpn[i] = cfg.Clone()
				x.alpn[i].NextProtos = protos
			}
		}
		return x, nil
	}
	x, err := build()
	if err != nil {
		b.close()
		return nil, err
	}
	c.ctx.Store(x)
	b.onChange(func() error { return replace(&c.ctx, build) })
	return c, nil
}

// checkClient looks at what only clients have. The errors are Envoy's.
func checkClient(p *tlsv3.UpstreamTlsContext) error {
	switch {
	case strings.ContainsRune(p.GetSni(), 0):
		return config.At("sni", errors.New("SNI names containing NULL-byte are not allowed")) //nolint:staticcheck // Envoy's text
	case p.GetAutoSniSanValidation() && p.GetCommonTlsContext().GetValidationContextType() == nil:
		return config.At("auto_sni_san_validation", errors.New("'auto_sni_san_validation' was configured without a validation context"))
	}
	return nil
}

// builder holds what both sides have in common.
type builder struct {
	p     *tlsv3.CommonTlsContext
	d     Deps
	certs []func() *tlsv3.TlsCertificate
	valid func() *tlsv3.CertificateValidationContext
	// validPath is where valid stands in p.
	validPath string
	changed   func() error
	stats     astats.GroupBase
	factory   astats.GroupBase          // stats.SSLFactory
	expiries  map[string]astats.GaugeID // by the names of certificates
	release   []func()
}

func (b *builder) onChange(f func() error) { b.changed = f }

// close gives back what was taken, once.
func (b *builder) close() {
	list := b.release
	b.release, b.changed = nil, nil
	for _, f := range list {
		f()
	}
}

// newBuilder registers stats and subscribes to secrets. factory is the name of the factory's stats.
func newBuilder(p *tlsv3.CommonTlsContext, d Deps, factory string) (*builder, error) {
	b := &builder{p: p, d: d}
	ssl, own := d.Scope.Scope("ssl"), d.Scope.Scope(factory)
	b.stats = ssl.Group(stats.SSL)
	b.factory = own.Group(stats.SSLFactory)
	b.release = append(b.release, func() { ssl.Release(stats.SSL); own.Release(stats.SSLFactory) })
	if err := b.read(); err != nil {
		b.close()
		return nil, config.At("common_tls_context", err)
	}
	return b, nil
}

func (b *builder) read() error {
	p, d := b.p, b.d
	if err := config.Refuse(commonGaps, p, ""); err != nil {
		return err
	}
	if len(p.GetTlsCertificates()) > 0 && len(p.GetTlsCertificateSdsSecretConfigs()) > 0 {
		return errors.New("SDS and non-SDS TLS certificates may not be mixed in server contexts: cannot have both tls_certificates and tls_certificate_sds_secret_configs")
	}
	for _, c := range p.GetTlsCertificates() {
		b.certs = append(b.certs, func() *tlsv3.TlsCertificate { return c })
	}
	var errs config.Errors
	for i, c := range p.GetTlsCertificateSdsSecretConfigs() {
		if d.Secrets == nil {
			return config.At("tls_certificate_sds_secret_configs", errors.New("not supported yet"))
		}
		f, release, err := d.Secrets.Certificate(c, b.notify(c))
		if errs.Collect(fmt.Sprintf("tls_certificate_sds_secret_configs[%d]", i), err) {
			b.certs, b.release = append(b.certs, f), append(b.release, release)
			b.came(c, f() != nil)
		}
	}
	errs.Collect("", b.validation())
	return errs.Err()
}

// notify returns what follows a change of the secret c.
func (b *builder) notify(c *tlsv3.SdsSecretConfig) func() {
	return func() {
		b.came(c, true)
		if b.changed != nil {
			_ = b.changed()
		}
	}
}

// came counts a secret that came over SDS, also one that others had before.
func (b *builder) came(c *tlsv3.SdsSecretConfig, there bool) {
	if there && c.GetSdsConfig() != nil && b.d.Count != nil {
		b.d.Count(b.factory.Counter(stats.SSLFactorySslContextUpdateBySds))
	}
}

func (b *builder) validation() error {
	sds := func(c *tlsv3.SdsSecretConfig) (func() *tlsv3.CertificateValidationContext, error) {
		if b.d.Secrets == nil {
			return nil, errors.New("not supported yet")
		}
		f, release, err := b.d.Secrets.Validation(c, b.notify(c))
		if err == nil {
			b.release = append(b.release, release)
			b.came(c, f() != nil)
		}
		return f, err
	}
	var err error
	switch v := b.p.GetValidationContextType().(type) {
	case *tlsv3.CommonTlsContext_ValidationContext:
		b.validPath = "validation_context"
		b.valid = func() *tlsv3.CertificateValidationContext { return v.ValidationContext }
	case *tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig:
		b.validPath = "validation_context_sds_secret_config"
		b.valid, err = sds(v.ValidationContextSdsSecretConfig)
		err = config.At(b.validPath, err)
	case *tlsv3.CommonTlsContext_CombinedValidationContext:
		b.validPath = "combined_validation_context"
		var dyn func() *tlsv3.CertificateValidationContext
		if dyn, err = sds(v.CombinedValidationContext.ValidationContextSdsSecretConfig); err == nil {
			b.valid = func() *tlsv3.CertificateValidationContext {
				return merge(v.CombinedValidationContext.DefaultValidationContext, dyn())
			}
		}
		err = config.At("combined_validation_context.validation_context_sds_secret_config", err)
	case nil:
	default:
		err = errors.New("this kind of validation context is not supported yet")
	}
	return err
}

// common builds the configuration of both sides; nil without an error means that a secret is missing.
func (b *builder) common(x *Context, client bool) (*tls.Config, error) {
	cfg, err := b.build(x, client)
	return cfg, config.At("common_tls_context", err)
}

func (b *builder) build(x *Context, client bool) (*tls.Config, error) {
	cfg := &tls.Config{
		DynamicRecordSizingDisabled: true, // sizes are chosen by what a pass wrote
		NextProtos:                  b.p.GetAlpnProtocols(),
		InsecureSkipVerify:          true, //nolint:gosec // the verifier below checks what Envoy checks, which is not the host name
		Rand:                        rand.Reader,
	}
	for i, name := range cfg.NextProtos {
		if len(name) > maxALPN {
			return nil, config.At(fmt.Sprintf("alpn_protocols[%d]", i), errors.New("Invalid ALPN protocol string")) //nolint:staticcheck // Envoy's text
		}
	}
	missing := false
	var cas []byte
	var errs config.Errors
	for i, f := range b.certs {
		p := f()
		if p == nil {
			missing = true
			continue
		}
		c, err := secret.Certificate(p)
		if !errs.Collect(b.certPath(i), err) {
			continue
		}
		cfg.Certificates = append(cfg.Certificates, *c)
		x.note(p.GetCertificateChain(), c.Certificate[0], false)
	}
	if b.valid != nil {
		p := b.valid()
		if p == nil {
			return nil, errs.Err()
		}
		// What is written is looked at even if a certificate is still to come.
		v, err := b.verifierOf(p, func(text []byte) { cas = text })
		if errs.Collect(b.validPath, err) {
			x.verifier = v
			x.noteCA(p.GetTrustedCa(), cas)
			cfg.VerifyConnection = v.verify
		}
	}
	if !missing {
		errs.Collect("tls_params", params(cfg, b.p.GetTlsParams(), client))
	}
	if missing || errs.Len() > 0 {
		return nil, errs.Err()
	}
	b.tellExpiries(cfg.Certificates, cas)
	return cfg, nil
}

// maxALPN is how long the name of a protocol may be (RFC 7301, section 3.1).
const maxALPN = 255

// certPath is where certificate i stands in p: all of them are written there, or all are secrets.
func (b *builder) certPath(i int) string {
	if len(b.p.GetTlsCertificates()) > 0 {
		return fmt.Sprintf("tls_certificates[%d]", i)
	}
	return fmt.Sprintf("tls_certificate_sds_secret_configs[%d]", i)
}

var versions = map[tlsv3.TlsParameters_TlsProtocol]uint16{
	tlsv3.TlsParameters_TLSv1_0: tls.VersionTLS10, tlsv3.TlsParameters_TLSv1_1: tls.VersionTLS11,
	tlsv3.TlsParameters_TLSv1_2: tls.VersionTLS12, tlsv3.TlsParameters_TLSv1_3: tls.VersionTLS13,
}

var curves = map[string]tls.CurveID{
	"X25519": tls.X25519, "P-256": tls.CurveP256, "P-384": tls.CurveP384, "P-521": tls.CurveP521, "X25519MLKEM768": tls.X25519MLKEM768,
}

// params sets versions, cipher suites and curves: Envoy's defaults are TLS 1.2 to 1.3 for servers and 1.2 only for clients. A minimum
// above the maximum, as a client has with a minimum of 1.3 alone, is a configuration with which no handshake succeeds.
func params(cfg *tls.Config, p *tlsv3.TlsParameters, client bool) error {
	cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS12, tls.VersionTLS13
	if client {
		cfg.MaxVersion = tls.VersionTLS12
	}
	if v, ok := versions[p.GetTlsMinimumProtocolVersion()]; ok {
		cfg.MinVersion = v
	}
	if v, ok := versions[p.GetTlsMaximumProtocolVersion()]; ok {
		cfg.MaxVersion = v
	}
	var errs config.Errors
	suites, err := cipherSuites(p.GetCipherSuites())
	errs.Collect("cipher_suites", err)
	cfg.CipherSuites = suites
	if len(cfg.CipherSuites) == 0 {
		cfg.CipherSuites = defaultSuites
	}
	for _, name := range strings.FieldsFunc(strings.Join(p.GetEcdhCurves(), ":"), isColon) {
		id, ok := curves[name]
		if !ok {
			errs.Collect("", &config.Error{Path: "ecdh_curves", Kind: config.Invalid, Msg: "Failed to initialize ECDH curves " + strings.Join(p.GetEcdhCurves(), ":"),
				Found: "'" + name + "'", Allowed: strings.Join(slices.Sorted(maps.Keys(curves)), ", ")})
			break // the message has all of them
		}
		cfg.CurvePreferences = append(cfg.CurvePreferences, id)
	}
	if len(cfg.CurvePreferences) == 0 {
		cfg.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256}
	}
	list, err := signatureAlgorithms(p.GetSignatureAlgorithms())
	errs.Collect("signature_algorithms", err)
	sign(cfg, list)
	return errs.Err()
}

// tolerateALPN lets clients in that offer no protocol of ours: the handshake goes on without one, as in Envoy, where crypto/tls
// would refuse.
func tolerateALPN(cfg *tls.Config) {
	if len(cfg.NextProtos) == 0 {
		return
	}
	without := cfg.Clone()
	without.NextProtos = nil
	ours := cfg.NextProtos
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, p := range hello.SupportedProtos {
			if slices.Contains(ours, p) {
				return nil, nil
			}
		}
		if len(hello.SupportedProtos) == 0 {
			return nil, nil
		}
		return without, nil
	}
}

// defaultSuites are Envoy's for TLS 1.2, in its order; crypto/tls would also take CBC suites.
var defaultSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
}
