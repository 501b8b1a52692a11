package tls

import (
	"crypto/tls"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// signatures are the names of signature algorithms that BoringSSL knows: those of RFC 8446, section 4.2.3, without what it does not have,
// and OpenSSL's.
var signatures = map[string]tls.SignatureScheme{
	"rsa_pkcs1_sha1": tls.PKCS1WithSHA1, "RSA+SHA1": tls.PKCS1WithSHA1,
	"rsa_pkcs1_sha256": tls.PKCS1WithSHA256, "RSA+SHA256": tls.PKCS1WithSHA256,
	"rsa_pkcs1_sha384": tls.PKCS1WithSHA384, "RSA+SHA384": tls.PKCS1WithSHA384,
	"rsa_pkcs1_sha512": tls.PKCS1WithSHA512, "RSA+SHA512": tls.PKCS1WithSHA512,
	"ecdsa_sha1": tls.ECDSAWithSHA1, "ECDSA+SHA1": tls.ECDSAWithSHA1,
	"ecdsa_secp256r1_sha256": tls.ECDSAWithP256AndSHA256, "ECDSA+SHA256": tls.ECDSAWithP256AndSHA256,
	"ecdsa_secp384r1_sha384": tls.ECDSAWithP384AndSHA384, "ECDSA+SHA384": tls.ECDSAWithP384AndSHA384,
	"ecdsa_secp521r1_sha512": tls.ECDSAWithP521AndSHA512, "ECDSA+SHA512": tls.ECDSAWithP521AndSHA512,
	"rsa_pss_rsae_sha256": tls.PSSWithSHA256, "RSA-PSS+SHA256": tls.PSSWithSHA256, "PSS+SHA256": tls.PSSWithSHA256,
	"rsa_pss_rsae_sha384": tls.PSSWithSHA384, "RSA-PSS+SHA384": tls.PSSWithSHA384, "PSS+SHA384": tls.PSSWithSHA384,
	"rsa_pss_rsae_sha512": tls.PSSWithSHA512, "RSA-PSS+SHA512": tls.PSSWithSHA512, "PSS+SHA512": tls.PSSWithSHA512,
	"ed25519": tls.Ed25519,
}

// signatureAlgorithms reads signature_algorithms: names joined by colons, each once. nil: all.
func signatureAlgorithms(list []string) (out []tls.SignatureScheme, err error) {
	all := strings.Join(list, ":")
	if all == "" {
		return nil, nil
	}
	reject := func(name, advice string) error {
		known := slices.Sorted(maps.Keys(signatures))
		x := &config.Error{Kind: config.Invalid, Msg: "Failed to initialize TLS signature algorithms " + all, Found: "'" + name + "'", Advice: advice}
		if advice == "" {
			x.Allowed = strings.Join(known, ", ")
			x.Suggestion = config.Nearest(strings.ToLower(strings.ReplaceAll(name, "-", "_")), known)
		}
		return x
	}
	for _, name := range strings.Split(all, ":") {
		id, ok := signatures[name]
		switch {
		case !ok:
			return nil, reject(name, "")
		case slices.Contains(out, id):
			return nil, reject(name, "which is there twice")
		}
		out = append(out, id)
	}
	return out, nil
}

// sign keeps the certificates of cfg from signing in other ways than those in list; nil: all.
func sign(cfg *tls.Config, list []tls.SignatureScheme) {
	for i := range cfg.Certificates {
		cfg.Certificates[i].SupportedSignatureAlgorithms = list
	}
}
