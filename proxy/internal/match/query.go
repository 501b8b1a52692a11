package match

import "strings"

// QueryParam returns the first value of a query parameter of a path. Names and values are percent-decoded; a plus stays one.
func QueryParam(path, name string) (string, bool) {
	_, q, found := strings.Cut(path, "?")
	for found {
		var pair string
		pair, q, found = strings.Cut(q, "&")
		k, v, _ := strings.Cut(pair, "=")
		if unescape(k) == name {
			return unescape(v), true
		}
	}
	return "", false
}

// unescape percent-decodes what is well-formed of s.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi < 16 && lo < 16 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
