package http

import (
	"slices"
	"strings"
	"unsafe"
)

// Header is one header field. Name is lower-case; for a field with an ID it is the canonical constant. Name and Value are views
// into the stream's Arena, or constants: they are valid until the stream is destroyed.
type Header struct {
	Name  string
	Value string
	ID    ID
}

// Set is a set of IDs.
type Set [2]uint64

// MakeSet returns the set of ids.
func MakeSet(ids ...ID) (s Set) {
	for _, id := range ids {
		s[id>>6] |= 1 << (id & 63)
	}
	return s
}

// Has tells whether id is in s.
func (s *Set) Has(id ID) bool { return s[id>>6]&(1<<(id&63)) != 0 }

// HeaderMap is an ordered list of header fields; order is kept as received and names may repeat. Get finds fields with an ID
// by a bit test and a short scan. owner: the stream's worker. The zero value needs Init.
type HeaderMap struct {
	list  []Header
	have  Set
	arena *Arena
	size  int

	formatter KeyFormatter
}

// Init empties m and sets the arena that copies go to.
func (m *HeaderMap) Init(a *Arena) {
	clear(m.list)
	m.list, m.have, m.arena, m.size, m.formatter = m.list[:0], Set{}, a, 0, nil
}

// Release forgets all fields and the arena, gives the list back to the worker, and keeps one that has grown unless it is large.
func (m *HeaderMap) Release() {
	switch c := cap(m.list); {
	case c == listLen && m.arena != nil && m.arena.pool != nil:
		m.arena.pool.putList(m.list)
		m.list = nil
	case c > 128:
		m.list = nil
	}
	m.Init(nil)
}

// Arena returns the memory that copies go to.
func (m *HeaderMap) Arena() *Arena { return m.arena }

// Len returns the number of fields, pseudo headers included.
func (m *HeaderMap) Len() int { return len(m.list) }

// Size returns the bytes of all names and values, as Envoy counts them for its limits.
func (m *HeaderMap) Size() int { return m.size }

// All returns the fields in order. The slice is the map's own: do not keep it across a change.
func (m *HeaderMap) All() []Header { return m.list }

// Has tells whether a field with this ID is present.
func (m *HeaderMap) Has(id ID) bool { return m.have.Has(id) }

// HasAny tells whether a field with an ID of s is present.
func (m *HeaderMap) HasAny(s *Set) bool { return m.have[0]&s[0]|m.have[1]&s[1] != 0 }

// Get returns the value of the first field with this ID, "" if there is none.
func (m *HeaderMap) Get(id ID) string {
	if m.have.Has(id) {
		for i := range m.list {
			if m.list[i].ID == id {
				return m.list[i].Value
			}
		}
	}
	return ""
}

// Find returns the first field with this ID, nil if there is none. It is valid until the map changes.
func (m *HeaderMap) Find(id ID) *Header {
	if m.have.Has(id) {
		for i := range m.list {
			if m.list[i].ID == id {
				return &m.list[i]
			}
		}
	}
	return nil
}

// GetName returns the value of the first field called name (lower-case).
func (m *HeaderMap) GetName(name string) (string, bool) {
	if id := Lookup(name); id != None {
		return m.Get(id), m.have.Has(id)
	}
	for i := range m.list {
		if m.list[i].ID == None && m.list[i].Name == name {
			return m.list[i].Value, true
		}
	}
	return "", false
}

// Values appends the values of all fields called name (lower-case) to dst.
func (m *HeaderMap) Values(dst []string, name string) []string {
	for i := range m.list {
		if m.list[i].Name == name {
			dst = append(dst, m.list[i].Value)
		}
	}
	return dst
}

// AddView appends a field without copying: name (lower-case) and value must live as long as the stream (constants, or memory of
// its arena). id is Lookup(name), which the caller mostly knows.
func (m *HeaderMap) AddView(id ID, name, value string) {
	n := len(m.list)
	if n == cap(m.list) {
		m.grow()
	}
	// Field by field into its place: a composite literal would be built on the stack first, and copied.
	m.list = m.list[:n+1]
	h := &m.list[n]
	h.Name, h.Value, h.ID = name, value, id
	m.have[id>>6] |= 1 << (id & 63)
	m.size += len(name) + len(value)
}

