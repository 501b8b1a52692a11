package health

import "bytes"

// contains tells whether the parts are in b, one after the other with anything between them.
func contains(b []byte, parts [][]byte) bool {
	for _, p := range parts {
		i := bytes.Index(b, p)
		if i < 0 {
			return false
		}
		b = b[i+len(p):]
	}
	return true
}
