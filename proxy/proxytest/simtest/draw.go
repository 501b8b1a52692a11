package simtest

import (
	"fmt"

	"github.com/dragoman-proxy/dragoman/api/rand"
)

// Chances of a client, in a hundred.
const (
	percentAbort   = 8
	percentClose   = 10
	percentExpect  = 5
	percentSlow    = 30
	percentUpgrade = 20
)

func percent(r *rand.Source, n int) bool { return r.IntN(100) < n }

// size draws the length of a body: mostly small, sometimes more than any buffer on the way.
func size(r *rand.Source) int {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1, 2, 3:
		return 1 + r.IntN(200)
	case 4, 5:
		return 1 + r.IntN(20_000)
	case 6:
		return 1 + r.IntN(200_000)
	}
	return 1 + r.IntN(500_000)
}

// maxRedirected is the largest body of requests that are redirected, in bytes: proxies must be able to keep it.
const maxRedirected = 10_000

// drawRequest draws what a client asks for next.
func drawRequest(g *game, rnd *rand.Source, client string) *request {
	r := &request{client: client, method: "GET", status: 200, down: size(rnd)}
	switch n := rnd.IntN(20); {
	case n < 7:
		r.method, r.up, r.chunks = "POST", size(rnd), percent(rnd, 50)
	case n < 8:
		r.method, r.up = "PUT", size(rnd)
	case n < 10:
		r.method = "HEAD"
	case n < 11:
		r.status = []int{204, 304, 404, 500}[rnd.IntN(4)]
	}
	if g.o.Redirects && r.up <= maxRedirected {
		r.hops = rnd.IntN(3)
	}
	g.ledger.add(r)
	if g.o.Trailers {
		body := r.method == "POST" || r.method == "PUT"
		r.upTrail = body && (r.chunks || g.o.Protocol == HTTP2) && percent(rnd, 40)
		r.downTrail = !r.bodiless() && percent(rnd, 40)
		if r.upTrail && !r.chunks {
			r.chunks = true // without a length, which HTTP/1 behind it needs for them
		}
	}
	r.path = fmt.Sprintf("/r/%d?client=%s", r.id, client)
	return r
}

// trailerName and trailerOf are the trailer of a request, or its answer.
const trailerName = "x-trailer"

func trailerOf(r *request, direction uint64) string { return fmt.Sprintf("%d-%d", r.id, direction) }

// withTrailer puts a trailer behind the chunks of a body.
func withTrailer(pieces [][]byte, r *request, direction uint64) [][]byte {
	pieces[len(pieces)-1] = fmt.Appendf(nil, "0\r\n%s: %s\r\n\r\n", trailerName, trailerOf(r, direction))
	return pieces
}

// bodyPieces returns a body as it goes over the wire, in pieces of chance; chunked, its chunks, the last one too.
func bodyPieces(rnd *rand.Source, b body, n int, chunked bool) (pieces [][]byte) {
	for most := 1 + rnd.IntN(6); n > 0; most-- {
		k := n
		if most > 1 {
			k = 1 + rnd.IntN(n)
		}
		n -= k
		var p []byte
		if chunked {
			p = fmt.Appendf(p, "%x\r\n", k)
		}
		p = b.append(p, k)
		if chunked {
			p = append(p, "\r\n"...)
		}
		pieces = append(pieces, p)
	}
	if chunked {
		pieces = append(pieces, []byte("0\r\n\r\n"))
	}
	return pieces
}
