package http

import (
	"encoding/binary"
	"unsafe"
)

// Builder fills a map field by field at less cost than AddView: it keeps the counts in its own memory, mostly registers. Take
// it from a map, and give it back by Build before anything else touches the map.
type Builder struct {
	list []Header
	have Set
	size int
}

// Builder returns a builder that goes on after the fields of m.
func (m *HeaderMap) Builder() Builder { return Builder{list: m.list, have: m.have, size: m.size} }

// Add appends a field without copying, see AddView.
func (b *Builder) Add(id ID, name, value string) {
	b.list = append(b.list, Header{Name: name, Value: value, ID: id})
	b.have[id>>6&1] |= 1 << (id & 63)
	b.size += len(name) + len(value)
}

// Replace sets the value of field i.
func (b *Builder) Replace(i int, value string) {
	f := &b.list[i]
	b.size += len(value) - len(f.Value)
	f.Value = value
}

// Has tells whether a field with this ID is present.
func (b *Builder) Has(id ID) bool { return b.have[id>>6&1]&(1<<(id&63)) != 0 }

// Len returns the number of fields.
func (b *Builder) Len() int { return len(b.list) }

// Build makes the builder's fields those of m.
func (m *HeaderMap) Build(b *Builder) { m.list, m.have, m.size = b.list, b.have, b.size }

// LookupFold is Lookup for a name as it came on the wire, in any case.
func LookupFold(name []byte) ID {
	n := len(name)
	if n == 0 || n > 40 {
		return None
	}
	h := uint32(n)*0x9e3779b1 ^ uint32(name[0]|0x20)<<24 ^ uint32(name[n-1]|0x20)<<16 ^ uint32(name[n/2]|0x20)<<8 ^
		uint32(name[n/4*3]|0x20)
	h = h * 0x85ebca6b >> (32 - lookupBits)
	for {
		id := lookup[h&(1<<lookupBits-1)]
		if id == None || len(names[id]) == n && sameFold(name, names[id]) {
			return id
		}
		h++
	}
}

// sameFold compares name to a lower-case name of the same length that consists of letters, digits and dashes.
func sameFold(name []byte, lower string) bool {
	const spaces, both, bit = 0x2020202020202020, 0x6060606060606060, 0x4040404040404040
	l := unsafe.Slice(unsafe.StringData(lower), len(lower))
	for len(name) >= 8 && len(l) >= 8 {
		x := binary.LittleEndian.Uint64(name)
		// Setting the bit of lower case must not turn a control character into a dash or a digit.
		t := x & both
		if x|spaces != binary.LittleEndian.Uint64(l) || (t|t<<1)&bit != bit {
			return false
		}
		name, l = name[8:], l[8:]
	}
	for i := 0; i < len(name) && i < len(l); i++ {
		if name[i]|0x20 != l[i] || name[i] < 0x20 {
			return false
		}
	}
	return true
}

// Trim gives back the end of b, all but its first n bytes. b must be what the last call of Bytes returned.
func (a *Arena) Trim(b []byte, n int) { a.cur = a.cur[:len(a.cur)-(len(b)-n)] }
