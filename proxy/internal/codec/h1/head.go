package h1

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// line is a line of a head without its line end: b[start:end].
type line struct{ start, end int32 }

// scan splits b into lines up to and including the empty line that ends a head. It returns the bytes of the head, 0 if the end
// is not in b. A head has a start line, which is not empty; trailers have none.
func (p *Pool) scan(b []byte, trailers bool) int {
	lines := p.lines[:0]
	pos := 0
	for {
		i := bytes.IndexByte(b[pos:], '\n')
		if i < 0 {
			p.lines = lines
			return 0
		}
		end := pos + i
		next := end + 1
		if i > 0 && b[end-1] == '\r' {
			end--
		}
		if end == pos && (trailers || len(lines) > 0) {
			p.lines = lines
			return next
		}
		lines = append(lines, line{int32(pos), int32(end)})
		pos = next
	}
}

// headEnd continues the search for a head's end in b from where it stopped, so that a head that comes byte by byte costs no
// more than one that comes at once.
func headEnd(b []byte, from int, trailers bool) int {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0
		}
		i += from
		from = i + 1
		j := i
		if j > 0 && b[j-1] == '\r' {
			j--
		}
		if j > 0 && b[j-1] == '\n' || j == 0 && trailers {
			return from
		}
	}
}

// gather finds the end of a head (or trailers) in b, or stores b if it is not there yet. It returns the complete head, how many
// bytes of b belong to it, and fills p.lines. raw is nil while the head is incomplete.
func (m *message) gather(p *Pool, b []byte, max int, trailers bool, tooLarge *codec.Err) (raw []byte, n int, err *codec.Err) {
	if len(m.part) == 0 {
		window := b
		if len(window) > max {
			window = window[:max]
		}
		if n = p.scan(window, trailers); n > 0 {
			return window[:n], n, nil
		}
		if len(b) > max {
			return nil, 0, tooLarge
		}
		m.part = append(m.part, b...)
		m.scanned = len(m.part)
		return nil, len(b), nil
	}
	had := len(m.part)
	room := max - had
	add := b
	if len(add) > room {
		add = add[:room]
	}
	m.part = append(m.part, add...)
	end := headEnd(m.part, m.scanned, trailers)
	if end == 0 {
		if len(b) > room {
			return nil, 0, tooLarge
		}
		m.scanned = len(m.part)
		return nil, len(b), nil
	}
	p.scan(m.part[:end], trailers)
	return m.part[:end], end - had, nil
}

// fieldRules are what differs between the kinds of header blocks.
type fieldRules struct {
	merge   *http.Set // names that are joined into one field
	max     int       // fields, 0: any number
	tooMany *codec.Err
	host    bool // host becomes :authority
	action  Underscores
	dropped int // out: fields dropped by the action
	// late is a fault that Envoy sees only once the syntax of all lines is checked, lateAt the line that it is in.
	late   *codec.Err
	lateAt int
	// lastChunked: the last of several transfer-encoding lines was chunked. Envoy's parser goes by that line alone.
	lastChunked bool
}

// fields parses header lines in buf, which is memory of h's arena, into h.
func (o *Options) fields(h *http.HeaderMap, buf []byte, lines []line, rules *fieldRules) *codec.Err {
	count := 0
	form := h.Formatter()
	for k := 0; k < len(lines); k++ {
		s, e := lines[k].start, lines[k].end
		for k+1 < len(lines) && folded(buf, lines[k+1]) {
			k++
			e += int32(copy(buf[e:], buf[lines[k].start:lines[k].end]))
		}
		b := buf[s:e]
		i := 0
		var key string
		if form != nil {
			key = originalName(h.Arena(), b)
		}
		for i < len(b) {
			c := lower[b[i]]
			if c == 0 {
				break
			}
			b[i] = c
			i++
		}
		if i == 0 || i == len(b) || b[i] != ':' {
			if !lateName(b) {
				return badName(b)
			}
			if rules.lateAt == k-1 {
				rules.late = nil // Envoy looks at a field when the name of the next is known
			}
			rules.fault(ErrFieldName, k)
			continue
		}
		name := b[:i:i]
		v, st := value(b[i+1:])
		if st != valueClean {
			if st == valueBad {
				return ErrFieldValue
			}
			v, st = dropCR(v)
		}
		id := http.Lookup(name)
		if rules.action != UnderscoresAllow && bytes.IndexByte(name, '_') >= 0 {
			if rules.action == UnderscoresReject {
				rules.fault(ErrUnderscore, k)
			} else {
				rules.dropped++
			}
			continue
		}
		if key != "" {
			form.ProcessKey(key)
		}
		added, err := addField(h, id, name, v, st, rules)
		if err != nil {
			return err
		}
		if added {
			if count++; count > rules.max && rules.max > 0 {
				rules.fault(rules.tooMany, k)
			}
		}
	}
	return nil
}

// fault notes a late error, of which the first counts.
func (r *fieldRules) fault(err *codec.Err, line int) {
	if r.late == nil {
		r.late, r.lateAt = err, line
	}
}

