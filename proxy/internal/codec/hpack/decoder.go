package hpack

import (
	"github.com/dragoman-proxy/dragoman/api/http"
)

// Decoder decodes the header blocks of one direction of a connection. owner: the connection's worker. The zero value needs Init.
type Decoder struct {
	t table
	// limit is the largest table size that the peer may choose.
	limit int
	// atStart: only size updates were seen in this block. They may stand nowhere else (RFC 7541, section 4.2).
	atStart bool
	// mustUpdate: the limit went below the table's size, so that the next block must begin with an update.
	mustUpdate bool
	scratch    []byte
}

// Init sets the limit that was announced by SETTINGS_HEADER_TABLE_SIZE. Until the peer has acknowledged it, the default holds as
// well.
func (d *Decoder) Init(limit int) {
	*d = Decoder{limit: max(limit, DefaultTableSize)}
	d.t.max = DefaultTableSize
}

// SetLimit says that the peer has acknowledged a SETTINGS_HEADER_TABLE_SIZE of n.
func (d *Decoder) SetLimit(n int) {
	d.limit = n
	d.mustUpdate = n < d.t.max
}

// TableSize returns the size of the dynamic table, as RFC 7541 counts it.
func (d *Decoder) TableSize() int { return d.t.size }

// Begin starts a header block.
func (d *Decoder) Begin() { d.atStart = true }

// Next decodes one representation at the front of b into f and returns how many bytes it took. Strings are put into a; if a is
// nil the field is only accounted for, and f's strings may be empty. A size update gives a field without a name. ErrShort means that
// b ends within the representation; nothing has happened then.
func (d *Decoder) Next(b []byte, a *http.Arena, f *Field) (int, error) {
	if len(b) == 0 {
		return 0, ErrShort
	}
	c := b[0]
	if c&0x80 != 0 {
		if i := int(c & 0x7f); i <= staticCount && i > 0 && !d.mustUpdate {
			d.atStart = false
			*f = static[i]
			return 1, nil
		}
	}
	return d.slow(b, c, a, f)
}

func (d *Decoder) slow(b []byte, c byte, a *http.Arena, f *Field) (int, error) {
	if c&0xe0 == 0x20 {
		return d.sizeUpdate(b, f)
	}
	if d.mustUpdate {
		return 0, errNoUpdate
	}
	if c&0x80 != 0 {
		i, n, err := readInt(b, 0x7f)
		if err != nil {
			return 0, err
		}
		d.atStart = false
		return n, d.indexed(i, a, f)
	}
	return d.literal(b, c, a, f)
}

func (d *Decoder) sizeUpdate(b []byte, f *Field) (int, error) {
	v, n, err := readInt(b, 0x1f)
	if err != nil {
		return 0, err
	}
	if !d.atStart || v > d.limit {
		return 0, errSizeUpdate
	}
	d.mustUpdate = false
	d.t.setMax(v)
	*f = Field{}
	return n, nil
}

func (d *Decoder) indexed(i int, a *http.Arena, f *Field) error {
	if i <= staticCount {
		if i == 0 {
			return errIndex
		}
		*f = static[i]
		return nil
	}
	if i -= staticCount + 1; i >= d.t.len() {
		return errIndex
	}
	e := d.t.at(i)
	f.ID, f.Bad = e.id, e.bad
	if a == nil {
		f.Name, f.Value = "", ""
		return nil
	}
	if e.id != http.None {
		f.Name, f.Value = e.id.Name(), a.String(d.t.value(e))
		return nil
	}
	// Name and value lie together: copy them at once.
	s := a.String(view(d.t.buf[e.off : e.off+e.nlen+e.vlen]))
	f.Name, f.Value = s[:e.nlen], s[e.nlen:]
	return nil
}

// str is a string literal in the input, not decoded yet.
type str struct {
	raw  []byte
	huff bool
}

