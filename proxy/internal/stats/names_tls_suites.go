package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// sslName is a TLS code point and the name that BoringSSL prints for it.
type sslName struct {
	id   uint16
	name string
}

// The tables of what a handshake can have chosen. What is not in them counts under the last name of its table, as in Envoy.
var (
	versionNames = [...]sslName{
		{0x0304, "TLSv1.3"}, {0x0303, "TLSv1.2"}, {0x0302, "TLSv1.1"}, {0x0301, "TLSv1"}, {0, "unknown_ssl_version"},
	}
	curveNames = [...]sslName{
		{29, "X25519"}, {4588, "X25519MLKEM768"}, {23, "P-256"}, {24, "P-384"}, {25, "P-521"}, {21, "P-224"},
		{4587, "SecP256r1MLKEM768"}, {4589, "SecP384r1MLKEM1024"}, {0, "unknown_ssl_curve"},
	}
	sigalgNames = [...]sslName{
		{0x0403, "ecdsa_secp256r1_sha256"}, {0x0804, "rsa_pss_rsae_sha256"}, {0x0401, "rsa_pkcs1_sha256"},
		{0x0503, "ecdsa_secp384r1_sha384"}, {0x0805, "rsa_pss_rsae_sha384"}, {0x0501, "rsa_pkcs1_sha384"},
		{0x0603, "ecdsa_secp521r1_sha512"}, {0x0806, "rsa_pss_rsae_sha512"}, {0x0601, "rsa_pkcs1_sha512"},
		{0x0807, "ed25519"}, {0x0201, "rsa_pkcs1_sha1"}, {0x0203, "ecdsa_sha1"}, {0, "unknown_ssl_algorithm"},
	}
	cipherNames = [...]sslName{
		{0x1301, "TLS_AES_128_GCM_SHA256"}, {0x1302, "TLS_AES_256_GCM_SHA384"}, {0x1303, "TLS_CHACHA20_POLY1305_SHA256"},
		{0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256"}, {0xc02f, "ECDHE-RSA-AES128-GCM-SHA256"},
		{0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384"}, {0xc030, "ECDHE-RSA-AES256-GCM-SHA384"},
		{0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305"}, {0xcca8, "ECDHE-RSA-CHACHA20-POLY1305"},
		{0xc009, "ECDHE-ECDSA-AES128-SHA"}, {0xc013, "ECDHE-RSA-AES128-SHA"},
		{0xc00a, "ECDHE-ECDSA-AES256-SHA"}, {0xc014, "ECDHE-RSA-AES256-SHA"},
		{0xc023, "ECDHE-ECDSA-AES128-SHA256"}, {0xc027, "ECDHE-RSA-AES128-SHA256"},
		{0x009c, "AES128-GCM-SHA256"}, {0x009d, "AES256-GCM-SHA384"}, {0x002f, "AES128-SHA"}, {0x0035, "AES256-SHA"},
		{0x000a, "DES-CBC3-SHA"}, {0, "unknown_ssl_cipher"},
	}
)

// SSLVersion, SSLCurve, SSLSigalg and SSLCipher return the index of the counter for a TLS code point. They walk a table and are
// meant for a handshake, not for a record.
func SSLVersion(id uint16) api.CounterIndex { return sslVersions + find(versionNames[:], id) }

// SSLCurve returns the index of the counter of a key exchange group.
func SSLCurve(id uint16) api.CounterIndex { return sslCurves + find(curveNames[:], id) }

// SSLSigalg returns the index of the counter of the algorithm that the peer signed with.
func SSLSigalg(id uint16) api.CounterIndex { return sslSigalgs + find(sigalgNames[:], id) }

// SSLCipher returns the index of the counter of a cipher suite.
func SSLCipher(id uint16) api.CounterIndex { return sslCiphers + find(cipherNames[:], id) }

func find(table []sslName, id uint16) api.CounterIndex {
	last := len(table) - 1
	for i, n := range table[:last] {
		if n.id == id {
			return api.CounterIndex(i)
		}
	}
	return api.CounterIndex(last)
}

func sslNames() []api.Entry {
	var out []api.Entry
	add := func(base api.CounterIndex, prefix string, table []sslName) {
		for i, n := range table {
			out = append(out, api.LazyCounter(base+api.CounterIndex(i), prefix+n.name))
		}
	}
	add(sslVersions, "versions.", versionNames[:])
	add(sslCurves, "curves.", curveNames[:])
	add(sslSigalgs, "sigalgs.", sigalgNames[:])
	add(sslCiphers, "ciphers.", cipherNames[:])
	return out
}

// SSLVersionName, SSLCurveName and SSLCipherName return BoringSSL's names of TLS code points, "" for one that is not known.
func SSLVersionName(id uint16) string { return nameOf(versionNames[:], id) }

// SSLCurveName returns the name of a key exchange group.
func SSLCurveName(id uint16) string { return nameOf(curveNames[:], id) }

// SSLCipherName returns the name of a cipher suite.
func SSLCipherName(id uint16) string { return nameOf(cipherNames[:], id) }

func nameOf(table []sslName, id uint16) string {
	for _, n := range table[:len(table)-1] {
		if n.id == id {
			return n.name
		}
	}
	return ""
}

// SSLCipherID returns the code point of a cipher suite by BoringSSL's name.
func SSLCipherID(name string) (uint16, bool) {
	for _, n := range cipherNames[:len(cipherNames)-1] {
		if n.name == name {
			return n.id, true
		}
	}
	return 0, false
}