func (m *HeaderMap) grow() {
	old := m.list
	pooled := m.arena != nil && m.arena.pool != nil
	if cap(old) == 0 && pooled {
		m.list = m.arena.pool.getList()
		return
	}
	m.list = slices.Grow(old, max(listLen, len(old)))
	if cap(old) == listLen && pooled {
		m.arena.pool.putList(old)
	}
}

// Add appends a field with an ID and a value that is copied.
func (m *HeaderMap) Add(id ID, value string) { m.AddView(id, names[id], m.arena.String(value)) }

// AddConst appends a field with an ID and a value that lives as long as the stream.
func (m *HeaderMap) AddConst(id ID, value string) { m.AddView(id, names[id], value) }

// AddName appends a field; name (lower-case) and value are copied.
func (m *HeaderMap) AddName(name, value string) {
	if id := Lookup(name); id != None {
		m.Add(id, value)
		return
	}
	m.AddView(None, m.arena.String(name), m.arena.String(value))
}

// Set replaces the value of the first field with this ID and removes further ones, or appends it. The value is copied.
func (m *HeaderMap) Set(id ID, value string) { m.SetConst(id, m.arena.String(value)) }

// SetConst is Set for a value that lives as long as the stream.
func (m *HeaderMap) SetConst(id ID, value string) {
	if !m.have.Has(id) {
		m.AddView(id, names[id], value)
		return
	}
	i := 0
	for m.list[i].ID != id {
		i++
	}
	h := &m.list[i]
	m.size += len(value) - len(h.Value)
	h.Value = value
	for i++; i < len(m.list); i++ {
		if m.list[i].ID == id {
			m.removeAfter(i, id)
			return
		}
	}
}

// removeAfter removes the fields with this ID from place w on, where there is one. It is apart so that Set, which rarely meets a
// second field, stays small.
func (m *HeaderMap) removeAfter(w int, id ID) {
	for i := w; i < len(m.list); i++ {
		if m.list[i].ID == id {
			m.size -= len(m.list[i].Name) + len(m.list[i].Value)
			continue
		}
		m.list[w] = m.list[i]
		w++
	}
	clear(m.list[w:])
	m.list = m.list[:w]
}

// SetName replaces the value of the first field called name (lower-case) in place and removes further ones, or appends it.
func (m *HeaderMap) SetName(name, value string) {
	if id := Lookup(name); id != None {
		m.Set(id, value)
		return
	}
	value = m.arena.String(value)
	w, found := 0, false
	for i := range m.list {
		h := m.list[i]
		if h.ID == None && h.Name == name {
			if found {
				m.size -= len(h.Name) + len(h.Value)
				continue
			}
			found = true
			m.size += len(value) - len(h.Value)
			h.Value = value
		}
		m.list[w] = h
		w++
	}
	clear(m.list[w:])
	m.list = m.list[:w]
	if !found {
		m.AddView(None, m.arena.String(name), value)
	}
}

// Remove removes all fields with this ID.
func (m *HeaderMap) Remove(id ID) bool {
	if !m.have.Has(id) {
		return false
	}
	s := MakeSet(id)
	m.RemoveSet(&s)
	return true
}

// RemoveSet removes all fields whose ID is in s, in one pass; it costs nothing when there are none. s must not hold None.
func (m *HeaderMap) RemoveSet(s *Set) {
	if !m.HasAny(s) {
		return
	}
	w := 0
	for i := range m.list {
		h := m.list[i]
		if s.Has(h.ID) {
			m.size -= len(h.Name) + len(h.Value)
			continue
		}
		if w != i {
			m.list[w] = h
		}
		w++
	}
	clear(m.list[w:])
	m.list = m.list[:w]
	m.have[0] &^= s[0]
	m.have[1] &^= s[1]
}

// RemoveName removes all fields called name (lower-case) and tells how many there were.
func (m *HeaderMap) RemoveName(name string) int {
	return m.RemoveFunc(func(h *Header) bool { return h.Name == name })
}

