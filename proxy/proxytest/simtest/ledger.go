package simtest

import (
	"errors"
	"fmt"
	"strings"
)

// ledger holds every request of a game, and what was seen to go wrong.
type ledger struct {
	g        *game
	requests []*request // by id, from 1
	wrong    []string
	clean    bool // the whole game was
}

// maxWrong bounds what a report says: what comes after the first few is mostly their consequence.
const maxWrong = 5

// request is one exchange. For TCP it is a connection: up and down are what the two directions carry.
type request struct {
	id     int
	client string
	method string
	path   string
	up     int  // bytes of the request's body
	chunks bool // in chunks
	expect bool // Expect: 100-continue
	status int  // that the upstream is asked to answer with
	down   int  // bytes of the answer's body
	hops   int  // how often it is redirected before

	upTrail   bool // the body has a trailer behind it
	downTrail bool // the answer's has
	upgrade   bool // it asks for a tunnel

	seen     int // how often an upstream saw its head
	arrived  int // how often an upstream saw it whole
	ended    string
	received int
	cut      bool // the upstream ended its answer too early in a way that looks like the end
}

// bodiless tells whether the answer has no body whatever its headers say (RFC 9110, 6.4.1).
func (r *request) bodiless() bool { return r.method == "HEAD" || r.status == 204 || r.status == 304 }

func (l *ledger) add(r *request) *request {
	l.requests = append(l.requests, r)
	r.id = len(l.requests)
	return r
}

// find returns the request that somebody says he has got.
func (l *ledger) find(id int) *request {
	if id < 1 || id > len(l.requests) {
		l.fail("a request or answer came out that nobody sent: id %d", id)
		return nil
	}
	return l.requests[id-1]
}

func (l *ledger) fail(format string, args ...any) {
	if len(l.wrong) < maxWrong {
		l.wrong = append(l.wrong, fmt.Sprintf("at %v: ", l.g.w.Elapsed())+fmt.Sprintf(format, args...))
	}
}

func (l *ledger) failed() bool { return len(l.wrong) > 0 }

// finish ends a request, which must happen once.
func (l *ledger) finish(r *request, how string) {
	if r.ended != "" {
		l.fail("request %d ended twice: %s, then %s", r.id, r.ended, how)
		return
	}
	r.ended = how
}

// Ways to end.
const (
	answered = "answered"
	aborted  = "aborted by the client"
	// notAccepted: the connection broke, and the proxy listens no more.
	notAccepted = "not accepted any more"
)

// excuse ends a request without an answer; that is wrong where nothing may fail.
func (l *ledger) excuse(r *request, how string) {
	l.finish(r, how)
	if l.g.clean() && how != aborted && how != notAccepted {
		l.fail("request %d of %s (%s %s, %d up, %d down, expect %v): %s after %d bytes, although nothing failed", r.id, r.client, r.method, r.path, r.up, r.down, r.expect, how, r.received)
	}
}

// saw notes that an upstream has got the head of a request.
func (l *ledger) saw(r *request) {
	r.seen++
	if r.seen > (1+l.g.o.Retries)*(1+r.hops) {
		l.fail("request %d came to an upstream %d times", r.id, r.seen)
	}
}

// close checks what holds in the end.
func (l *ledger) close() {
	for _, r := range l.requests {
		if r.ended == "" {
			l.fail("request %d of %s never ended", r.id, r.client)
		}
		if r.ended == answered && r.seen == 0 {
			l.fail("request %d was answered, but no upstream saw it", r.id)
		}
		if r.ended == answered && r.arrived == 0 && l.clean {
			l.fail("request %d was answered, but no upstream saw all of it", r.id)
		}
	}
}

func (l *ledger) open() string {
	var s []string
	for _, r := range l.requests {
		if r.ended == "" {
			s = append(s, fmt.Sprintf("request %d of %s (%s, %d up, %d down, seen %d, arrived %d, received %d)", r.id, r.client, r.method, r.up, r.down, r.seen, r.arrived, r.received))
		}
	}
	return "open: " + strings.Join(s, ", ")
}

func (l *ledger) err() error {
	if len(l.wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(l.wrong, "; "))
}

// trailer checks what came behind a body; fields are names and values.
func (l *ledger) trailer(r *request, direction uint64, fields [][2]string) error {
	want, got := "", ""
	if l.g.o.Trailers && (direction == upward && r.upTrail || direction == downward && r.downTrail) {
		want = trailerOf(r, direction)
	}
	for _, f := range fields {
		if strings.EqualFold(f[0], trailerName) {
			got += f[1]
		}
	}
	if got != want {
		return fmt.Errorf("trailer %q instead of %q behind request %d, direction %d", got, want, r.id, direction)
	}
	return nil
}

// Directions of a body.
const (
	upward uint64 = iota
	downward
)

// body is the content of a request's body or its answer's: any byte that is lost, invented, moved or of another request shows.
type body struct {
	state uint64
	n     int
}

func newBody(r *request, direction uint64) body {
	return body{state: uint64(r.id)*0x9e3779b97f4a7c15 ^ direction<<63 | 1}
}

func (b *body) next() byte {
	b.state ^= b.state << 13
	b.state ^= b.state >> 7
	b.state ^= b.state << 17
	b.n++
	return byte(b.state >> 32)
}

// append appends the next n bytes to dst.
func (b *body) append(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, b.next())
	}
	return dst
}

// check tells whether p is what comes next.
func (b *body) check(p []byte) bool {
	for _, c := range p {
		if b.next() != c {
			return false
		}
	}
	return true
}
