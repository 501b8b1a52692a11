package format

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"strings"
)

// attributes are the short names of RFC 2253, section 2.3, and those that OpenSSL adds.
var attributes = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street", "2.5.4.10": "O", "2.5.4.11": "OU",
	"2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.12": "title", "2.5.4.17": "postalCode", "2.5.4.42": "GN",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC", "1.2.840.113549.1.9.1": "emailAddress",
}

// DistinguishedName prints a name as RFC 2253 says: last part first. The typed fields of pkix.Name would lose the order.
func DistinguishedName(der []byte) string {
	var rdns pkix.RDNSequence
	if rest, err := asn1.Unmarshal(der, &rdns); err != nil || len(rest) > 0 {
		return ""
	}
	var b strings.Builder
	for i := len(rdns) - 1; i >= 0; i-- {
		for j := len(rdns[i]) - 1; j >= 0; j-- {
			if b.Len() > 0 {
				if j < len(rdns[i])-1 {
					b.WriteByte('+')
				} else {
					b.WriteByte(',')
				}
			}
			writeAttribute(&b, rdns[i][j])
		}
	}
	return b.String()
}

func writeAttribute(b *strings.Builder, a pkix.AttributeTypeAndValue) {
	oid := a.Type.String()
	name, known := attributes[oid]
	if !known {
		name = oid
	}
	b.WriteString(name)
	b.WriteByte('=')
	if !known {
		if der, err := asn1.Marshal(a.Value); err == nil {
			b.WriteByte('#')
			b.WriteString(strings.ToUpper(hex.EncodeToString(der)))
			return
		}
	}
	s, ok := a.Value.(string)
	if !ok {
		s = fmt.Sprint(a.Value)
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c >= 0x7f: // OpenSSL's ASN1_STRFLGS_ESC_CTRL and ESC_MSB
			fmt.Fprintf(b, "\\%02X", c)
			continue
		case strings.IndexByte(`,+"\<>;`, c) >= 0, c == '#' && i == 0, c == ' ' && (i == 0 || i == len(s)-1):
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
}
