package http

import (
	"encoding/binary"
	"unsafe"
)

// Adopt makes list the fields of m. It is for codecs, which append to All() themselves, with the counts in registers: have must
// be the set of IDs in list, and size the bytes of all names and values.
func (m *HeaderMap) Adopt(list []Header, have Set, size int) {
	m.list, m.have, m.size = list, have, size
}

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
	n := len(name)
	if n < 8 {
		for i := 0; i < len(name) && i < len(l); i++ {
			if name[i]|0x20 != l[i] || name[i] < 0x20 {
				return false
			}
		}
		return true
	}
	for i := 0; ; i += 8 {
		if i > n-8 {
			i = n - 8 // the last eight bytes, some of them again
		}
		x := binary.LittleEndian.Uint64(name[i:])
		// Setting the bit of lower case must not turn a control character into a dash or a digit.
		t := x & both
		if x|spaces != binary.LittleEndian.Uint64(l[i:]) || (t|t<<1)&bit != bit {
			return false
		}
		if i == n-8 {
			return true
		}
	}
}

// Trim gives back the end of b, all but its first n bytes. b must be what the last call of Bytes returned.
func (a *Arena) Trim(b []byte, n int) { a.cur = a.cur[:len(a.cur)-(len(b)-n)] }
