package hcm

import "github.com/dragoman-proxy/dragoman/api/network"

// TLSInfo is what a handshake agreed on.
type TLSInfo = network.TLSInfo

// What tests look at from outside.
var (
	Canonical      = canonical
	MergeSlashes   = mergeSlashes
	Unescape       = unescapeSlashes
	ValidReferer   = validReferer
	FromXFF        = fromXFF
	LastNotTrusted = lastNotTrusted
	SplitPort      = splitPort
)

// CertTexts returns both forms of a certificate in x-forwarded-client-cert.
var CertTexts = func(c *ClientCert) (plain, array func(t *TLSInfo) string) {
	x := &certTexts{}
	return func(t *TLSInfo) string { return x.plain(c, t) }, func(t *TLSInfo) string { return x.json(c, t) }
}
