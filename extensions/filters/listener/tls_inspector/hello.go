package tls_inspector //nolint:revive // Envoy's name

import "encoding/binary"

// verdict is what is known after the bytes so far.
type verdict uint8

const (
	// more: it may become a ClientHello.
	more verdict = iota
	// isTLS: it is one, and it could be read.
	isTLS
	// notTLS: it cannot become one.
	notTLS
	// malformed: it began as one.
	malformed
)

// hello is what a ClientHello says, and how far it was read.
type hello struct {
	// name and alpn (the list of protocols, each behind its length; nil if the extension is absent) are views into the bytes that
	// were read last, or into msg.
	name, alpn []byte
	// msg is what has come of the handshake message, if it did not come in one piece. Every byte is looked at once, however
	// the client cuts them.
	msg []byte
	// known: all but the list of protocols could be read. Then version, ciphers and list (the extensions) are what it says, views as well.
	known         bool
	version       uint16
	ciphers, list reader
	// off bytes of the connection are in msg; record is what is left of the current record.
	off, record int
}

const (
	recordHeader  = 5
	messageHeader = 4
	handshake     = 22
	clientHello   = 1
	// maxRecord is the longest plaintext record (RFC 8446 section 5.1), and maxMessage the longest ClientHello that TLS
	// libraries take.
	maxRecord  = 16 << 10
	maxMessage = 16 << 10

	extServerName = 0
	extALPN       = 16
)

// parse goes on reading a ClientHello. b is everything that has come so far.
func (h *hello) parse(b []byte) verdict {
	if h.off == 0 {
		if msg := whole(b); msg != nil {
			return h.done(msg)
		}
	}
	for {
		if h.record == 0 {
			n, v := record(b[h.off:])
			if v != isTLS {
				return v
			}
			h.record = n
			h.off += recordHeader
		}
		part := b[h.off:min(h.off+h.record, len(b))]
		h.msg = append(h.msg, part...)
		h.off += len(part)
		h.record -= len(part)
		n, v := message(h.msg)
		if v == notTLS {
			return v
		}
		if v == isTLS && len(h.msg) >= messageHeader+n {
			return h.done(h.msg[messageHeader : messageHeader+n])
		}
		if h.record > 0 {
			return more
		}
	}
}

func (h *hello) done(msg []byte) verdict {
	if !h.read(msg) {
		return malformed
	}
	return isTLS
}

// whole returns the ClientHello if b begins with it, in one record: most do.
func whole(b []byte) []byte {
	r, v := record(b)
	if v != isTLS {
		return nil
	}
	b = b[recordHeader:]
	n, v := message(b[:min(r, len(b))])
	if v != isTLS || messageHeader+n > min(r, len(b)) {
		return nil
	}
	return b[messageHeader : messageHeader+n]
}

// record reads a record's header and returns the record's length.
func record(b []byte) (n int, v verdict) {
	if len(b) < recordHeader {
		return 0, more
	}
	// Whatever the client says of its version, the major number is 3 (RFC 8446 section 5.1).
	if b[0] != handshake || b[1] != 3 {
		return 0, notTLS
	}
	n = int(binary.BigEndian.Uint16(b[3:]))
	if n == 0 || n > maxRecord {
		return 0, notTLS
	}
	return n, isTLS
}

// message reads a handshake message's header and returns the length of its body.
func message(b []byte) (n int, v verdict) {
	if len(b) > 0 && b[0] != clientHello {
		return 0, notTLS
	}
	if len(b) < messageHeader {
		return 0, more
	}
	if n = int(b[1])<<16 | int(b[2])<<8 | int(b[3]); n > maxMessage {
		return 0, notTLS
	}
	return n, isTLS
}

