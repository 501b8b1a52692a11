//go:build peers

package peer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// byteStream is what a client of TestHTTP1Differential writes: the bytes, and where one write ends and the next begins.
type byteStream struct {
	listener string
	bytes    []byte
	cuts     []int
	// answer is what the upstream says to /answer; its listener is "close" if it closes then.
	answer *byteStream
}

// varied is what is varied about a stream.
func (s *byteStream) varied() *byteStream {
	if s.answer != nil {
		return s.answer
	}
	return s
}

// generator makes byte streams of HTTP/1 requests, most of them broken somewhere. The same seed and number make the same stream.
type generator struct {
	*rand.Rand
	b strings.Builder
}

// newStream makes stream number i of a seed.
func newStream(seed, i uint64, listeners []string) byteStream {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, i))}
	in := byteStream{listener: listeners[g.IntN(len(listeners))]}
	for n := 1 + g.few(3); n > 0; n-- {
		g.request()
	}
	if g.chance(30) {
		g.b.WriteString("GET /last HTTP/1.1\r\nhost: last\r\n\r\n")
	}
	in.bytes = []byte(g.b.String())
	if g.chance(45) {
		for n := 1 + g.few(3); n > 0; n-- {
			in.bytes = g.mutate(in.bytes)
		}
	}
	in.cuts = g.cutUp(len(in.bytes))
	return in
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// few is a number below n, mostly 0.
func (g *generator) few(n int) int {
	k := 0
	for k < n-1 && g.chance(25) {
		k++
	}
	return k
}

// pick takes one of a list, mostly its first: the lists begin with what is right.
func (g *generator) pick(usual int, list []string) string {
	if g.chance(usual) {
		return list[0]
	}
	return list[g.IntN(len(list))]
}

func (g *generator) any(list []string) string { return list[g.IntN(len(list))] }

// cutUp says how the bytes are split: not at all, at one place, at a few, or at every one.
func (g *generator) cutUp(n int) []int {
	if n < 2 {
		return nil
	}
	var cuts []int
	switch k := g.IntN(10); {
	case k < 5:
	case k < 8:
		cuts = append(cuts, 1+g.IntN(n-1))
	case k < 9:
		for at := 1 + g.IntN(n-1); at < n && len(cuts) < 6; at += 1 + g.IntN(40) {
			cuts = append(cuts, at)
		}
	default:
		if n > 120 {
			from := g.IntN(n - 100)
			for at := from + 1; at < from+100; at++ {
				cuts = append(cuts, at)
			}
			break
		}
		for at := 1; at < n; at++ {
			cuts = append(cuts, at)
		}
	}
	return cuts
}

func (g *generator) request() {
	method := g.pick(30, methods)
	if g.chance(30) {
		method = "POST"
	}
	if g.chance(3) {
		g.b.WriteString(g.any([]string{"\r\n", "\n", "\r", " ", "\r\n\r\n", "\x00", "\t"}))
	}
	target := g.pick(40, targets)
	if method == "CONNECT" && g.chance(70) {
		target = g.any([]string{"h:80", "[::1]:443", "h", "h:0", "h:99999", "u@h:1", "h:80/x", "1.2.3.4:5"})
	}
	g.b.WriteString(method + g.pick(97, blanks) + target + g.pick(97, blanks) + g.pick(85, versions) + g.eol())
	body := g.framing(method)
	if g.chance(95) {
		g.field(g.pick(80, hostNames), g.pick(70, hosts))
	}
	for n := g.IntN(4) + g.few(6); n > 0; n-- {
		g.field(g.header())
	}
	if g.chance(1) {
		g.many()
	}
	g.b.WriteString(g.eol())
	g.b.WriteString(body)
}

func (g *generator) eol() string { return g.pick(98, eols) }

// many are enough fields, or bytes, to come near the limits.
func (g *generator) many() {
	switch g.IntN(3) {
	case 0:
		for n := 3 + g.IntN(110); n > 0; n-- {
			g.field("x-many", "v")
		}
	case 1:
		g.field("x-long", strings.Repeat("v", 700+g.IntN(600)))
	default:
		g.field("x-long", strings.Repeat("v", 60<<10-300+g.IntN(600)))
	}
}

