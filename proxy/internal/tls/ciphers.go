package tls

import (
	"crypto/tls"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// cipherSuites reads cipher_suites: names of TLS 1.2 as BoringSSL has them or as IANA registers them, joined by colons or, as equally
// good ones, in brackets. Those of TLS 1.3 cannot be chosen, as in Envoy.
func cipherSuites(list []string) (ids []uint16, err error) {
	all := strings.Join(list, ":")
	var rejected []string
	for _, group := range strings.FieldsFunc(all, isColon) {
		for _, name := range strings.Split(strings.Trim(group, "[]"), "|") {
			id, ok := suite(name)
			switch {
			case ok:
				ids = append(ids, id)
			case selects(name):
				return nil, &config.Error{Msg: "choosing cipher suites by '" + name + "' is not supported yet", Kind: config.Unsupported, Allowed: "names of cipher suites"}
			default:
				rejected = append(rejected, name)
			}
		}
	}
	if len(rejected) > 0 {
		names := knownSuites()
		return nil, &config.Error{Kind: config.Invalid, Allowed: strings.Join(names, ", "), Suggestion: config.Nearest(rejected[0], names),
			Msg: "Failed to initialize cipher suites " + all + ". The following ciphers were rejected when tried individually: " + strings.Join(rejected, ", ")}
	}
	return ids, nil
}

func isColon(r rune) bool { return r == ':' }

// suite finds a suite of TLS 1.2 by either of its names.
func suite(name string) (uint16, bool) {
	if id, ok := stats.SSLCipherID(name); ok {
		return id, id>>8 != 0x13 // RFC 8446, appendix B.4
	}
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if s.Name == name && s.ID>>8 != 0x13 {
			_, ok := suiteNames()[s.ID]
			return s.ID, ok
		}
	}
	return 0, false
}

// suiteNames are BoringSSL's names of the suites of TLS 1.2 that crypto/tls has.
func suiteNames() map[uint16]string {
	names := map[uint16]string{}
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		name := stats.SSLCipherName(s.ID)
		if id, ok := stats.SSLCipherID(name); ok && id == s.ID && id>>8 != 0x13 {
			names[id] = name
		}
	}
	return names
}

func knownSuites() []string { return slices.Sorted(maps.Values(suiteNames())) }

// selects tells whether a word of BoringSSL's language for cipher lists stands in place of a name: a group of suites, or a change of the
// list so far.
func selects(word string) bool {
	if strings.ContainsAny(word[:min(1, len(word))], "-!+@") {
		return true
	}
	for _, w := range strings.Split(word, "+") {
		if !slices.Contains(groupWords, w) {
			return false
		}
	}
	return true
}

var groupWords = []string{
	"ALL", "HIGH", "FIPS", "kRSA", "kECDHE", "kEECDH", "kPSK", "ECDHE", "EECDH", "RSA", "PSK", "aRSA", "aECDSA", "ECDSA", "aPSK", "AES", "AES128",
	"AES256", "AESGCM", "CHACHA20", "3DES", "SHA", "SHA1", "SSLv3", "TLSv1", "TLSv1.2",
}
