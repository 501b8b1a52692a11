package match

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

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
	return string(format.AppendDecoded(nil, s))
}
