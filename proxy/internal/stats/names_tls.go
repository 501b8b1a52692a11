package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of SSL.
const (
	SSLHandshake           api.CounterIndex = 0
	SSLSessionReused       api.CounterIndex = 1
	SSLNoCertificate       api.CounterIndex = 2
	SSLConnectionError     api.CounterIndex = 3
	SSLFailVerifyCertHash  api.CounterIndex = 4
	SSLFailVerifyError     api.CounterIndex = 5
	SSLFailVerifyNoCert    api.CounterIndex = 6
	SSLFailVerifySan       api.CounterIndex = 7
	SSLOcspStapleFailed    api.CounterIndex = 8
	SSLOcspStapleOmitted   api.CounterIndex = 9
	SSLOcspStapleRequests  api.CounterIndex = 10
	SSLOcspStapleResponses api.CounterIndex = 11

	sslVersions api.CounterIndex = 12
	sslCurves   api.CounterIndex = 17
	sslSigalgs  api.CounterIndex = 26
	sslCiphers  api.CounterIndex = 39
)

// SSL is what a TLS context counts, "listener.<address>.ssl." and "cluster.<name>.ssl.". Ciphers, curves, signature algorithms and
// versions show when they were used; see SSLCipher and its like.
var SSL = api.MustTemplate("ssl", append([]api.Entry{
	api.Counter(SSLHandshake, "handshake"),
	api.Counter(SSLSessionReused, "session_reused"),
	api.Counter(SSLNoCertificate, "no_certificate"),
	api.Counter(SSLConnectionError, "connection_error"),
	api.Counter(SSLFailVerifyCertHash, "fail_verify_cert_hash"),
	api.Counter(SSLFailVerifyError, "fail_verify_error"),
	api.Counter(SSLFailVerifyNoCert, "fail_verify_no_cert"),
	api.Counter(SSLFailVerifySan, "fail_verify_san"),
	api.Counter(SSLOcspStapleFailed, "ocsp_staple_failed"),
	api.Counter(SSLOcspStapleOmitted, "ocsp_staple_omitted"),
	api.Counter(SSLOcspStapleRequests, "ocsp_staple_requests"),
	api.Counter(SSLOcspStapleResponses, "ocsp_staple_responses"),
}, sslNames()...)...)

// SSLCertificateExpiration is the only gauge of SSLCertificate.
const SSLCertificateExpiration api.GaugeIndex = 0

// SSLCertificate is "listener.<address>.ssl.certificate.<name>." and the same of clusters.
var SSLCertificate = api.MustTemplate("ssl certificate", api.Gauge(SSLCertificateExpiration, "expiration_unix_time_seconds"))

// Indices of SSLFactory.
const (
	SSLFactoryDownstreamContextSecretsNotReady api.CounterIndex = 0
	SSLFactorySslContextUpdateBySds            api.CounterIndex = 1
	SSLFactoryUpstreamContextSecretsNotReady   api.CounterIndex = 2
)

// SSLFactory is "listener.<address>.server_ssl_socket_factory." and "cluster.<name>.client_ssl_socket_factory.".
var SSLFactory = api.MustTemplate("ssl socket factory",
	api.Counter(SSLFactoryDownstreamContextSecretsNotReady, "downstream_context_secrets_not_ready"),
	api.Counter(SSLFactorySslContextUpdateBySds, "ssl_context_update_by_sds"),
	api.Counter(SSLFactoryUpstreamContextSecretsNotReady, "upstream_context_secrets_not_ready"),
)
