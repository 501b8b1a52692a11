package tls_inspector //nolint:revive // Envoy's name

import (
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"

	"github.com/dragoman-proxy/dragoman/api/stats"
)

// maxHello is max_client_hello_size and its upper bound: 16 KiB.
const maxHello = 16 << 10

// The indices of the filter's stats.
const (
	alpnFound stats.CounterIndex = iota
	alpnNotFound
	tooLarge
	sniFound
	sniNotFound
	tlsFound
	tlsNotFound

	bytesProcessed stats.HistogramIndex = 0
)

var template = stats.MustTemplate("tls inspector filter",
	stats.Counter(alpnFound, "alpn_found"),
	stats.Counter(alpnNotFound, "alpn_not_found"),
	stats.Counter(tooLarge, "client_hello_too_large"),
	stats.Counter(sniFound, "sni_found"),
	stats.Counter(sniNotFound, "sni_not_found"),
	stats.Counter(tlsFound, "tls_found"),
	stats.Counter(tlsNotFound, "tls_not_found"),
	stats.Histogram(bytesProcessed, "bytes_processed", stats.Bytes),
)

// config is shared by all connections.
type config struct {
	stats stats.GroupBase
	max   int
	// strict closes connections whose ClientHello cannot be read.
	strict bool
	// ja3 and ja4 ask for fingerprints.
	ja3, ja4 bool
}

func newConfig(p *inspectorv3.TlsInspector, scope stats.Scope) *config {
	c := &config{stats: scope.Scope("tls_inspector").Group(template), max: maxHello, strict: p.GetCloseConnectionOnClientHelloParsingErrors(),
		ja3: p.GetEnableJa3Fingerprinting().GetValue(), ja4: p.GetEnableJa4Fingerprinting().GetValue()}
	if n := p.GetMaxClientHelloSize(); n != nil {
		c.max = int(n.GetValue())
	}
	return c
}
