package hpack

import (
	"github.com/dragoman-proxy/dragoman/api/http"
)

// Encoder encodes the header blocks of one direction of a connection. owner: the connection's worker. The zero value needs Init.
//
// It is made to be cheap rather than tight: a field that is likely to repeat goes into the dynamic table when it is seen for the
// second time, and is found there by a hash of its value; all others are sent as they are. Huffman code is used only for what
// goes into the table, where it is paid for once.
type Encoder struct {
	t table
	// cache maps a field's hash to its entry. It comes with the first field that may be indexed.
	cache *[cacheSlots]slot
	// limit is what the peer allows, own what we want at most.
	limit, own int
	// lowest and update tell what size updates the next block must begin with.
	lowest int
	update bool
}

// cacheSlots bounds how many fields are tracked. A field may be in one of two slots; one that finds both taken pushes another out.
const cacheSlots = 32

type slot struct {
	hash uint32
	at   uint32 // the entry's number, 0 if the field was only seen
}

// FieldMax is the most bytes that Append adds beyond the field's name and value, and BlockMax what Begin adds.
const (
	FieldMax = 11
	BlockMax = 10
)

// Init sets the largest dynamic table that the encoder may use; the peer's SETTINGS_HEADER_TABLE_SIZE may lower it.
func (e *Encoder) Init(own int) {
	*e = Encoder{own: own, limit: DefaultTableSize}
	e.t.max = DefaultTableSize
	e.lowest = DefaultTableSize
	if own < DefaultTableSize {
		e.resize()
	}
}

// SetLimit takes over the peer's SETTINGS_HEADER_TABLE_SIZE.
func (e *Encoder) SetLimit(n int) {
	e.limit = n
	e.resize()
}

func (e *Encoder) resize() {
	n := min(e.limit, e.own)
	if n == e.t.max && !e.update {
		return
	}
	e.t.setMax(n)
	e.lowest = min(e.lowest, n)
	e.update = true
}

// Begin starts a header block: it appends the size updates that are due.
func (e *Encoder) Begin(dst []byte) []byte {
	if !e.update {
		return dst
	}
	e.update = false
	if e.lowest < e.t.max {
		// Down to nothing, then up: some decoders take a second update only when the first has left the table empty.
		n := e.t.max
		e.t.setMax(0)
		e.t.setMax(n)
		dst = append(dst, 0x20)
	}
	dst = appendInt(dst, 0x20, 0x1f, e.t.max)
	e.lowest = e.t.max
	return dst
}

// policy says how a field with an ID is encoded.
type policy uint8

const (
	indexed policy = iota // put into the table when it repeats
	plain                 // without indexing: values that hardly repeat
	never                 // never indexed: secrets, that no one on the way may index either (RFC 7541, section 7.1.3)
)

// idInfo is what the encoder knows of an ID: the static table's entry of that name, 0 if none.
type idInfo struct {
	static uint8
	policy policy
}

var ids = makeIDs()

func makeIDs() (t [http.NumIDs]idInfo) {
	for i := staticCount; i > 0; i-- {
		if id := static[i].ID; id != http.None {
			t[id].static = uint8(i)
		}
	}
	for _, id := range []http.ID{http.Path, http.ContentLength, http.Date, http.ETag, http.LastModified, http.Location,
		http.SetCookie, http.Referer, http.XRequestID, http.XClientTraceID, http.XOTSpanContext, http.XB3TraceID,
		http.Traceparent, http.Tracestate, http.GRPCMessage, http.EnvoyUpstreamServiceTime,
		http.EnvoyUpstreamStreamDurationMs, http.EnvoyOriginalPath} {
		t[id].policy = plain
	}
	// A connection to an upstream carries the cookies of many clients: none of them may be guessed through the table's hits.
	t[http.Authorization].policy = never
	t[http.Cookie].policy = never
	return t
}

// statusIndex is the static table's index of the common :status values.
func statusIndex(s string) byte {
	switch s {
	case "200":
		return 8
	case "204":
		return 9
	case "206":
		return 10
	case "304":
		return 11
	case "400":
		return 12
	case "404":
		return 13
	case "500":
		return 14
	}
	return 0
}