func (g *generator) field(name, value string) {
	if g.chance(3) {
		name = g.any(oddNames)
	}
	sep := g.pick(96, []string{": ", ":", " : ", ":\t", " ", ":  ", "::", "\t:", ":\r\n ", ": \t ", ":\x00", ":\x0b"})
	end := g.pick(96, []string{"", " ", "\t", " \t ", "\r\n folded", "\r\n\tfolded", "\r\n ", "\x00", "\x7f", "\x01", "\x80", "\xff", "\x0c", "\r"})
	g.b.WriteString(name + sep + value + end + g.eol())
}

// header is a field that is no framing, or one that says something about it against all rules.
func (g *generator) header() (name, value string) {
	if g.chance(6) {
		return g.any([]string{"content-length", "Content-Length", "transfer-encoding"}), g.any(append(lengths, codings...))
	}
	h := headers[g.IntN(len(headers))]
	return h[0], g.any(h[1:])
}

// framing writes the fields that say where the body ends, and returns the body.
func (g *generator) framing(method string) (body string) {
	k := g.IntN(10)
	if method != "POST" && g.chance(70) {
		k = 0
	}
	switch {
	case k < 3:
		return ""
	case k < 6:
		body = strings.Repeat("body", g.IntN(8))
		n := fmt.Sprint(len(body))
		if g.chance(15) {
			n = g.any(lengths)
		}
		g.field(g.any([]string{"content-length", "Content-Length"}), n)
		switch {
		case g.chance(5) && len(body) > 0:
			body = body[:len(body)-1]
		case g.chance(5):
			body += "more"
		}
		return body
	case k < 9:
		g.field(g.any([]string{"transfer-encoding", "Transfer-Encoding"}), g.pick(80, codings))
		if g.chance(5) {
			g.field("content-length", g.any(lengths))
		}
		return g.chunks()
	}
	return g.any([]string{"body", "0\r\n\r\n", "\r\n", "5\r\nhello\r\n0\r\n\r\n"})
}

func (g *generator) chunks() string {
	var b strings.Builder
	for n := g.IntN(3); n > 0; n-- {
		data := strings.Repeat("d", 1+g.IntN(20))
		size := fmt.Sprintf("%x", len(data))
		if g.chance(8) {
			size = g.any([]string{"0" + size, strings.ToUpper(size), "0x" + size, " " + size, size + " ", "+" + size, "", "-1", "ffffffffffffffff",
				"10000000000000000", "g", size + "\t", "00000000000000000000" + size, "fffffffffffffff0", "\x00" + size})
		}
		b.WriteString(size + g.pick(85, extensions) + g.eol() + data + g.pick(96, []string{"\r\n", "\n", "", "x\r\n", "\r", "\r\r\n", " \r\n", "xyz\n"}))
	}
	b.WriteString(g.pick(95, []string{"0", "00", "000000000000000000000000000", "0x0", ""}) + g.pick(90, extensions) + g.eol())
	for n := g.few(4); n > 0; n-- {
		h := trailers[g.IntN(len(trailers))]
		b.WriteString(h + g.eol())
	}
	b.WriteString(g.pick(95, []string{"\r\n", "\n", "", "\r", "x", " \r\n"}))
	return b.String()
}

// mutate changes a byte or a few.
func (g *generator) mutate(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	at := g.IntN(len(b))
	odd := oddBytes[g.IntN(len(oddBytes))]
	if g.chance(10) {
		odd = string([]byte{byte(g.IntN(256))})
	}
	out := append([]byte(nil), b[:at]...)
	switch g.IntN(6) {
	case 0: // less
		return append(out, b[min(len(b), at+1+g.few(8)):]...)
	case 1, 2: // more
		return append(append(out, odd...), b[at:]...)
	case 3: // other
		return append(append(out, odd...), b[at+1:]...)
	case 4: // twice
		end := min(len(b), at+1+g.IntN(20))
		return append(append(out, b[at:end]...), b[at:]...)
	}
	return out // the rest never comes
}
