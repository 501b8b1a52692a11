package h1

import (
	"bytes"
	"net/netip"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// startLine is a request line in parts.
type startLine struct {
	method  string
	target  []byte
	version http.Proto
	simple  bool // HTTP/0.9: nothing follows the line
}

// parseRequestLine takes a request line apart (RFC 9112, section 3). As Envoy, it takes any run of blanks between the parts and
// at the end, and any version of one digit, a dot and one digit: all that is not HTTP/1.1 counts as HTTP/1.0.
func (o *Options) parseRequestLine(b []byte) (s startLine, err *codec.Err) {
	i := bytes.IndexByte(b, ' ')
	if i > 0 {
		// The usual case: single spaces, HTTP/1.1.
		if n := len(b); n > i+10 && string(b[n-9:]) == " HTTP/1.1" {
			t := b[i+1 : n-9]
			if m := method(b[:i]); m != "" && visible(t) && (t[0] == '/' || validTarget(t, m)) {
				return startLine{method: m, target: t, version: http.HTTP11}, nil
			}
		}
	}
	return o.slowRequestLine(b)
}

func (o *Options) slowRequestLine(b []byte) (s startLine, err *codec.Err) {
	whole := bytes.TrimRight(b, "\r")
	m, rest := word(trimControls(b))
	t, rest := word(rest)
	// Nothing after a line without version is looked at.
	if s.simple = len(rest) == 0; s.simple && controls(whole) {
		return s, ErrFieldValue
	}
	if s.method = method(m); s.method == "" {
		if !o.AllowCustomMethods || len(m) == 0 || !allOf(http.View(m), ctToken) {
			return s, ErrMethod
		}
		s.method = http.View(m)
	}
	if !visible(t) || !validTarget(t, s.method) {
		return s, ErrURL
	}
	s.target = t
	s.version, _ = version(rest)
	switch {
	case s.version == http.ProtoNone:
		return s, ErrVersion
	case s.simple && bytes.HasSuffix(whole, []byte("HTTP/1.1")):
		s.version = http.HTTP11 // Envoy looks at how the line ends
	}
	return s, nil
}

// word returns what stands before the first blank, and the rest after the blanks. As in Envoy's parser all control characters are blanks
// here; whoever has the whole head refuses those that may not be in it, see controls.
func word(b []byte) (w, rest []byte) {
	i := 0
	for i < len(b) && b[i] > ' ' {
		i++
	}
	w = b[:i]
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return w, b[i:]
}

func trimControls(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// controls tells whether a head holds characters that may be nowhere in it.
func controls(head []byte) bool {
	for _, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return true
		}
	}
	return false
}

// version parses HTTP-version; none at all is HTTP/0.9.
func version(b []byte) (p http.Proto, simple bool) {
	if len(b) == 0 {
		return http.HTTP10, true
	}
	if len(b) != 8 || string(b[:5]) != "HTTP/" || b[6] != '.' || b[5]-'0' > 9 || b[7]-'0' > 9 {
		return http.ProtoNone, false
	}
	if b[5] == '1' && b[7] == '1' {
		return http.HTTP11, false
	}
	return http.HTTP10, false
}

// validTarget checks the shape of a request target whose bytes are visible ASCII.
func validTarget(t []byte, method string) bool {
	if len(t) == 0 {
		return false
	}
	if t[0] == '/' || t[0] == '*' {
		return true
	}
	if method != "CONNECT" {
		i := schemeEnd(t)
		if i < 0 {
			return false
		}
		t = t[i+3:]
	}
	for i, c := range t {
		if c == '/' || c == '?' {
			return true
		}
		if class[c]&ctHost == 0 || c == '@' && i > 0 && t[i-1] == '@' {
			return false
		}
	}
	return true
}

// schemeEnd returns where "://" begins, -1 if t does not begin with a scheme.
func schemeEnd(t []byte) int {
	if len(t) == 0 || class[t[0]]&ctAlpha == 0 {
		return -1
	}
	i := 1
	for i < len(t) && class[t[i]]&ctScheme != 0 {
		i++
	}
	if !bytes.HasPrefix(t[i:], []byte("://")) {
		return -1
	}
	return i
}

// splitTarget splits an absolute-form target, or the authority-form of CONNECT, into views of the arena. User information is
// dropped (RFC 9110, section 4.2.4). The path of CONNECT is empty, and an absolute form without path has "/".
func splitTarget(t []byte, connect bool) (scheme, authority, path string, err *codec.Err) {
	rest := t
	path = "/"
	if !connect {
		i := schemeEnd(t)
		if i < 0 {
			return "", "", "", ErrInvalidURL
		}
		switch s := http.View(t[:i]); {
		case equalFold(s, "http"):
			scheme = "http"
		case equalFold(s, "https"):
			scheme = "https"
		}
		rest = t[i+3:]
	}
	for i, c := range rest {
		if c == '/' || c == '?' || c == '#' {
			if connect {
				return "", "", "", ErrInvalidURL
			}
			path = http.View(rest[i:])
			rest = rest[:i]
			break
		}
	}
	if i := bytes.IndexByte(rest, '@'); i >= 0 {
		if connect && i > 0 {
			return "", "", "", ErrInvalidURL
		}
		rest = rest[i+1:]
	}
	if !validHostPort(rest, connect) {
		return "", "", "", ErrInvalidURL
	}
	if !connect && scheme == "" {
		return "", "", "", ErrScheme
	}
	return scheme, view(rest), path, nil
}

// validHostPort checks host[:port]. The port must be there if needPort, and at most 65535.
func validHostPort(b []byte, needPort bool) bool {
	host, port, has := b, []byte(nil), false
	if len(b) > 0 && b[0] == '[' {
		i := bytes.IndexByte(b, ']')
		if i < 0 {
			return false
		}
		host = b[:i+1]
		if rest := b[i+1:]; len(rest) > 0 {
			if rest[0] != ':' {
				return false
			}
			port, has = rest[1:], true
		}
		if a, err := netip.ParseAddr(http.View(b[1:i])); err != nil || !a.Is6() || a.Zone() != "" {
			return false
		}
	} else if i := bytes.IndexByte(b, ':'); i >= 0 {
		host, port, has = b[:i], b[i+1:], true
	}
	if len(host) == 0 || needPort && !has || host[0] != '[' && !allOf(http.View(host), ctName) {
		return false
	}
	if !has {
		return true
	}
	n, ok := decimal(http.View(port))
	return ok && n <= 65535
}
