package hpack

import (
	"unsafe"

	"github.com/dragoman-proxy/dragoman/api/http"
)

// entry is a field of the dynamic table. Its name (none if it has an ID) and value lie one after the other in the table's bytes.
type entry struct {
	off    uint32
	nlen   uint32 // 0 if the field has an ID
	vlen   uint32
	size   uint32
	id     http.ID
	bad    Bad
	_      [2]uint8
	nextAt uint32
}

// table is the dynamic table: a ring of entries and their bytes. Entries are numbered from 1 as they are inserted; first is the
// oldest one's number and next the number of the one to come. Both memories grow with use up to what max needs.
type table struct {
	ring        []entry // power of two
	buf         []byte  // live bytes are buf[from:]
	from        int
	first, next uint32
	size, max   int
}

func (t *table) len() int { return int(t.next - t.first) }

// at returns the i-th newest entry, 0 being the newest; i must be less than len.
func (t *table) at(i int) *entry { return &t.ring[(t.next-1-uint32(i))&uint32(len(t.ring)-1)] }

// name returns an entry's name as a view that is valid until the table changes.
func (t *table) name(e *entry) string {
	if e.id != http.None {
		return e.id.Name()
	}
	return view(t.buf[e.off : e.off+e.nlen])
}

func (t *table) value(e *entry) string {
	o := e.off + e.nlen
	return view(t.buf[o : o+e.vlen])
}

// setMax changes the size limit and evicts what is too much.
func (t *table) setMax(n int) {
	t.max = n
	t.evict(0)
}

// evict drops the oldest entries until n more bytes fit, or the table is empty.
func (t *table) evict(n int) {
	for t.size+n > t.max && t.first != t.next {
		e := &t.ring[t.first&uint32(len(t.ring)-1)]
		t.size -= int(e.size)
		t.from = int(e.nextAt)
		t.first++
	}
	if t.first == t.next {
		t.buf, t.from = t.buf[:0], 0
	}
}

// insert adds a field and returns its number, 0 if it is larger than the table (which is then empty). name and value must not be
// views of t.
func (t *table) insert(id http.ID, name, value string, bad Bad) uint32 {
	size := len(name) + len(value) + entryOverhead
	t.evict(size)
	if size > t.max {
		return 0
	}
	if id != http.None {
		name = ""
	}
	if t.len() == len(t.ring) {
		t.growRing()
	}
	need := len(name) + len(value)
	if len(t.buf)+need > cap(t.buf) {
		t.makeRoom(need)
	}
	off := len(t.buf)
	t.buf = append(append(t.buf, name...), value...)
	n := t.next
	t.ring[n&uint32(len(t.ring)-1)] = entry{off: uint32(off), nlen: uint32(len(name)), vlen: uint32(len(value)),
		size: uint32(size), id: id, bad: bad, nextAt: uint32(len(t.buf))}
	t.next++
	t.size += size
	return n
}

func (t *table) growRing() {
	if t.next == 0 {
		t.first, t.next = 1, 1
	}
	old := t.ring
	t.ring = make([]entry, max(8, 2*len(old)))
	for n := t.first; n != t.next; n++ {
		t.ring[n&uint32(len(t.ring)-1)] = old[n&uint32(len(old)-1)]
	}
}

// makeRoom moves the live bytes to the front, into a larger buffer if they fill most of it: a byte is moved a few times in its life at
// most.
func (t *table) makeRoom(need int) {
	live := len(t.buf) - t.from
	if want := (live + need) / 3 * 4; want > cap(t.buf) || live+need > cap(t.buf) {
		size := 128
		for size < want || size < live+need {
			size *= 2
		}
		b := make([]byte, live, size)
		copy(b, t.buf[t.from:])
		t.buf = b
	} else {
		copy(t.buf, t.buf[t.from:])
		t.buf = t.buf[:live]
	}
	shift := uint32(t.from)
	for n := t.first; n != t.next; n++ {
		e := &t.ring[n&uint32(len(t.ring)-1)]
		e.off -= shift
		e.nextAt -= shift
	}
	t.from = 0
}

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
