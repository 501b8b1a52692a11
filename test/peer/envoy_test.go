//go:build peers

package peer_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestEnvoyChain puts each of the two proxies in front of each. Two real Envoys in a row say what is right; every other chain
// must give the same answers, and its upstream must see the same requests.
func TestEnvoyChain(t *testing.T) {
	commands := map[string][]string{"envoy": realEnvoy(t), "dragoman": dragoman(t)}
	upstream := newUpstream(t)
	fronts := new(config)
	for name, command := range commands {
		back := startProxy(t, command, new(config).cluster("up", upstream).plain("plain", "up").String())
		fronts.cluster(name, back.addr("plain")).plain("to-"+name, name)
	}
	bases := map[string]string{}
	for name, command := range commands {
		front := startProxy(t, command, fronts.String())
		for back := range commands {
			bases[name+"-"+back] = "http://" + front.addr("to-"+back)
		}
	}
	clients := clearClients()
	delete(clients, "x-net-http2") // one client for each version will do
	const right = "envoy-envoy"
	for version, client := range clients {
		// The front takes one /h2 off, so that both links of the chain are chosen by the path.
		for _, path := range []string{"/up", "/h2/up", "/h2/h2/up"} {
			t.Run(version+strings.ReplaceAll(path, "/", "-"), func(t *testing.T) {
				want := chainAnswers(t, client, bases[right]+path)
				if !strings.Contains(want, "x-envoy-expected-rq-timeout-ms") || !strings.Contains(want, "POST 10485760 "+sum(blob)) {
					t.Fatalf("what two Envoys say is not what this test thinks:\n%s", want)
				}
				for _, chain := range slices.Sorted(maps.Keys(bases)) {
					if got := chainAnswers(t, client, bases[chain]+path); got != want {
						t.Errorf("%s\n%s\nwant\n%s", chain, got, want)
					}
					stream(t, client, bases[chain]+path+"/echo")
				}
			})
		}
	}
}

// chainAnswers is all that a client learns through a chain of proxies, but for what is another on each request.
func chainAnswers(t *testing.T, client http.RoundTripper, base string) string {
	t.Helper()
	var b strings.Builder
	for _, q := range []struct {
		method, path string
		body         []byte
	}{
		{"GET", "/hello", nil}, {"HEAD", "/hello", nil}, {"GET", "/request", nil}, {"POST", "/request", []byte("x")}, {"GET", "/missing", nil},
		{"GET", "/empty", nil}, {"POST", "/sum", blob}, {"GET", "/blob", nil},
	} {
		got := ask(t, client, q.method, base+q.path, q.body)
		body := string(got.body)
		if len(body) == len(blob) {
			body = sum(got.body)
		}
		fmt.Fprintf(&b, "> %s %s\n%s %d\n", q.method, q.path, got.proto, got.status)
		b.WriteString(headerLines(got.header))
		b.WriteString(hostLine.ReplaceAllString(body, "host: the front\n"))
	}
	return b.String()
}

func headerLines(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(h[name], ", "))
	}
	return steady(b.String())
}

