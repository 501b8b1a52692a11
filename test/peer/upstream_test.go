//go:build peers

package peer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// blobSize is what the transfers carry: more than every window and buffer between the two ends.
const blobSize = 10 << 20

// blob is the same on every run, and no part of it looks like another.
var blob = func() []byte {
	b := make([]byte, blobSize)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// newUpstream starts a net/http server that speaks HTTP/1 and HTTP/2 without TLS, and returns its address.
func newUpstream(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/up/hello", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Upstream-Proto", r.Proto)
		_, _ = io.WriteString(w, "hello\n")
	})
	mux.HandleFunc("/up/missing", http.NotFound)
	mux.HandleFunc("/up/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/up/blob", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(blob) })
	mux.HandleFunc("/up/sum", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %d %x\n", r.Method, n, h.Sum(nil))
	})
	mux.HandleFunc("/up/request", answerRequest)
	mux.HandleFunc("/up/echo", echo)
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// answerRequest answers with the head that it was asked with, sorted.
func answerRequest(w http.ResponseWriter, r *http.Request) {
	// An answer before the request's end would have no x-envoy-upstream-service-time, now and then.
	_, _ = io.Copy(io.Discard, r.Body)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\nhost: %s\n", r.Method, r.RequestURI, r.Proto, r.Host)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			if strings.EqualFold(name, "X-Request-Id") {
				v = "a request id"
			}
			fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(name), v)
		}
	}
	_, _ = w.Write(b.Bytes())
}

// echo sends every piece back as soon as it has it, and in the end the request's trailer as its own.
func echo(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex() // HTTP/2 always is, and says so by an error
	w.Header().Set("Trailer", "X-Echo-Trailer")
	w.WriteHeader(http.StatusOK)
	if c.Flush() != nil {
		return
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil || c.Flush() != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				panic(http.ErrAbortHandler) // the client must not take it for the end
			}
			break
		}
	}
	w.Header().Set("X-Echo-Trailer", r.Trailer.Get("X-Peer-Trailer"))
}
