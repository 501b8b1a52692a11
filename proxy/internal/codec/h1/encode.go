package h1

import (
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

// putFields appends h's fields, without pseudo headers, to p, which must have room for them.
func putFields(p []byte, h *http.HeaderMap, skip *http.Set) []byte {
	list := h.All()
	for i := range list {
		f := &list[i]
		if f.ID != http.None && (f.ID <= http.Protocol || skip.Has(f.ID)) {
			continue
		}
		n := len(p)
		p = p[:n+len(f.Name)+len(f.Value)+4]
		q := p[n:]
		n = copy(q, f.Name)
		q[n], q[n+1] = ':', ' '
		n += 2
		n += copy(q[n:], f.Value)
		q[n], q[n+1] = '\r', '\n'
	}
	return p
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

// encodeHead appends a head to out: the start line in parts, host first if it has a value, the fields and the tail.
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
	if authority != nil {
		p = put(p, "host: ")
		p = put(p, authority.Value)
		p = put(p, "\r\n")
	}
	p = putFields(p, h, skip)
	p = put(p, tail)
	out.Commit(p)
	return len(p)
}

// formattedHead is encodeHead with names that are not lower-case.
func formattedHead(out *buffer.Buffer, h *http.HeaderMap, start [4]string, authority *http.Header, tail string, skip *http.Set,
	form http.KeyFormatter) int {
	before := out.Len()
	for _, s := range start {
		out.AppendString(s)
	}
	field := func(name, value string) {
		out.AppendString(form.Format(name))
		out.AppendString(": ")
		out.AppendString(value)
		out.AppendString("\r\n")
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
		out.AppendString(form.Format(tail[:i]))
		tail = tail[i:]
	}
	out.AppendString(tail)
	return out.Len() - before
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
	p = put(putFields(p, h, &http.Set{}), tailNone)
	b.Commit(p)
	return len(p)
}

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