// literal decodes a literal field: with incremental indexing (01), without (0000) or never indexed (0001).
func (d *Decoder) literal(b []byte, c byte, a *http.Arena, f *Field) (int, error) {
	mask := byte(0x0f)
	if c&0x40 != 0 {
		mask = 0x3f
	}
	index, n, err := readInt(b, mask)
	if err != nil {
		return 0, err
	}
	var name, value str
	if index == 0 {
		if name, n, err = readStr(b, n); err != nil {
			return 0, err
		}
	}
	if value, n, err = readStr(b, n); err != nil {
		return 0, err
	}
	d.atStart = false
	insert := c&0x40 != 0
	if a == nil && !insert {
		return n, d.check(index, f)
	}
	m := mem{a: a, d: d}
	if a == nil {
		d.scratch = d.scratch[:0]
	}
	if index > 0 {
		if err := d.literalName(index, &m, f); err != nil {
			return 0, err
		}
	} else if err := newName(&m, name, f); err != nil {
		return 0, err
	}
	v, err := m.put(value)
	if err != nil {
		return 0, err
	}
	if badValue(v) {
		f.Bad |= BadValue
	}
	f.Value = m.keep(v)
	if insert {
		d.t.insert(f.ID, f.Name, f.Value, f.Bad)
	}
	return n, nil
}

// check looks whether a field that nobody wants to see would be valid.
func (d *Decoder) check(index int, f *Field) error {
	*f = Field{}
	if index > staticCount && index-staticCount-1 >= d.t.len() {
		return errIndex
	}
	return nil
}

func (d *Decoder) literalName(index int, m *mem, f *Field) error {
	if index <= staticCount {
		f.Name, f.ID, f.Bad = static[index].Name, static[index].ID, 0
		return nil
	}
	index -= staticCount + 1
	if index >= d.t.len() {
		return errIndex
	}
	e := d.t.at(index)
	f.ID, f.Bad = e.id, e.bad&BadName
	if e.id != http.None {
		f.Name = e.id.Name()
		return nil
	}
	f.Name = m.keep(append(m.room(int(e.nlen)), d.t.buf[e.off:e.off+e.nlen]...))
	return nil
}

func newName(m *mem, s str, f *Field) error {
	b := s.raw
	if s.huff {
		var err error
		if b, err = m.put(s); err != nil {
			return err
		}
	}
	f.Bad = 0
	if f.ID = http.Lookup(b); f.ID != http.None {
		f.Name = f.ID.Name()
		return nil
	}
	if badName(b) {
		f.Bad = BadName
	}
	if !s.huff {
		b = append(m.room(len(b)), b...)
	}
	f.Name = m.keep(b)
	return nil
}

// mem is where strings go: a stream's arena, or the decoder's scratch memory when the field is not wanted.
type mem struct {
	a *http.Arena
	d *Decoder
}

func (m *mem) room(n int) []byte {
	if m.a != nil {
		return m.a.Room(n)
	}
	s := m.d.scratch
	if cap(s)-len(s) < n {
		// Strings kept before stay in the old memory, which their views hold.
		s = make([]byte, 0, max(n, 1024))
		m.d.scratch = s
	}
	return s[len(s):]
}

// put decodes s at the end of the memory, without taking it.
func (m *mem) put(s str) ([]byte, error) {
	if !s.huff {
		return append(m.room(len(s.raw)), s.raw...), nil
	}
	b, ok := huffmanDecode(m.room(huffmanMax(len(s.raw))), s.raw)
	if !ok {
		return nil, errHuffman
	}
	return b, nil
}

// keep takes what put or room returned.
func (m *mem) keep(b []byte) string {
	if m.a != nil {
		return m.a.Take(b)
	}
	m.d.scratch = m.d.scratch[:len(m.d.scratch)+len(b)]
	return view(b)
}

// readInt reads an integer with the prefix mask (RFC 7541, section 5.1). Values above 2^28 are refused: no index, length or size
// that is valid here comes near.
func readInt(b []byte, mask byte) (v, n int, err error) {
	v = int(b[0] & mask)
	if v < int(mask) {
		return v, 1, nil
	}
	for i, shift := 1, 0; ; i, shift = i+1, shift+7 {
		if i >= len(b) {
			return 0, 0, ErrShort
		}
		if shift > 21 {
			return 0, 0, errInt
		}
		v += int(b[i]&0x7f) << shift
		if b[i]&0x80 == 0 {
			return v, i + 1, nil
		}
	}
}

// readStr reads the string literal at b[n:] and returns where it ends.
func readStr(b []byte, n int) (str, int, error) {
	if n >= len(b) {
		return str{}, 0, ErrShort
	}
	length, k, err := readInt(b[n:], 0x7f)
	if err != nil {
		return str{}, 0, err
	}
	if length > MaxString {
		return str{}, 0, errLong
	}
	end := n + k + length
	if end > len(b) {
		return str{}, 0, ErrShort
	}
	return str{raw: b[n+k : end], huff: b[n]&0x80 != 0}, end, nil
}
