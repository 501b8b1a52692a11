package pool

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// transport returns the transport of a new connection, nil for plain bytes. alpn is what to offer if the context names nothing.
func transport(w *event.Worker, s *Settings, h *host.Host, alpn []string, n Names) conn.Transport {
	if s.Transport == nil {
		return nil
	}
	var t conn.Transport
	var failure string
	if named, ok := s.Transport.(Namer); ok && n != (Names{}) {
		t, failure = named.NewNamed(w, h, alpn, n.SNI, n.SAN)
	} else {
		t, failure = s.Transport.New(w, h, alpn)
	}
	if failure != "" {
		return notReady(failure)
	}
	return t
}

// notReady is the transport of a connection whose secrets are missing: it fails as soon as the connection is up, as Envoy's.
type notReady string

// Start implements conn.Transport.
func (t notReady) Start(c *conn.Conn) { c.Fail(string(t)) }

// Feed implements conn.Transport.
func (notReady) Feed(*conn.Conn, []byte) {}

// EOF implements conn.Transport.
func (notReady) EOF(*conn.Conn) {}

// Seal implements conn.Transport.
func (notReady) Seal(_ *conn.Conn, plain, _ *buffer.Buffer) { plain.Reset() }

// CloseNotify implements conn.Transport.
func (notReady) CloseNotify(*conn.Conn) bool { return false }

// Destroy implements conn.Transport.
func (notReady) Destroy() {}

// What HTTP connections offer by ALPN where the configuration says nothing.
var (
	alpnH1   = []string{"http/1.1"}
	alpnH2   = []string{"h2"}
	alpnAuto = []string{"h2", "http/1.1"}
)

func (p Protocol) alpn() []string {
	switch p {
	case HTTP2:
		return alpnH2
	case Auto:
		return alpnAuto
	}
	return alpnH1
}
