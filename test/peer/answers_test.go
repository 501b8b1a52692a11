//go:build peers

package peer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHTTP1DifferentialAnswers is TestHTTP1Differential for what upstreams say: clients of ours and of a real Envoy must get the same.
// $DIFF_ANSWERS is how many answers there are.
func TestHTTP1DifferentialAnswers(t *testing.T) {
	inputs, seed := number(t, "DIFF_ANSWERS", 2000), number(t, "DIFF_SEED", 1)
	pair := judges(t)
	var next atomic.Uint64
	found := &findings{t: t, kinds: map[string][]finding{}}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < inputs; i = next.Add(1) - 1 {
				in := newAnswer(seed, i)
				found.judge(pair, i, &in)
			}
		})
	}
	all.Wait()
	found.hearAgain(pair)
	found.report(inputs)
	found.same.compare(t, pair)
}

// newAnswer makes a request that is right and the answer that the upstream gives to it.
func newAnswer(seed, i uint64) byteStream {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, i))}
	method := g.pick(70, []string{"GET", "HEAD", "POST", "PUT"})
	in := byteStream{listener: g.any([]string{"default", "lenient", "edge"}), bytes: []byte(method + " /answer HTTP/1.1\r\nhost: h\r\n")}
	if g.chance(5) {
		in.bytes = append(in.bytes, "connection: upgrade\r\nupgrade: websocket\r\n"...)
	}
	if method != "GET" && method != "HEAD" {
		in.bytes = append(in.bytes, "content-length: 4\r\n\r\nbody"...)
	} else {
		in.bytes = append(in.bytes, "\r\n"...)
	}
	g.answer(method)
	a := &byteStream{bytes: []byte(g.b.String())}
	if g.chance(35) {
		for n := 1 + g.few(3); n > 0; n-- {
			a.bytes = g.mutate(a.bytes)
		}
	}
	a.cuts = g.cutUp(len(a.bytes))
	if g.chance(60) {
		a.listener = "close" // what the upstream does at the end
	}
	in.answer = a
	return in
}

func (g *generator) answer(method string) {
	for g.chance(6) {
		g.b.WriteString("HTTP/1.1 " + g.pick(60, []string{"100 Continue", "103 Early Hints", "102 Processing", "199 x", "101 Switching Protocols"}) + g.eol())
		if g.chance(40) {
			g.field(g.any([]string{"x-a", "link", "content-length"}), g.any([]string{"1", "0", "a"}))
		}
		g.b.WriteString(g.eol())
	}
	g.b.WriteString(g.pick(92, versions) + g.pick(98, blanks) + g.pick(60, answerCodes) + g.pick(98, blanks) + g.pick(80, reasonPhrases) + g.eol())
	body := ""
	switch k := g.IntN(10); {
	case k < 4:
		body = strings.Repeat("body", g.IntN(6))
		n := fmt.Sprint(len(body))
		if g.chance(12) {
			n = g.any(lengths)
		}
		g.field("content-length", n)
		if g.chance(6) {
			body += "more"
		}
	case k < 8:
		g.field("transfer-encoding", g.pick(85, codings))
		if g.chance(5) {
			g.field("content-length", g.any(lengths))
		}
		body = g.chunks()
	default:
		body = g.any([]string{"", "until the end", "0\r\n\r\n"})
	}
	if method == "HEAD" && g.chance(80) {
		body = ""
	}
	for n := g.IntN(4); n > 0; n-- {
		h := answerFields[g.IntN(len(answerFields))]
		g.field(h[0], g.any(h[1:]))
	}
	if g.chance(1) {
		g.many()
	}
	g.b.WriteString(g.eol())
	g.b.WriteString(body)
	if g.chance(4) {
		g.b.WriteString(g.any([]string{"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "x", "\r\n"}))
	}
}
