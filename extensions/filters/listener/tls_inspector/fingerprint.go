package tls_inspector //nolint:revive // Envoy's name

import (
	"crypto/md5" //nolint:gosec // JA3 is defined with it, and nothing is secured by it
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// Extensions that fingerprints look into (RFC 8446 section 4.2, RFC 8422 section 5.1).
const (
	extGroups              = 10
	extPointFormats        = 11
	extSignatureAlgorithms = 13
	extSupportedVersions   = 43
)

// fingerprints computes what is asked for of a ClientHello that could be read. Lists in extensions are taken as far as they go: their
// lengths are not looked at, as in Envoy.
func (h *hello) fingerprints(ja3, ja4 bool) *network.Fingerprints {
	s := newSummary(h.version, h.ciphers, h.list)
	f := &network.Fingerprints{}
	if ja3 {
		f.JA3 = s.ja3()
	}
	if ja4 {
		f.JA4 = s.ja4()
	}
	return f
}

// summary is what fingerprints are made of.
type summary struct {
	version             uint16
	ciphers, extensions []uint16 // without GREASE (RFC 8701)
	name                bool     // there is a server name
	// bodies of extensions; nil if they are absent.
	groups, points, algorithms, protocols, versions reader
}

func newSummary(version uint16, ciphers, list reader) *summary {
	s := &summary{version: version, ciphers: plain(ciphers)}
	for len(list) > 0 {
		kind, _ := list.uint16()
		body, _ := list.bytes(2)
		if !grease(uint16(kind)) {
			s.extensions = append(s.extensions, uint16(kind))
		}
		switch kind {
		case extServerName:
			s.name = true
		case extGroups:
			s.groups = body
		case extPointFormats:
			s.points = body
		case extSignatureAlgorithms:
			s.algorithms = body
		case extALPN:
			s.protocols = body
		case extSupportedVersions:
			s.versions = body
		}
	}
	return s
}

// grease tells whether v is one of the values that mean nothing.
func grease(v uint16) bool { return v&0x0f0f == 0x0a0a && v>>8 == v&0xff }

// numbers are those of a list, as many as are whole.
func numbers(r reader) (out []uint16) {
	for {
		n, ok := r.uint16()
		if !ok {
			return out
		}
		out = append(out, uint16(n))
	}
}

// plain is numbers without GREASE.
func plain(r reader) []uint16 { return slices.DeleteFunc(numbers(r), grease) }

// behind is r without its first n bytes, a length that is not looked at.
func behind(r reader, n int) reader {
	if !r.skip(n) {
		return nil
	}
	return r
}

// ja3 is the MD5 of version, ciphers, extensions, groups and point formats. GREASE counts among groups, as in Envoy.
func (s *summary) ja3() string {
	b := strconv.AppendUint(make([]byte, 0, 512), uint64(s.version), 10)
	for _, l := range [][]uint16{s.ciphers, s.extensions, numbers(behind(s.groups, 2))} {
		b = append(b, ',')
		for i, v := range l {
			b = appendDecimal(b, i, v)
		}
	}
	b = append(b, ',')
	for i, v := range behind(s.points, 1) {
		b = appendDecimal(b, i, uint16(v))
	}
	sum := md5.Sum(b) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

func appendDecimal(b []byte, i int, v uint16) []byte {
	if i > 0 {
		b = append(b, '-')
	}
	return strconv.AppendUint(b, uint64(v), 10)
}

// ja4 is what the hello says at a glance, then hashes of its ciphers, and of its extensions with the signature algorithms.
func (s *summary) ja4() string {
	b := append(make([]byte, 0, 36), 't')
	b = append(b, s.versionName()...)
	if s.name {
		b = append(b, 'd')
	} else {
		b = append(b, 'i')
	}
	b = appendCount(b, len(s.ciphers))
	b = appendCount(b, len(s.extensions))
	b = append(b, s.protocol()...)
	b = append(b, '_')
	slices.Sort(s.ciphers)
	b = appendHash(b, s.ciphers, nil)
	b = append(b, '_')
	rest := slices.DeleteFunc(slices.Clone(s.extensions), func(v uint16) bool { return v == extServerName || v == extALPN })
	slices.Sort(rest)
	return string(appendHash(b, rest, numbers(behind(s.algorithms, 2))))
}

// versionName is that of the highest version that the client supports.
func (s *summary) versionName() string {
	v := s.version
	if s.versions != nil {
		list, ok := s.versions.bytes(1)
		if !ok {
			v = 0
		} else if l := plain(list); len(l) > 0 {
			v = slices.Max(l)
		}
	}
	if v < 0x301 || v > 0x304 {
		return "00"
	}
	return [...]string{"10", "11", "12", "13"}[v-0x301]
}

// protocol is the first and the last character of the first protocol (ALPN), or of its bytes in hexadecimal if they are no letters.
func (s *summary) protocol() string {
	list, _ := s.protocols.bytes(2)
	p, _ := list.bytes(1)
	if len(p) == 0 {
		return "00"
	}
	first, last := p[0], p[len(p)-1]
	if !alphanumeric(first) || !alphanumeric(last) {
		const digits = "0123456789abcdef"
		first, last = digits[first>>4], digits[last&15]
	}
	return string([]byte{first, last})
}

func alphanumeric(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// appendCount appends two digits.
func appendCount(b []byte, n int) []byte {
	n = min(n, 99)
	return append(b, '0'+byte(n/10), '0'+byte(n%10))
}

// appendHash appends the first 12 digits of the SHA-256 of a list, and of a second one behind it if there is one.
func appendHash(b []byte, list, second []uint16) []byte {
	if len(list) == 0 {
		return append(b, "000000000000"...)
	}
	text := appendHex(make([]byte, 0, 512), list)
	if len(second) > 0 {
		text = appendHex(append(text, '_'), second)
	}
	sum := sha256.Sum256(text)
	return hex.AppendEncode(b, sum[:6])
}

func appendHex(b []byte, list []uint16) []byte {
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = hex.AppendEncode(b, []byte{byte(v >> 8), byte(v)})
	}
	return b
}