// RemoveFunc removes the fields for which f is true and tells how many there were.
func (m *HeaderMap) RemoveFunc(f func(h *Header) bool) int {
	w := 0
	var have Set
	for i := range m.list {
		h := m.list[i]
		if f(&m.list[i]) {
			m.size -= len(h.Name) + len(h.Value)
			continue
		}
		have[h.ID>>6] |= 1 << (h.ID & 63)
		m.list[w] = h
		w++
	}
	n := len(m.list) - w
	clear(m.list[w:])
	m.list, m.have = m.list[:w], have
	return n
}

// StatusCode returns the number in :status, 0 if there is none or it is not three digits.
func (m *HeaderMap) StatusCode() int {
	s := m.Get(Status)
	if len(s) != 3 {
		return 0
	}
	return int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
}

// Cookie returns the first cookie of a name in all cookie fields, without quotes around its value (RFC 6265, section 5.4).
func (m *HeaderMap) Cookie(name string) (string, bool) {
	if !m.Has(Cookie) {
		return "", false
	}
	for i := range m.list {
		if m.list[i].ID != Cookie {
			continue
		}
		for rest := m.list[i].Value; rest != ""; {
			var part string
			part, rest, _ = strings.Cut(rest, ";")
			k, v, ok := strings.Cut(strings.Trim(part, " \t"), "=")
			if ok && k == name {
				if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
					v = v[1 : len(v)-1]
				}
				return v, true
			}
		}
	}
	return "", false
}

// CopyFrom empties m and fills it with copies of src's fields in m's arena, so that m outlives src's stream.
func (m *HeaderMap) CopyFrom(src *HeaderMap) {
	m.Init(m.arena)
	for i := range src.list {
		h := &src.list[i]
		if h.ID != None {
			m.Add(h.ID, h.Value)
		} else {
			m.AddView(None, m.arena.String(h.Name), m.arena.String(h.Value))
		}
	}
}

// An arena begins with firstChunk bytes, into which what a proxy makes of a plain request and its answer fits, goes on with secondChunk,
// and then with nextChunk at a time: a stream that lives long should hold little, one with large cookies should not be made of crumbs.
const (
	firstChunk  = 512
	secondChunk = 1 << 10
	nextChunk   = 4 << 10
)

// chunkBatch is in how many bytes the small chunks are made. They lie together: a stream that lives through many changes of the
// configuration would otherwise keep a page of the heap from what was there before.
const chunkBatch = 8 << 10

// ArenaPool keeps chunks of arenas for reuse. owner: worker.
type ArenaPool struct {
	// Poison makes release overwrite the memory. Set it in tests, before first use.
	Poison bool
	first  [][]byte
	second [][]byte
	next   [][]byte
	lists  []*[listLen]Header
	live   int
}

// maxFreeArenas bounds the chunks of each size, and the lists, that a pool keeps (0.5, 1, 4 and 0.5 MiB).
const maxFreeArenas = 1024

// A map begins with a list of listLen fields, of which listBatch are made at once for the reason of chunkBatch.
const (
	listLen   = 12
	listBatch = 17 // 8 KiB
)

func (p *ArenaPool) getList() []Header {
	if len(p.lists) == 0 {
		block := make([][listLen]Header, listBatch)
		for i := range block {
			p.lists = append(p.lists, &block[i])
		}
	}
	k := len(p.lists) - 1
	l := p.lists[k]
	p.lists[k] = nil
	p.lists = p.lists[:k]
	return l[:0]
}

// putList takes a list of getList back.
func (p *ArenaPool) putList(list []Header) {
	if len(p.lists) >= maxFreeArenas {
		return
	}
	if p.Poison {
		for i := range list {
			list[i] = Header{Name: poisoned, Value: poisoned}
		}
	} else {
		clear(list)
	}
	p.lists = append(p.lists, (*[listLen]Header)(list[:listLen]))
}

// poisoned is in the fields of lists that were given back.
const poisoned = "\xdb\xdb\xdb\xdb"

// Live returns how many chunks are in use.
func (p *ArenaPool) Live() int { return p.live }

// Arena is the memory of one stream's header names and values. Nothing in it moves; all of it goes at once, by Release.
// owner: the stream's worker.
type Arena struct {
	pool *ArenaPool
	cur  []byte // len: used
	more [][]byte
}

