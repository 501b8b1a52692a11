package secret

import "github.com/dragoman-proxy/dragoman/internal/gap"

var certificateGaps = gap.Of("envoy.extensions.transport_sockets.tls.v3.TlsCertificate",
	"pkcs12",
	"private_key_provider",
	"password",
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{certificateGaps} }
