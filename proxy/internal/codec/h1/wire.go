package h1

import (
	"bytes"

	"github.com/dragoman-proxy/dragoman/api/http"
)

// headerBytes is what Envoy counts as the header bytes of a head that was received: raw without its first line, the empty line at its end,
// and the blank before each value.
func headerBytes(raw []byte, h *http.HeaderMap) uint64 {
	fields := 0
	for _, f := range h.All() {
		if f.ID < http.Method || f.ID > http.Protocol || f.ID == http.Authority {
			fields++
		}
	}
	return fieldBytes(len(raw)-bytes.IndexByte(raw, '\n')-1, fields)
}

// fieldBytes is what Envoy counts of the fields of n bytes with the empty line behind them: all but one blank each. No fields are 3.
func fieldBytes(n, fields int) uint64 {
	if fields == 0 {
		return 3
	}
	return uint64(max(n-2-fields, 0))
}

// sentHeaderBytes is the same for a head of n bytes that was sent, in which the blanks count.
func sentHeaderBytes(n int, start *[4]string) uint64 {
	for _, s := range start {
		n -= len(s)
	}
	return uint64(max(n-2, 0))
}

// sentTrailerBytes is what of the n bytes behind the last chunk's data are trailers.
func sentTrailerBytes(n int) uint64 {
	return uint64(max(n-len(trailerStart)-len(tailNone), 0))
}
