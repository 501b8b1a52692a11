package h1

import (
	"encoding/binary"
	"math/bits"

	"github.com/dragoman-proxy/dragoman/api/http"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080

	// fastWindow is how much of what was read the fast path looks at: heads are rarely larger.
	fastWindow = 2 << 10
	// pad is read over by loads of eight bytes at the end of the window.
	pad = 8
)

// fastHead is how most heads are parsed: one pass over a copy in the arena, which gives up at anything unusual (a head that is
// not complete, folded lines, bare CR or LF, names that are held once and came twice, too many fields, any error) and leaves
// the head to the slow path. Both paths must agree wherever this one succeeds.
type fastHead struct {
	buf []byte // the arena's copy with pad bytes behind the window
	end int    // of the window
	pos int
}

// begin copies the window.
func (f *fastHead) begin(h *http.HeaderMap, b []byte, max int) {
	f.end = min(len(b), max, fastWindow)
	f.buf = h.Arena().Bytes(f.end + pad)
	copy(f.buf, b[:f.end])
	clear(f.buf[f.end:])
	f.pos = 0
}

// keep gives back the memory behind the head, or all of it if the fast path failed.
func (f *fastHead) keep(h *http.HeaderMap, ok bool) {
	if !ok {
		f.pos = 0
	}
	h.Arena().Trim(f.buf, f.pos)
}

func load(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8 : len(b)]) }

// requestLine parses "METHOD SP target SP HTTP/1.1 CR LF".
func (f *fastHead) requestLine() (s startLine, ok bool) {
	buf := f.buf
	i := 0
	for i < len(buf) && class[buf[i]]&ctToken != 0 {
		i++
	}
	if i >= f.end || buf[i] != ' ' {
		return s, false
	}
	if s.method = method(buf[:i]); s.method == "" {
		return s, false
	}
	i++
	start := i
	for i < f.end {
		// The first byte that is not 0x21 to 0x7e.
		x := load(buf, i)
		if m := (x | (x - ones*0x21) | (x + ones)) & highs; m != 0 {
			i += bits.TrailingZeros64(m) / 8
			break
		}
		i += 8
	}
	if i+11 > f.end || i == start {
		return s, false
	}
	const http11 = 'H' | 'T'<<8 | 'T'<<16 | 'P'<<24 | '/'<<32 | '1'<<40 | '.'<<48 | '1'<<56
	if buf[i] != ' ' || load(buf, i+1) != http11 || buf[i+9] != '\r' || buf[i+10] != '\n' {
		return s, false
	}
	s.target = buf[start:i:i]
	s.version = http.HTTP11
	f.pos = i + 11
	return s, s.target[0] == '/' || validTarget(s.target, s.method)
}

// statusLine parses "HTTP/1.1 SP 3DIGIT SP reason CR LF".
func (f *fastHead) statusLine() (s statusLine, ok bool) {
	const http11 = 'H' | 'T'<<8 | 'T'<<16 | 'P'<<24 | '/'<<32 | '1'<<40 | '.'<<48 | '1'<<56
	buf := f.buf
	if f.end < 15 || load(buf, 0) != http11 || buf[8] != ' ' || buf[12] != ' ' {
		return s, false
	}
	end, ok := f.lineEnd(13)
	if !ok {
		return s, false
	}
	s.version = http.HTTP11
	s.reason = buf[13:end:end]
	f.pos = end + 2
	return s, s.digits(buf[9:12])
}

// lineEnd finds the CR LF from i on; it fails at any other control character but TAB.
func (f *fastHead) lineEnd(i int) (end int, ok bool) {
	buf := f.buf
	for i < f.end {
		x := load(buf, i)
		del := x ^ ones*0x7f
		m := ((x-ones*0x20)&^x | (del-ones)&^del) & highs
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) / 8
		switch {
		case buf[i] == '\t':
			i++
		case buf[i] == '\r' && buf[i+1] == '\n' && i+2 <= f.end:
			return i, true
		default:
			return 0, false
		}
	}
	return 0, false
}

// fields parses the fields up to the head's end into h. A folded line needs no check: it cannot be a field, as its first
// character is not one of a name. This is the hottest loop of HTTP/1; cut into functions it takes 7% more of the whole codec.
func (f *fastHead) fields(h *http.HeaderMap, rules *fieldRules, max int) bool {
	buf := f.buf
	list := h.All()
	size := h.Size()
	var have http.Set
	for k := range list {
		have[0] |= 1 << list[k].ID // pseudo headers have low IDs
	}
	max += len(list)
	host := len(list) - 1
	seenHost := !rules.host
	i := f.pos
	for {
		if i+2 > f.end {
			return false
		}
		if buf[i] == '\r' && buf[i+1] == '\n' {
			f.pos = i + 2
			h.Adopt(list, have, size)
			return seenHost
		}
		colon := i
		for colon < f.end {
			x := load(buf, colon) ^ ones*':'
			if m := (x - ones) &^ x & highs; m != 0 {
				colon += bits.TrailingZeros64(m) / 8
				break
			}
			colon += 8
		}
		if colon >= f.end {
			return false
		}
		start := colon + 1
		for buf[start] == ' ' || buf[start] == '\t' {
			start++
		}
		end := start
		for {
			if end >= f.end {
				return false
			}
			x := load(buf, end)
			del := x ^ ones*0x7f
			m := ((x-ones*0x20)&^x | (del-ones)&^del) & highs
			if m == 0 {
				end += 8
				continue
			}
			end += bits.TrailingZeros64(m) / 8
			if buf[end] != '\t' {
				break
			}
			end++
		}
		next := end + 2
		if next > f.end || buf[end] != '\r' || buf[end+1] != '\n' {
			return false
		}
		for end > start && blank(buf[end-1]) {
			end--
		}
		var value string
		if end > start {
			value = http.View(buf[start:end])
		}
		name := buf[i:colon:colon]
		id := http.LookupFold(name)
		if id == http.None {
			if !lowerToken(name) {
				return false
			}
			list = append(list, http.Header{Name: http.View(name), Value: value})
			have[0] |= 1
			size += len(name) + len(value)
		} else {
			word, bit := id>>6&1, uint64(1)<<(id&63)
			switch {
			case id == http.Host && rules.host:
				if seenHost {
					return false
				}
				seenHost = true
				list[host].Value = value
				size += len(value) - len(noHost)
			case have[word]&rules.merge[word]&bit != 0:
				return false
			default:
				n := id.Name()
				list = append(list, http.Header{Name: n, Value: value, ID: id})
				have[word] |= bit
				size += len(n) + len(value)
			}
		}
		if len(list) > max {
			return false
		}
		i = next
	}
}

// lowerToken makes a name lower-case; it fails if that is not a token.
func lowerToken(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	for i, c := range b {
		l := lower[c]
		if l == 0 {
			return false
		}
		b[i] = l
	}
	return true
}