// Init sets where chunks come from. The arena owns nothing until its first use.
func (a *Arena) Init(p *ArenaPool) { a.pool = p }

// Bytes returns n fresh bytes of the arena.
func (a *Arena) Bytes(n int) []byte {
	if cap(a.cur)-len(a.cur) < n {
		a.grow(n)
	}
	k := len(a.cur)
	a.cur = a.cur[:k+n]
	return a.cur[k : k+n : k+n]
}

// Copy copies b and returns it as a string that is valid until Release.
func (a *Arena) Copy(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	p := a.Bytes(len(b))
	copy(p, b)
	return unsafe.String(unsafe.SliceData(p), len(p))
}

// String copies s and returns a view that is valid until Release.
func (a *Arena) String(s string) string {
	if len(s) == 0 {
		return ""
	}
	p := a.Bytes(len(s))
	copy(p, s)
	return unsafe.String(unsafe.SliceData(p), len(p))
}

// Concat returns the parts as one string that is valid until Release.
func (a *Arena) Concat(parts ...string) string {
	n := 0
	for _, s := range parts {
		n += len(s)
	}
	if n == 0 {
		return ""
	}
	p := a.Bytes(n)
	k := 0
	for _, s := range parts {
		k += copy(p[k:], s)
	}
	return unsafe.String(unsafe.SliceData(p), n)
}

// Room returns a slice of length 0 and capacity of at least n at the end of the arena, to append to. Nothing of it is taken until Take.
func (a *Arena) Room(n int) []byte {
	if cap(a.cur)-len(a.cur) < n {
		a.grow(n)
	}
	return a.cur[len(a.cur):]
}

// Take takes b, which was appended to what the last Room returned, and returns it as a string that is valid until Release.
func (a *Arena) Take(b []byte) string {
	a.cur = a.cur[:len(a.cur)+len(b)]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// View returns b, which must be memory of this arena, as a string.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (a *Arena) grow(n int) {
	if a.cur != nil {
		a.more = append(a.more, a.cur)
	}
	a.pool.live++
	switch {
	case a.cur == nil && n <= firstChunk:
		a.cur = getSmall(&a.pool.first, firstChunk)
	case len(a.more) < 2 && n <= secondChunk:
		a.cur = getSmall(&a.pool.second, secondChunk)
	case n <= nextChunk:
		a.cur = a.pool.getNext()
	default:
		a.cur = make([]byte, 0, n)
	}
}

func getSmall(free *[][]byte, size int) []byte {
	if len(*free) == 0 {
		block := make([]byte, chunkBatch)
		for ; len(block) > 0; block = block[size:] {
			*free = append(*free, block[:0:size])
		}
	}
	return take(free)
}

func (p *ArenaPool) getNext() []byte {
	if len(p.next) == 0 {
		return make([]byte, 0, nextChunk)
	}
	return take(&p.next)
}

func take(free *[][]byte) []byte {
	k := len(*free) - 1
	c := (*free)[k][:0]
	(*free)[k] = nil
	*free = (*free)[:k]
	return c
}

// Release gives all memory back. Every view into the arena is dead after it.
func (a *Arena) Release() {
	if a.cur != nil {
		a.drop(a.cur)
	}
	for i, c := range a.more {
		a.drop(c)
		a.more[i] = nil
	}
	a.cur, a.more = nil, a.more[:0]
}

func (a *Arena) drop(c []byte) {
	p := a.pool
	p.live--
	if p.Poison {
		c = c[:cap(c)]
		for i := range c {
			c[i] = 0xdb
		}
	}
	switch {
	case cap(c) == firstChunk && len(p.first) < maxFreeArenas:
		p.first = append(p.first, c)
	case cap(c) == secondChunk && len(p.second) < maxFreeArenas:
		p.second = append(p.second, c)
	case cap(c) == nextChunk && len(p.next) < maxFreeArenas:
		p.next = append(p.next, c)
	}
}

// EqualFold compares without regard to ASCII case.
func EqualFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z' {
			return false
		}
	}
	return true
}
