package hcm

import "strings"

// validReferer tells whether a referer is a URL with a host, or a relative one, without fragment and user (RFC 9110, section 10.1.3, forbids
// both).
func validReferer(v string) bool {
	if scheme, rest, ok := strings.Cut(v, "://"); ok && validScheme(scheme) {
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		return validHostPort(rest[:end]) && allURL(rest[end:])
	}
	slash := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '/':
			slash = true
		case c == ':' && !slash: // it would be a scheme
			return false
		case !urlChar(c):
			return false
		}
	}
	return true
}

func validScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || s[i] < '0' || s[i] > '9') && (i == 0 || strings.IndexByte("+-.", s[i]) < 0) {
			return false
		}
	}
	return s != ""
}

func validHostPort(s string) bool {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && strings.IndexByte(s[i:], ']') < 0 {
		host, port = s[:i], s[i+1:]
		n := 0
		for j := 0; j < len(port); j++ {
			if port[j] < '0' || port[j] > '9' || n > 65535 {
				return false
			}
			n = n*10 + int(port[j]-'0')
		}
		if port == "" || n > 65535 {
			return false
		}
	}
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		return allOf(host[1:n-1], "0123456789abcdefABCDEF:.")
	}
	for i := 0; i < len(host); i++ {
		c := host[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-') {
			return false
		}
	}
	return host != ""
}

func allOf(s, set string) bool {
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return true
}

func allURL(s string) bool {
	for i := 0; i < len(s); i++ {
		if !urlChar(s[i]) {
			return false
		}
	}
	return true
}

// urlChar tells whether c may stand in a path or a query.
func urlChar(c byte) bool {
	return c > ' ' && c < 0x7f && c != '#' && c != '"' && c != '<' && c != '>' && c != '\\' && c != '^' && c != '`' && c != '{' && c != '|' && c != '}'
}
