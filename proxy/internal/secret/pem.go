package secret

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// This file says in the words of those who made a file what is wrong with it: crypto/tls speaks to programmers. What BoringSSL, and so
// Envoy, calls the same mistake stands in parentheses, since that is what people look for.

// badChain says why a certificate chain cannot be used; err is what crypto/tls says of it.
func badChain(text []byte, err error) error {
	if broken := brokenIn(text); broken != nil {
		return broken
	}
	if contentOf(text) == aCertificate {
		return errors.New("its first certificate cannot be read: " + strings.TrimPrefix(err.Error(), "x509: "))
	}
	return errors.New(without(text, aCertificate))
}

// badPrivateKey says why a private key cannot be used, with the chain that was read beside it; err is what crypto/tls says of it.
func badPrivateKey(chain, text []byte, err error) error {
	block := keyBlock(text)
	switch broken := brokenIn(text); {
	case broken != nil:
		return broken
	case block == nil:
		return errors.New(without(text, aKey) + " (NO_START_LINE)")
	case block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return errors.New("the key is encrypted and wants its password (BAD_PASSWORD_READ): 'openssl pkey -in KEY -out NEW' writes it without one")
	}
	switch of, is := kindsOf(chain, block); {
	case of == "" || is == "":
		return errors.New("it cannot be read: " + strings.TrimPrefix(err.Error(), "tls: "))
	case of != is:
		return fmt.Errorf("it does not belong to the certificate, whose key is %s: this one is %s (KEY_TYPE_MISMATCH)", of, is)
	default:
		return errors.New("it does not belong to the certificate, which has another public key (KEY_VALUES_MISMATCH)")
	}
}

const (
	aCertificate = "certificate"
	aKey         = "private key"
)

// without says that a text does not hold what is wanted, and what it holds.
func without(text []byte, wanted string) string {
	what := contentOf(text)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return "it is empty"
	case what != "":
		return "it holds a " + what + " and no " + wanted
	}
	if what = binary(text); what != "" {
		return "it is " + what
	}
	return "it holds no " + wanted + " in PEM, which begins with a line '-----BEGIN " + strings.ToUpper(wanted) + "-----'"
}

// contentOf names what the first block of a PEM text holds, "" if there is none.
func contentOf(text []byte) string {
	b, _ := pem.Decode(text)
	switch {
	case b == nil:
		return ""
	case b.Type == "CERTIFICATE":
		return aCertificate
	case strings.HasSuffix(b.Type, "CERTIFICATE REQUEST"):
		return "request for a certificate"
	case b.Type == "PUBLIC KEY":
		return "public key"
	case strings.HasSuffix(b.Type, "PRIVATE KEY"):
		return aKey
	}
	return "block '" + b.Type + "'"
}

// binary says what a text is that is no PEM, but what people have instead; "" if that is not to be known.
func binary(text []byte) string {
	if len(text) < 2 || text[0] != 0x30 || text[1] < 0x30 { // a SEQUENCE of some length
		return ""
	}
	var archive struct {
		Version int
		Rest    asn1.RawValue
	}
	_, err := x509.ParseCertificate(text)
	switch {
	case err == nil:
		return "a certificate in DER and not in PEM: 'openssl x509 -inform der -in FILE -out NEW' converts it"
	case privateKey(text) != "":
		return "a private key in DER and not in PEM: 'openssl pkey -inform der -in FILE -out NEW' converts it"
	}
	if _, _ = asn1.Unmarshal(text, &archive); archive.Version == 3 {
		return "an archive in PKCS#12 and not PEM: 'openssl pkcs12 -in FILE -out NEW -nodes' converts it"
	}
	return "DER, or other bytes, and not PEM"
}

// brokenIn says which block of a PEM text cannot be read, nil if all can: the decoder passes over such.
func brokenIn(text []byte) error {
	for b := range blocksOf(text) {
		if b.pem != nil {
			continue
		}
		if !bytes.Contains(b.text, []byte("\n-----END ")) {
			return fmt.Errorf("the block that begins at line %d has no end", b.line)
		}
		return fmt.Errorf("the base64 between the BEGIN and END lines of the block at line %d is broken, or one of these lines", b.line)
	}
	return nil
}

