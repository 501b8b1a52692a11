package tls

import "github.com/dragoman-proxy/dragoman/internal/gap"

var downstreamGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
	"session_ticket_keys_sds_secret_config",
)

var commonGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.CommonTlsContext",
	"custom_tls_certificate_selector",
	"custom_handshaker",
	"key_log",
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
)

var spiffeGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig", "!trust_bundles")

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{downstreamGaps, commonGaps, validationGaps, spiffeGaps} }