// read takes what is wanted out of a ClientHello (RFC 8446 section 4.1.2).
func (h *hello) read(m []byte) bool {
	r := reader(m)
	version, ok := r.uint16() // legacy_version
	if !ok || !r.skip(32) {   // random
		return false
	}
	session, ok := r.bytes(1)
	if !ok || len(session) > 32 {
		return false
	}
	ciphers, ok := r.bytes(2)
	if !ok || len(ciphers) < 2 || len(ciphers)%2 != 0 {
		return false
	}
	if compression, ok := r.bytes(1); !ok || len(compression) == 0 {
		return false
	}
	h.version, h.ciphers = uint16(version), ciphers
	if len(r) == 0 {
		h.known = true
		return true // no extensions at all
	}
	h.list, ok = r.bytes(2)
	return ok && len(r) == 0 && h.extensions(h.list)
}

func (h *hello) extensions(list reader) bool {
	good := true
	var met kinds
	for len(list) > 0 {
		kind, ok := list.uint16()
		if !ok {
			return false
		}
		body, ok := list.bytes(2)
		if !ok || !met.add(uint16(kind)) {
			return false
		}
		switch kind {
		case extServerName:
			if !h.serverName(body) {
				return false
			}
		case extALPN:
			good = h.protocols(body)
		}
	}
	h.known = true
	return good
}

// kinds are extensions that were met. None may come twice (RFC 8446 section 4.2).
type kinds struct {
	few  [32]uint16
	n    int
	many []uint64 // a bit for each kind, when there are more than few
}

// add returns false if kind was there before.
func (k *kinds) add(kind uint16) bool {
	if k.many != nil {
		bit := uint64(1) << (kind % 64)
		was := k.many[kind/64]&bit != 0
		k.many[kind/64] |= bit
		return !was
	}
	for _, x := range k.few[:k.n] {
		if x == kind {
			return false
		}
	}
	if k.n < len(k.few) {
		k.few[k.n] = kind
		k.n++
		return true
	}
	k.many = make([]uint64, 1<<16/64)
	for _, x := range k.few {
		k.many[x/64] |= 1 << (x % 64)
	}
	k.many[kind/64] |= 1 << (kind % 64)
	return true
}

// serverName reads the extension of RFC 6066 section 3: a list, of which TLS libraries take exactly one host name.
func (h *hello) serverName(b reader) bool {
	list, ok := b.bytes(2)
	if !ok || len(b) > 0 || len(list) == 0 {
		return false
	}
	if kind := list[0]; kind != 0 {
		return false
	}
	list = list[1:]
	name, ok := list.bytes(2)
	if !ok || len(list) > 0 || len(name) == 0 || len(name) > 255 {
		return false
	}
	for _, c := range name {
		if c == 0 {
			return false
		}
	}
	h.name = name
	return true
}

// protocols checks the list of RFC 7301 section 3.1.
func (h *hello) protocols(b reader) bool {
	list, ok := b.bytes(2)
	if !ok || len(b) > 0 || len(list) < 2 {
		return false
	}
	h.alpn = list
	for len(list) > 0 {
		if p, ok := list.bytes(1); !ok || len(p) == 0 {
			return false
		}
	}
	return true
}

// names returns the protocols.
func (h *hello) names() []string {
	var out []string
	for list := reader(h.alpn); len(list) > 0; {
		p, ok := list.bytes(1)
		if !ok {
			break
		}
		out = append(out, string(p))
	}
	return out
}

// reader takes length-prefixed fields off its front.
type reader []byte

func (r *reader) skip(n int) bool {
	if len(*r) < n {
		return false
	}
	*r = (*r)[n:]
	return true
}

func (r *reader) uint16() (int, bool) {
	if len(*r) < 2 {
		return 0, false
	}
	n := int(binary.BigEndian.Uint16(*r))
	*r = (*r)[2:]
	return n, true
}

// bytes reads a field that is preceded by its length, of one or two bytes.
func (r *reader) bytes(size int) (reader, bool) {
	if len(*r) < size {
		return nil, false
	}
	n := int((*r)[0])
	if size == 2 {
		n = n<<8 | int((*r)[1])
	}
	if len(*r) < size+n {
		return nil, false
	}
	out := (*r)[size : size+n]
	*r = (*r)[size+n:]
	return out, true
}
