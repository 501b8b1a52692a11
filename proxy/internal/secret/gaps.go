package secret

import "github.com/dragoman-proxy/dragoman/internal/gap"

var certificateGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.TlsCertificate",
	"pkcs12",
	"private_key_provider",
	"password",
	"watched_directory",
	"tls_params",
	"~signed_certificate_timestamp (Envoy does not implement it either)",
)

var sourceGaps = gap.Of("envoy.config.core.v3.DataSource", "watched_directory")

var secretGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.Secret",
	"~generic_secret.secret (what would use one says so itself)",
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{certificateGaps, sourceGaps, secretGaps} }
