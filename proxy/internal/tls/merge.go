package tls

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
)

// merge is combined_validation_context: the dynamic part over the default one; nil while the dynamic part is missing.
func merge(def, dyn *tlsv3.CertificateValidationContext) *tlsv3.CertificateValidationContext {
	if dyn == nil {
		return nil
	}
	if def == nil {
		return dyn
	}
	out := proto.Clone(def).(*tlsv3.CertificateValidationContext)
	proto.Merge(out, dyn)
	return out
}

// notReady refuses connections while a secret is missing.
type notReady struct{ counter astats.CounterID }

// Start counts, and ends it.
func (n notReady) Start(c *conn.Conn) {
	c.Worker().Stats.Inc(n.counter)
	c.Fail(errNotReady)
}

func (notReady) Feed(*conn.Conn, []byte)                    {}
func (notReady) EOF(*conn.Conn)                             {}
func (notReady) Seal(_ *conn.Conn, plain, _ *buffer.Buffer) { plain.Reset() }
func (notReady) CloseNotify(*conn.Conn) bool                { return false }
func (notReady) Destroy()                                   {}
