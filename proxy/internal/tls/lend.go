package tls

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn keeps two buffers as long as it lives: what its last records took, up to 18 KiB, and what the messages of its handshake
// took, about 2 KiB with a post-quantum key share. Both are empty between our calls, so an idle connection would hold them for
// nothing. It offers no way to take them back; so its fields are reached by their offsets, which are zero if a release of Go names
// them otherwise: then nothing is lent and nothing taken, and all works as it did.
var (
	inputAt     = bufferAt("rawInput")
	handshakeAt = bufferAt("hand")
)

func bufferAt(name string) uintptr {
	f, ok := reflect.TypeFor[tls.Conn]().FieldByName(name)
	if !ok || f.Type != reflect.TypeFor[bytes.Buffer]() {
		return 0
	}
	return f.Offset
}

func bufferOf(c *tls.Conn, at uintptr) *bytes.Buffer {
	if at == 0 {
		return nil
	}
	return (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), at))
}

// forget takes the buffers away, if nothing is in them.
func forget(c *tls.Conn) {
	for _, at := range [...]uintptr{inputAt, handshakeAt} {
		if b := bufferOf(c, at); b != nil && b.Len() == 0 && b.Cap() > 0 {
			*b = bytes.Buffer{}
		}
	}
}

// lend gives whole records to c, which decrypts them where they are, and tells whether it could. The memory is c's until its Read
// asks for more and forget is called.
func lend(c *tls.Conn, records []byte) bool {
	b := bufferOf(c, inputAt)
	if b == nil || b.Len() != 0 {
		return false
	}
	*b = *bytes.NewBuffer(records)
	return true
}

// drained tells whether c has read all that it was lent: what it has decrypted, it has delivered, as Read had room for any record.
func drained(c *tls.Conn) bool { return bufferOf(c, inputAt).Len() == 0 }

const (
	headerSize = 5
	// maxRecord is the largest record that TLS 1.2 allows, and spare what crypto/tls wants to have behind it for the next.
	maxRecord = headerSize + 16<<10 + 2048
	spare     = headerSize + bytes.MinRead
)

// whole returns how many bytes at the beginning of b are whole records, and how many the record behind them has in all, 0 if that
// is not known yet. A record that is too long counts as whole: crypto/tls is to say so.
func whole(b []byte) (n, next int) {
	for len(b)-n >= headerSize {
		size := headerSize + int(b[n+3])<<8 + int(b[n+4])
		if size > maxRecord {
			return len(b), 0
		}
		if size > len(b)-n {
			return n, size
		}
		n += size
	}
	return n, 0
}

// part holds the beginning of a record whose rest has not come. Its memory is the worker's.
type part struct {
	buf  []byte
	size int // of the record, 0 while its header is not complete
}

// fill takes what is missing of the record from b, and returns the rest of b, and whether the record is whole.
func (p *part) fill(b []byte) (rest []byte, complete bool) {
	if p.size == 0 {
		k := min(headerSize-len(p.buf), len(b))
		p.buf, b = append(p.buf, b[:k]...), b[k:]
		if len(p.buf) < headerSize {
			return b, false
		}
		p.size = headerSize + int(p.buf[3])<<8 + int(p.buf[4])
		if p.size > maxRecord {
			return b, true // crypto/tls refuses it
		}
	}
	k := min(p.size-len(p.buf), len(b))
	p.buf = append(p.buf, b[:k]...)
	return b[k:], len(p.buf) == p.size
}

// takePart gives memory for one record.
func (l *local) takePart() []byte {
	if n := len(l.parts); n > 0 {
		b := l.parts[n-1]
		l.parts = l.parts[:n-1]
		return b
	}
	return make([]byte, 0, maxRecord+spare)
}

// maxParts bounds how many of them a worker keeps for reuse.
const maxParts = 16

func (l *local) putPart(b []byte) {
	if len(l.parts) < maxParts {
		l.parts = append(l.parts, b[:0])
	}
}