// block is a piece of a PEM text, from a BEGIN line to before the next.
type block struct {
	line int // from 1
	text []byte
	pem  *pem.Block // nil if it cannot be read
}

func blocksOf(text []byte) iter.Seq[block] {
	begin := []byte("-----BEGIN ")
	return func(yield func(block) bool) {
		line := 1
		for {
			i := bytes.Index(text, begin)
			if i < 0 {
				return
			}
			line += bytes.Count(text[:i], []byte("\n"))
			atStart := i == 0 || text[i-1] == '\n'
			text = text[i:]
			next := bytes.Index(text[len(begin):], append([]byte{'\n'}, begin...))
			b := block{line: line, text: text}
			if next >= 0 {
				b.text = text[:len(begin)+next+1]
			}
			b.pem, _ = pem.Decode(b.text)
			if atStart && !yield(b) {
				return
			}
			line += bytes.Count(b.text, []byte("\n"))
			text = text[len(b.text):]
		}
	}
}

// keyBlock is the first private key in a PEM text, nil if there is none.
func keyBlock(text []byte) *pem.Block {
	for b := range blocksOf(text) {
		if b.pem != nil && (b.pem.Type == "PRIVATE KEY" || strings.HasSuffix(b.pem.Type, " PRIVATE KEY")) {
			return b.pem
		}
	}
	return nil
}

// kindsOf names the kinds of the public key of a chain's first certificate and of a private key; "" for one that cannot be read.
func kindsOf(chain []byte, key *pem.Block) (of, is string) {
	for b := range blocksOf(chain) {
		if b.pem == nil || b.pem.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(b.pem.Bytes); err == nil {
			of = c.PublicKeyAlgorithm.String()
		}
		break
	}
	return of, privateKey(key.Bytes)
}

// privateKey names the kind of a private key in DER, "" if it is none.
func privateKey(der []byte) string {
	if _, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return x509.RSA.String()
	}
	if _, err := x509.ParseECPrivateKey(der); err == nil {
		return x509.ECDSA.String()
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return ""
	}
	switch key.(type) {
	case *rsa.PrivateKey:
		return x509.RSA.String()
	case *ecdsa.PrivateKey:
		return x509.ECDSA.String()
	case ed25519.PrivateKey:
		return x509.Ed25519.String()
	}
	return ""
}

// trusted reads the certificates that are trusted. As in Envoy one that cannot be read refuses all, and other blocks say nothing, but
// for lists of revoked certificates, which must be such.
func trusted(text []byte) (*x509.CertPool, error) {
	if err := brokenIn(text); err != nil {
		return nil, err
	}
	pool, any := x509.NewCertPool(), false
	for b := range blocksOf(text) {
		switch b.pem.Type {
		case "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE":
		case "X509 CRL":
			if _, err := x509.ParseRevocationList(b.pem.Bytes); err != nil {
				return nil, fmt.Errorf("the list of revoked certificates at line %d cannot be read: %s", b.line, strings.TrimPrefix(err.Error(), "x509: "))
			}
			continue
		default:
			continue
		}
		var shape struct {
			Certificate, Algorithm asn1.RawValue
			Signature              asn1.BitString
		}
		rest, err := asn1.Unmarshal(b.pem.Bytes, &shape)
		if err != nil {
			return nil, fmt.Errorf("what stands as a certificate at line %d is none", b.line)
		}
		// Some that BoringSSL takes are refused by Go, such as those whose serial number is negative: nobody is trusted by them, and the
		// others are none the worse.
		if c, err := x509.ParseCertificate(b.pem.Bytes[:len(b.pem.Bytes)-len(rest)]); err == nil {
			pool.AddCert(c)
		}
		any = true
	}
	if !any {
		return nil, errors.New(without(text, aCertificate))
	}
	return pool, nil
}
