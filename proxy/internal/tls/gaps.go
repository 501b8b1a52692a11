package tls

import "github.com/dragoman-proxy/dragoman/internal/gap"

var downstreamGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
	"session_ticket_keys_sds_secret_config",
	"require_sni=true",
	"session_timeout",
	"full_scan_certs_on_sni_mismatch=true",
	"ocsp_staple_policy=STRICT_STAPLING",
	"ocsp_staple_policy=MUST_STAPLE",
	"~prefer_client_ciphers (the TLS library chooses)",
)

var commonGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.CommonTlsContext",
	"custom_tls_certificate_selector",
	"custom_handshaker",
	"key_log",
	"tls_params.compliance_policies",
	"tls_certificate_provider_instance",
	"tls_certificate_certificate_provider",
	"tls_certificate_certificate_provider_instance",
	"validation_context_certificate_provider",
	"validation_context_certificate_provider_instance",
	"combined_validation_context.validation_context_certificate_provider",
	"combined_validation_context.validation_context_certificate_provider_instance",
)

var validationGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext",
	"ca_certificate_provider_instance",
	"system_root_certs",
	"require_signed_certificate_timestamp=true",
	"watched_directory",
	"match_typed_subject_alt_names.san_type=OTHER_NAME",
	"~match_typed_subject_alt_names.oid (OTHER_NAME is refused)",
	"~suppress_client_ca_list (the list is always sent)",
)

var spiffeGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig", "trust_bundles", "trust_domains.workload_trust_domain")

var upstreamGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
	"allow_renegotiation=true",
	"~enforce_rsa_key_usage (the TLS library decides)",
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table {
	return []*gap.Table{downstreamGaps, commonGaps, validationGaps, spiffeGaps, upstreamGaps}
}
