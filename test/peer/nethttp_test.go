//go:build peers

package peer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
)

// answer is what came back for a request, read to its end.
type answer struct {
	status          int
	proto           string
	header, trailer http.Header
	body            []byte
}

func ask(t *testing.T, c http.RoundTripper, method, url string, body []byte) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "peer")
	r.Header.Set("Accept-Encoding", "identity")
	res, err := c.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v after %d bytes", method, url, err, len(b))
	}
	return answer{res.StatusCode, res.Proto, res.Header, res.Trailer, b}
}

// clearClients are Go's clients without TLS.
func clearClients() map[string]http.RoundTripper {
	h1, h2 := new(http.Protocols), new(http.Protocols)
	h1.SetHTTP1(true)
	h2.SetUnencryptedHTTP2(true)
	return map[string]http.RoundTripper{
		"http1": &http.Transport{Protocols: h1},
		"h2c":   &http.Transport{Protocols: h2},
		"x-net-http2": &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}},
	}
}

func TestGoClients(t *testing.T) {
	ca := newAuthority(t)
	p := startProxy(t, dragoman(t), new(config).cluster("up", newUpstream(t)).plain("plain", "up").secure("secure", "up", ca, "a.test").String())
	trust := &tls.Config{RootCAs: ca.pool(), ServerName: "a.test", MinVersion: tls.VersionTLS12}
	type way struct {
		client    http.RoundTripper
		url, want string
	}
	ways := map[string]way{
		"https-http1":       {&http.Transport{TLSClientConfig: trust.Clone()}, "https://" + p.addr("secure"), "HTTP/1.1"},
		"https-h2":          {&http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}, "https://" + p.addr("secure"), "HTTP/2.0"},
		"https-x-net-http2": {&http2.Transport{TLSClientConfig: trust.Clone()}, "https://" + p.addr("secure"), "HTTP/2.0"},
	}
	for name, client := range clearClients() {
		w := way{client, "http://" + p.addr("plain"), "HTTP/2.0"}
		if name == "http1" {
			w.want = "HTTP/1.1"
		}
		ways[name] = w
	}
	for name, w := range ways {
		for _, up := range []string{"/up", "/h2/up"} {
			t.Run(name+"-"+map[string]string{"/up": "http1", "/h2/up": "h2"}[up], func(t *testing.T) {
				got := ask(t, w.client, "GET", w.url+up+"/hello", nil)
				if got.status != 200 || string(got.body) != "hello\n" || got.proto != w.want {
					t.Errorf("hello: %d %s %q", got.status, got.proto, got.body)
				}
				if got := ask(t, w.client, "HEAD", w.url+up+"/hello", nil); got.status != 200 || len(got.body) != 0 || got.header.Get("Content-Length") != "6" {
					t.Errorf("HEAD: %d %q %v", got.status, got.body, got.header)
				}
				stream(t, w.client, w.url+up+"/echo")
			})
		}
	}
}

// stream sends piece after piece, each only when the one before has come back, so that nothing between the two ends may keep
// one; then a trailer, which must come back as one too.
func stream(t *testing.T, c http.RoundTripper, url string) {
	t.Helper()
	const pieces, most = 60, 40 << 10
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, in := io.Pipe()
	r, err := http.NewRequestWithContext(ctx, "POST", url, out)
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Peer-Trailer": nil}
	res, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	buf := make([]byte, most)
	for i := range pieces {
		piece := blob[i : i+1+i*(most-1)/pieces]
		if _, err := in.Write(piece); err != nil {
			t.Fatalf("piece %d: %v", i, err)
		}
		if _, err := io.ReadFull(res.Body, buf[:len(piece)]); err != nil {
			t.Fatalf("piece %d: %v", i, err)
		}
		if !bytes.Equal(buf[:len(piece)], piece) {
			t.Fatalf("piece %d came back as something else", i)
		}
	}
	want := fmt.Sprintf("after %d pieces", pieces)
	r.Trailer.Set("X-Peer-Trailer", want)
	_ = in.Close()
	if b, err := io.ReadAll(res.Body); err != nil || len(b) != 0 {
		t.Fatalf("end: %d bytes too many, %v", len(b), err)
	}
	if got := res.Trailer.Get("X-Echo-Trailer"); got != want {
		t.Errorf("trailer %q in %v, want %q", got, res.Trailer, want)
	}
}
