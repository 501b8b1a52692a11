package h1

import (
	"bytes"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// What may follow the fields of a head.
const (
	tailNone    = "\r\n"
	tailZero    = "content-length: 0\r\n\r\n"
	tailChunked = "transfer-encoding: chunked\r\n\r\n"

	lastChunk    = "0\r\n\r\n"
	lastChunkCR  = "\r\n0\r\n\r\n"
	trailerStart = "0\r\n"
)

// unsent are fields that the codec never repeats: it decides about transfer-encoding itself, and host is :authority.
var unsent = http.MakeSet(http.TransferEncoding, http.Host)

// put appends a string and returns the longer slice; p must have room.
func put(p []byte, s string) []byte {
	n := len(p)
	p = p[:n+len(s)]
	copy(p[n:], s)
	return p
}

// putFields appends h's fields, without pseudo headers, to p, which must have room for them. It returns how many there were.
func putFields(p []byte, h *http.HeaderMap, skip *http.Set) ([]byte, int) {
	list := h.All()
	count := 0
	for i := range list {
		f := &list[i]
		if f.ID != http.None && (f.ID <= http.Protocol || skip.Has(f.ID)) {
			continue
		}
		count++
		n := len(p)
		p = p[:n+len(f.Name)+len(f.Value)+4]
		q := p[n:]
		n = copy(q, f.Name)
		q[n], q[n+1] = ':', ' '
		n += 2
		n += copy(q[n:], f.Value)
		q[n], q[n+1] = '\r', '\n'
	}
	return p, count
}

// fieldsSize returns how many bytes putFields needs at most.
func fieldsSize(h *http.HeaderMap) int { return h.Size() + 4*h.Len() }

// formatter returns how names are to be written: what came with the head, or proper case, or nil for lower case.
func (o *Options) formatter(h *http.HeaderMap) http.KeyFormatter {
	if f := h.Formatter(); f != nil {
		return f
	}
	if o.ProperCase {
		return properCase{}
	}
	return nil
}

// encodeHead appends a head to out: the start line in parts, host first if it has a value, the fields and the tail. It returns
// the bytes, and appends nothing and returns -1 if some name or value holds CR or LF, as only a filter could have put there: it
// would be read as another line.
func (o *Options) encodeHead(out *buffer.Buffer, h *http.HeaderMap, start [4]string, authority *http.Header, tail string,
	skip *http.Set) int {
	form := o.formatter(h)
	if form != nil {
		return formattedHead(out, h, start, authority, tail, skip, form)
	}
	size := len(start[0]) + len(start[1]) + len(start[2]) + len(start[3]) + len(tail) + fieldsSize(h) + len("host: \r\n")
	if authority != nil {
		size += len(authority.Value)
	}
	p := out.Reserve(size)
	for _, s := range start {
		p = put(p, s)
	}
	lines := tailLines(tail)
	if authority != nil {
		p = put(p, "host: ")
		p = put(p, authority.Value)
		p = put(p, "\r\n")
		lines++
	}
	p, count := putFields(p, h, skip)
	p = put(p, tail)
	if !intact(p, lines+count) {
		return -1
	}
	out.Commit(p)
	return len(p)
}

// tailLines is how many lines a head has besides host and the fields.
func tailLines(tail string) int {
	if len(tail) > len(tailNone) {
		return 3
	}
	return 2
}

// intact tells whether p is this many lines and nothing else. Counting is the cheapest way to look at all values.
func intact(p []byte, lines int) bool {
	return bytes.Count(p, lf) == lines && bytes.Count(p, cr) == lines
}

var cr, lf = []byte{'\r'}, []byte{'\n'}

// formattedHead is encodeHead with names that are not lower-case. It allocates.
func formattedHead(out *buffer.Buffer, h *http.HeaderMap, start [4]string, authority *http.Header, tail string, skip *http.Set,
	form http.KeyFormatter) int {
	var p []byte
	for _, s := range start {
		p = append(p, s...)
	}
	lines := tailLines(tail)
	field := func(name, value string) {
		p = append(append(p, form.Format(name)...), ": "...)
		p = append(append(p, value...), "\r\n"...)
		lines++
	}
	if authority != nil {
		field("host", authority.Value)
	}
	for _, f := range h.All() {
		if f.ID != http.None && (f.ID <= http.Protocol || skip.Has(f.ID)) {
			continue
		}
		field(f.Name, f.Value)
	}
	if i := strings.IndexByte(tail, ':'); i > 0 {
		p = append(p, form.Format(tail[:i])...)
		tail = tail[i:]
	}
	p = append(p, tail...)
	if !intact(p, lines) {
		return -1
	}
	out.Append(p)
	return len(p)
}

// encoder writes a message's body.
type encoder struct {
	chunked bool // a chunk around each piece of data
	noBody  bool // data is dropped: the message must not have any
}

// data appends body bytes, and the body's end if end is set. It returns the bytes that were written.
func (e *encoder) data(out codec.Output, data *buffer.Buffer, end bool) int {
	n := data.Len()
	if e.noBody {
		data.Reset()
		return 0
	}
	if !e.chunked {
		if n > 0 {
			out.WriteData(data)
		}
		return n
	}
	total := n
	tail := ""
	switch {
	case n > 0 && end:
		tail = lastChunkCR
	case n > 0:
		tail = "\r\n"
	case end:
		tail = lastChunk
	}
	b := out.Out()
	if n > 0 {
		p := b.Reserve(18)
		p = append(appendHex(p, uint64(n)), '\r', '\n')
		b.Commit(p)
		total += len(p)
		out.WriteData(data)
		b = out.Out()
	}
	if tail != "" {
		b.Commit(put(b.Reserve(len(tail)), tail))
	}
	return total + len(tail)
}

// trailers ends the body, with trailers if they are enabled and can be sent.
func (e *encoder) trailers(o *Options, out codec.Output, h *http.HeaderMap) int {
	if !e.chunked {
		return 0
	}
	if !o.EnableTrailers || h.Len() == 0 {
		b := out.Out()
		b.Commit(put(b.Reserve(len(lastChunk)), lastChunk))
		return len(lastChunk)
	}
	// Trailers keep no case, whatever the format of header names.
	b := out.Out()
	p := put(b.Reserve(len(trailerStart)+fieldsSize(h)+len(tailNone)), trailerStart)
	p, lines := putFields(p, h, &noSkip)
	p = put(p, tailNone)
	if !intact(p, lines+2) {
		p = put(p[:0], lastChunk)
	}
	b.Commit(p)
	return len(p)
}

var noSkip http.Set

func appendHex(p []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	shift := 60
	for shift > 0 && n>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		p = append(p, digits[n>>shift&15])
	}
	return p
}