// addField puts a field into h, joining it with an earlier one where the map holds one field of that name only.
func addField(h *http.HeaderMap, id http.ID, name, v []byte, st valueState, rules *fieldRules) (added bool, err *codec.Err) {
	if id == http.None {
		h.AddView(http.None, http.View(name), view(v))
		return true, nil
	}
	if id == http.Host && rules.host {
		id = http.Authority
	}
	if st == valueCR && (id == http.TransferEncoding || id == http.ContentLength) {
		// A bare CR could hide what another parser sees as the end of the line: no guessing about framing.
		return false, ErrLoneCR
	}
	if rules.merge != nil && rules.merge.Has(id) && h.Has(id) {
		f := h.Find(id)
		if id == http.TransferEncoding {
			rules.lastChunked = equalFold(view(v), "chunked")
		}
		if id == http.ContentLength {
			n, first := digits(f.Value)
			if m, second := digits(view(v)); first == wholeNumber || first != second || n != m {
				return false, ErrDuplicateCL
			}
			return false, nil // none of them is one
		}
		switch {
		case id == http.Authority && f.Value == noHost:
			h.Replace(f, view(v))
			return true, nil
		case len(v) == 0:
		case f.Value == "":
			h.Replace(f, view(v))
		default:
			h.Replace(f, h.Arena().Concat(f.Value, ",", view(v)))
		}
		return false, nil
	}
	h.AddView(id, id.Name(), view(v))
	return true, nil
}

// view is http.View that does not point into the arena for nothing.
func view(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return http.View(b)
}

func folded(buf []byte, l line) bool {
	return l.end > l.start && (buf[l.start] == ' ' || buf[l.start] == '\t')
}

// lateName tells whether all that is wrong with a line's name are bytes that are no ASCII. Envoy's parser lets them pass; whoever it tells of
// the name does not.
func lateName(b []byte) bool {
	i := bytes.IndexByte(b, ':')
	if i <= 0 {
		return false
	}
	for _, c := range b[:i] {
		if c < 0x80 && lower[c] == 0 {
			return false
		}
	}
	return true
}

// badName says what is wrong with a line whose name did not parse: control characters have an error of their own.
func badName(b []byte) *codec.Err {
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\r' || c == 0x7f {
			return ErrFieldValue
		}
	}
	return ErrFieldName
}

func originalName(a *http.Arena, b []byte) string {
	i := bytes.IndexByte(b, ':')
	if i < 0 {
		return ""
	}
	return a.Copy(b[:i])
}

type valueState uint8

const (
	valueClean valueState = iota
	valueCR               // holds CR, which is dropped
	valueBad              // holds a control character
)

// value trims blanks and looks for bytes that a field value must not have (RFC 9110, section 5.5).
func value(b []byte) ([]byte, valueState) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		// A byte below 0x20 borrows into its high bit; a byte equal to 0x7f becomes 0 by the exclusive or.
		low := (x - ones*0x20) &^ x
		del := x ^ ones*0x7f
		if (low|(del-ones)&^del)&highs != 0 {
			return b, slowValue(b, i)
		}
	}
	if i < len(b) {
		return b, slowValue(b, i)
	}
	return b, valueClean
}

func slowValue(b []byte, from int) (st valueState) {
	for _, c := range b[from:] {
		if c >= ' ' && c != 0x7f || c == '\t' {
			continue
		}
		if c != '\r' {
			return valueBad
		}
		st = valueCR
	}
	return st
}

// dropCR takes blanks and CRs away from the ends, and removes other CRs in place. The state says whether there were any.
func dropCR(b []byte) ([]byte, valueState) {
	b = bytes.Trim(b, " \t\r")
	w := b[:0]
	for _, c := range b {
		if c != '\r' {
			w = append(w, c)
		}
	}
	if len(w) == len(b) {
		return b, valueClean
	}
	return w, valueCR
}

// sendable tells whether a path may stand in a request line: from HTTP/2 it may have bytes above ASCII, which go on as they are.
func sendable(path string) bool {
	if visible(unsafe.Slice(unsafe.StringData(path), len(path))) {
		return true
	}
	for i := 0; i < len(path); i++ {
		if c := path[i]; c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// visible tells whether all bytes are 0x21 to 0x7e.
func visible(b []byte) bool {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if (x|(x-ones*0x21)|(x+ones))&highs != 0 {
			return false
		}
	}
	for ; i < len(b); i++ {
		if b[i]-0x21 > 0x7e-0x21 {
			return false
		}
	}
	return true
}

// token finds tok (lower-case) in a comma-separated list, without regard to case.
func token(list, tok string) bool {
	for len(list) > 0 {
		var t string
		t, list = cut(list)
		if equalFold(t, tok) {
			return true
		}
	}
	return false
}

// cut returns the first element of a comma-separated list without blanks around it, and the rest.
func cut(list string) (elem, rest string) {
	i := 0
	for i < len(list) && list[i] != ',' {
		i++
	}
	elem = list[:i]
	if i < len(list) {
		rest = list[i+1:]
	}
	for len(elem) > 0 && blank(elem[0]) {
		elem = elem[1:]
	}
	for len(elem) > 0 && blank(elem[len(elem)-1]) {
		elem = elem[:len(elem)-1]
	}
	return elem, rest
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// equalFold compares ASCII; b is lower-case.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		c := a[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != b[i] {
			return false
		}
	}
	return true
}

type numberState uint8

const (
	wholeNumber numberState = iota
	noNumber
	tooLargeNumber
)

// digits is how Envoy's parser reads a content-length: n is the number up to what is wrong with it.
func digits(s string) (n uint64, st numberState) {
	if s == "" {
		return 0, noNumber
	}
	for i := 0; i < len(s); i++ {
		d := uint64(s[i] - '0')
		if d > 9 {
			return n, noNumber
		}
		hi, lo := bits.Mul64(n, 10)
		if hi != 0 || lo+d < lo {
			return n, tooLargeNumber
		}
		n = lo + d
	}
	return n, wholeNumber
}

// decimal parses a content-length: digits only, up to 2^64-1.
func decimal(s string) (n uint64, ok bool) {
	n, st := digits(s)
	return n, st == wholeNumber
}
