package tls

import (
	"bytes"
	"testing"
)

// TestBuffersAreFound fails if a release of Go names the buffers of a tls.Conn otherwise: idle connections would hold them again.
func TestBuffersAreFound(t *testing.T) {
	if inputAt == 0 || handshakeAt == 0 {
		t.Fatalf("crypto/tls has no rawInput (%d) or no hand (%d) that is a bytes.Buffer", inputAt, handshakeAt)
	}
}

func record(n int) []byte {
	b := append([]byte{23, 3, 3, byte(n >> 8), byte(n)}, bytes.Repeat([]byte{byte(n)}, n)...)
	return b
}

func TestWhole(t *testing.T) {
	one, two := record(10), record(300)
	both := append(append([]byte{}, one...), two...)
	for _, x := range []struct {
		name    string
		b       []byte
		n, next int
	}{
		{"nothing", nil, 0, 0},
		{"half a header", one[:4], 0, 0},
		{"a header", one[:5], 0, 15},
		{"all but a byte", one[:14], 0, 15},
		{"one", one, 15, 0},
		{"one and half a header", both[:17], 15, 0},
		{"one and a half", both[:30], 15, 305},
		{"two", both, 320, 0},
		{"the longest", record(maxRecord - 5)[:6], 0, maxRecord},
		{"too long", record(maxRecord - 4)[:6], 6, 0},
	} {
		if n, next := whole(x.b); n != x.n || next != x.next {
			t.Errorf("%s: %d, %d, want %d, %d", x.name, n, next, x.n, x.next)
		}
	}
}

// TestParts cuts records into pieces of every size: what comes out is whole records, in order, and nothing else.
func TestParts(t *testing.T) {
	var all []byte
	for _, n := range []int{0, 1, 10, 300, 5, 4000, maxRecord - 5, 7} {
		all = append(all, record(n)...)
	}
	for step := 1; step < 400; step++ {
		l := &local{}
		var p part
		var got []byte
		for rest := all; len(rest) > 0; {
			b := rest[:min(step, len(rest))]
			rest = rest[len(b):]
			if p.buf != nil {
				var complete bool
				if b, complete = p.fill(b); !complete {
					continue
				}
				if n, next := whole(p.buf); n != len(p.buf) || next != 0 {
					t.Fatalf("step %d: a part of %d bytes is no record", step, len(p.buf))
				}
				got = append(got, p.buf...)
				l.putPart(p.buf)
				p = part{}
			}
			n, size := whole(b)
			got = append(got, b[:n]...)
			if n < len(b) {
				p = part{append(l.takePart(), b[n:]...), size}
			}
		}
		if !bytes.Equal(got, all) || p.buf != nil {
			t.Fatalf("step %d: %d bytes of %d, part %v", step, len(got), len(all), p.buf != nil)
		}
		if len(l.parts) > 1 {
			t.Fatalf("step %d: %d parts for one connection", step, len(l.parts))
		}
	}
}

func TestPartThatIsTooLong(t *testing.T) {
	l := &local{}
	p := part{buf: append(l.takePart(), 23, 3, 3)}
	rest, complete := p.fill([]byte{0xff, 0xff, 1, 2, 3})
	if !complete || len(rest) != 3 || len(p.buf) != headerSize {
		t.Errorf("complete %v, %d bytes left, %d taken: crypto/tls must see the header at once", complete, len(rest), len(p.buf))
	}
}

func TestPartsAreBounded(t *testing.T) {
	l := &local{}
	for range maxParts + 1 {
		l.putPart(make([]byte, 0, maxRecord+spare))
	}
	if len(l.parts) != maxParts {
		t.Errorf("%d parts are kept, want %d", len(l.parts), maxParts)
	}
}