var (
	hostLine   = regexp.MustCompile(`(?m)^host: .*\n`)
	changing   = regexp.MustCompile(`(?im)^(date|x-envoy-upstream-service-time): [^\r\n]*`)
	ownAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// steady takes out what is another on each request.
func steady(s string) string {
	return ownAddress.ReplaceAllString(changing.ReplaceAllString(s, "$1: changing"), "here")
}

// TestEnvoyBytes runs one bootstrap in both proxies and compares the bytes of their HTTP/1 answers: order and case of headers,
// framing, reason phrases, bodies of local replies, and what the upstream is sent.
func TestEnvoyBytes(t *testing.T) {
	bootstrap := new(config).cluster("up", newUpstream(t)).plain("plain", "up").String()
	envoy := startProxy(t, realEnvoy(t), bootstrap)
	own := startProxy(t, dragoman(t), bootstrap)
	type pair struct{ want, got answerBytes }
	pairs := map[string]*pair{}
	// All at once: after many an answer both proxies wait a second for the client to close.
	var all sync.WaitGroup
	for name, request := range rawRequests {
		p := new(pair)
		pairs[name] = p
		all.Go(func() { p.want = exchange(envoy.addr("plain"), request) })
		all.Go(func() { p.got = exchange(own.addr("plain"), request) })
	}
	all.Wait()
	for name, p := range pairs {
		t.Run(name, func(t *testing.T) {
			if p.want.err != nil || !strings.HasPrefix(p.want.text, "HTTP/1.1 ") {
				t.Fatalf("what Envoy says is not what this test thinks: %q, %v", p.want.text, p.want.err)
			}
			if p.got.err != nil || p.got.text != p.want.text {
				t.Errorf("dragoman %q %v\nenvoy    %q", p.got.text, p.got.err, p.want.text)
			}
		})
	}
}

// rawRequests are what TestEnvoyBytes writes. Every one makes the proxy end the connection.
var rawRequests = map[string]string{
	"direct":             "GET /direct HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"direct HEAD":        "HEAD /direct HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"redirect":           "GET /moved?a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"no route":           "GET /elsewhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"no cluster":         "GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"upstream":           "GET /up/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"upstream h2":        "GET /h2/up/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"upstream 404":       "GET /up/missing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"upstream 204":       "GET /up/empty HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"what upstream sees": "GET /up/request?q HTTP/1.1\r\nHost: x\r\nX-Mine: 1\r\nx-mine: 2\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nTE: trailers\r\n\r\n",
	"what h2 sees":       "GET /h2/up/request?q HTTP/1.1\r\nHost: x\r\nX-Mine: 1\r\nx-mine: 2\r\nConnection: close\r\n\r\n",
	"length":             "POST /up/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
	"chunks":             "POST /up/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2;ext=1\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: 1\r\n\r\n",
	"pipelined":          "GET /direct HTTP/1.1\r\nHost: x\r\n\r\nGET /up/hello HTTP/1.1\r\nHost: x\r\n\r\nGET /direct HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"absolute":           "GET http://y/direct HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"expect":             "POST /up/sum HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
	"HTTP/1.0":           "GET /direct HTTP/1.0\r\nHost: x\r\n\r\n",
	"no host":            "GET /direct HTTP/1.1\r\n\r\n",
	"two lengths":        "POST /up/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
	"length and chunks":  "POST /up/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"bad name":           "GET /direct HTTP/1.1\r\nHost: x\r\nX Y: 1\r\n\r\n",
	"bad version":        "GET /direct HTTP/3.7\r\nHost: x\r\n\r\n",
	"not HTTP":           "\x00\x01\x02\x03 hello\r\n\r\n",
	"too large":          "GET /direct HTTP/1.1\r\nHost: x\r\nX-Large: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
}

// answerBytes are all bytes until the proxy ended the connection.
type answerBytes struct {
	text string
	err  error
}

// exchange writes a request and returns what comes until the proxy ends the connection.
func exchange(addr, request string) (a answerBytes) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return answerBytes{err: err}
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, request); err != nil {
		return answerBytes{err: err}
	}
	b, err := io.ReadAll(c)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil // an end as well: the proxy may close with bytes of a bad request unread
	}
	return answerBytes{steady(string(b)), err}
}

// TestEnvoyLocalReplies compares what the two say by themselves over HTTP/2.
func TestEnvoyLocalReplies(t *testing.T) {
	bootstrap := new(config).cluster("up", newUpstream(t)).plain("plain", "up").String()
	envoy := startProxy(t, realEnvoy(t), bootstrap)
	own := startProxy(t, dragoman(t), bootstrap)
	client := clearClients()["x-net-http2"]
	for path, status := range map[string]int{"/direct": 200, "/moved": 301, "/elsewhere": 404, "/nowhere": 503} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			t.Run(method+path, func(t *testing.T) {
				var said [2]string
				for i, p := range []*proxy{envoy, own} {
					a := ask(t, client, method, "http://"+p.addr("plain")+path, nil)
					if a.status != status {
						t.Errorf("status %d, want %d", a.status, status)
					}
					said[i] = headerLines(a.header) + string(a.body)
				}
				if said[0] != said[1] {
					t.Errorf("dragoman %q\nenvoy    %q", said[1], said[0])
				}
			})
		}
	}
}
