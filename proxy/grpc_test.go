package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// A gRPC request is a success of its host by its status; an answer that ends without one is an error, as in Envoy.
func TestGRPCStatusOfHosts(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if s := r.URL.Query().Get("status"); s != "" {
			w.Header().Set("Grpc-Status", s)
		}
		w.WriteHeader(200)
		if r.URL.Path == "/body" {
			_, _ = w.Write([]byte("hello"))
		}
	})
	r := run(t, build(t, text(t, addr)))
	defer r.end()
	counted := regexp.MustCompile(`::rq_(error|success)::([1-9]\d*)\n`)
	page := func() string {
		w := httptest.NewRecorder()
		r.p.Admin().ServeHTTP(w, httptest.NewRequest("GET", "/clusters", nil))
		var out []string
		for _, m := range counted.FindAllStringSubmatch(w.Body.String(), -1) {
			out = append(out, m[1]+" "+m[2])
		}
		return strings.Join(out, ", ")
	}
	for _, c := range []struct{ path, kind, want string }{
		{"/body", "text/plain", "success 1"},
		{"/?status=0", "application/grpc", "success 2"},
		{"/body", "application/grpc", "error 1, success 2"},
		{"/body?status=0", "application/grpc", "error 2, success 2"}, // a status in the head counts only if there is nothing else
		{"/?status=14", "application/grpc", "error 3, success 2"},
		{"/?status=5", "application/grpc", "error 3, success 3"},
		{"/", "application/grpc", "error 4, success 3"},
	} {
		resp, err := http.Post(r.url(c.path), c.kind, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := page(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.path, got, c.want)
		}
	}
}