// staticMatch returns the index of the static entry that equals the whole field, 0 if there is none.
func staticMatch(id http.ID, value string) byte {
	switch id {
	case http.Status:
		return statusIndex(value)
	case http.Method:
		if value == "GET" {
			return 2
		} else if value == "POST" {
			return 3
		}
	case http.Path:
		if value == "/" {
			return 4
		}
	case http.Scheme:
		if value == "http" {
			return 6
		} else if value == "https" {
			return 7
		}
	case http.AcceptEncoding:
		if value == "gzip, deflate" {
			return 16
		}
	}
	return 0
}

// Append appends one field to dst, growing it by at most FieldMax + len(name) + len(value) bytes.
func (e *Encoder) Append(dst []byte, id http.ID, name, value string) []byte {
	info := ids[id]
	if i := staticMatch(id, value); i != 0 {
		return append(dst, 0x80|i)
	}
	if info.policy != indexed || e.t.max == 0 {
		prefix := byte(0)
		if info.policy == never {
			prefix = 0x10
		}
		return appendString(appendName(dst, prefix, 0x0f, info.static, name), value)
	}
	return e.appendIndexed(dst, id, info.static, name, value)
}

// AppendStateless appends one field without looking at or changing the table, so that the block may be sent at any time.
func AppendStateless(dst []byte, id http.ID, name, value string) []byte {
	info := ids[id]
	prefix := byte(0)
	if info.policy == never {
		prefix = 0x10
	}
	return appendString(appendName(dst, prefix, 0x0f, info.static, name), value)
}

func (e *Encoder) appendIndexed(dst []byte, id http.ID, static uint8, name, value string) []byte {
	if e.cache == nil {
		e.cache = new([cacheSlots]slot)
	}
	h := hashField(id, name, value)
	s := &e.cache[h%cacheSlots]
	if s.hash != h {
		other := &e.cache[h/cacheSlots%cacheSlots]
		if other.hash != h {
			if s.at != 0 && e.t.next-1-s.at < uint32(e.t.len()) {
				s = other
			}
			*s = slot{hash: h}
			return appendString(appendName(dst, 0, 0x0f, static, name), value)
		}
		s = other
	}
	if age := e.t.next - 1 - s.at; s.at != 0 && age < uint32(e.t.len()) {
		ent := e.t.at(int(age))
		if ent.id == id && e.t.value(ent) == value && (id != http.None || e.t.name(ent) == name) {
			return appendInt(dst, 0x80, 0x7f, int(age)+staticCount+1)
		}
	}
	if len(name)+len(value)+entryOverhead > e.t.max/4 {
		// Large fields would push out all others.
		return appendString(appendName(dst, 0, 0x0f, static, name), value)
	}
	s.at = e.t.insert(id, name, value, 0)
	dst = appendName(dst, 0x40, 0x3f, static, name)
	if n := huffmanLen(value); n < len(value) {
		return appendHuffman(appendInt(dst, 0x80, 0x7f, n), value)
	}
	return appendString(dst, value)
}

// hashField mixes the ID or name, the length and both ends of the value. Fields that collide are compared in full.
func hashField(id http.ID, name, value string) uint32 {
	h := uint64(id)<<56 ^ uint64(len(value))
	if id == http.None {
		h ^= ends(name)
	}
	h *= 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ ends(value)) * 0xbf58476d1ce4e5b9
	return max(uint32(h>>32), 1)
}

// ends returns a mix of the first and the last eight bytes of s.
func ends(s string) uint64 {
	if n := len(s); n >= 8 {
		return load64(s) ^ load64(s[n-8:])*0x9e3779b97f4a7c15
	}
	x := uint64(0)
	for i := 0; i < len(s); i++ {
		x = x<<8 | uint64(s[i])
	}
	return x
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// appendName appends the first byte of a literal and its name: a static index, or the name itself.
func appendName(dst []byte, prefix, mask byte, static uint8, name string) []byte {
	if static != 0 {
		return appendInt(dst, prefix, mask, int(static))
	}
	return appendString(append(dst, prefix), name)
}

func appendString(dst []byte, s string) []byte {
	return append(appendInt(dst, 0, 0x7f, len(s)), s...)
}

// appendInt appends v with the prefix mask; the bits of first above it are kept.
func appendInt(dst []byte, first, mask byte, v int) []byte {
	if v < int(mask) {
		return append(dst, first|byte(v))
	}
	dst = append(dst, first|mask)
	v -= int(mask)
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}
