package buffer

// segment is a run of bytes. slab is nil for borrowed memory, which is valid only until the callback that lent it returns.
type segment struct {
	b    []byte
	slab *Slab
}

// Buffer is a queue of bytes in slabs. The zero value with a Pool set (see Init) is ready for use. owner: worker.
//
// A Buffer may hold borrowed memory (Borrow): whoever receives such a Buffer in a callback may read, drain or move it; moving
// copies what is borrowed, so that the receiver always owns what it keeps.
type Buffer struct {
	pool *Pool
	segs []segment // of a pair of the pool, or larger
	head int       // first live segment
	n    int       // bytes in all
}

// Init sets the pool that slabs come from. It must be called before the first write.
func (b *Buffer) Init(p *Pool) { b.pool = p }

// Pool returns the pool that b takes its slabs from.
func (b *Buffer) Pool() *Pool { return b.pool }

// Len returns the number of bytes held.
func (b *Buffer) Len() int { return b.n }

// Borrow adds a view of p to the end of b. The caller still owns p and will reuse it after the callback.
func (b *Buffer) Borrow(p []byte) {
	if len(p) == 0 {
		return
	}
	b.push(segment{b: p})
}

func (b *Buffer) push(s segment) {
	switch k := len(b.segs); {
	case b.segs == nil:
		b.segs = b.pool.pair()
	case b.head > 0 && b.head == k:
		b.segs, b.head = b.segs[:0], 0
	case k == pairLen && cap(b.segs) == pairLen:
		old := b.segs
		b.segs = append(make([]segment, 0, 4*pairLen), old...)
		b.pool.putPair(old)
	}
	b.segs = append(b.segs, s)
	b.n += len(s.b)
}

// Reserve returns a slice of length 0 and capacity of at least n that lies at the end of b. The caller appends to it without
// growing it past its capacity and hands it back with Commit. Nothing else may touch b in between.
func (b *Buffer) Reserve(n int) []byte {
	if k := len(b.segs); k > b.head {
		s := &b.segs[k-1]
		if s.slab != nil && s.slab.refs == 1 && cap(s.b)-len(s.b) >= n {
			return s.b[len(s.b):]
		}
	}
	slab := b.pool.get(n)
	b.push(segment{b: slab.buf[:0], slab: slab})
	return slab.buf[:0]
}

// Commit adds p, which was appended to the slice of the last Reserve, to b.
func (b *Buffer) Commit(p []byte) {
	s := &b.segs[len(b.segs)-1]
	s.b = s.b[:len(s.b)+len(p)]
	b.n += len(p)
}

// Append copies p to the end of b.
func (b *Buffer) Append(p []byte) {
	for len(p) > 0 {
		room := b.Reserve(min(len(p), 512))
		k := min(len(p), cap(room))
		b.Commit(append(room, p[:k]...))
		p = p[k:]
	}
}

// AppendString copies s to the end of b.
func (b *Buffer) AppendString(s string) {
	for len(s) > 0 {
		room := b.Reserve(min(len(s), 512))
		k := min(len(s), cap(room))
		b.Commit(append(room, s[:k]...))
		s = s[k:]
	}
}

// Move moves all bytes of src to the end of b and leaves src empty. Owned slabs change hands; borrowed bytes are copied.
func (b *Buffer) Move(src *Buffer) { b.MoveN(src, src.n) }

// MoveN moves the first n bytes of src (at most all) to the end of b.
func (b *Buffer) MoveN(src *Buffer, n int) {
	for n > 0 && src.n > 0 {
		s := &src.segs[src.head]
		k := min(n, len(s.b))
		switch {
		case s.slab == nil || k < 256 && b.n > 0:
			b.Append(s.b[:k])
		case k == len(s.b):
			b.push(*s)
			src.n -= k
			*s = segment{}
			src.head++
			src.settle()
			n -= k
			continue
		default:
			s.slab.retain()
			b.push(segment{b: s.b[:k:k], slab: s.slab})
		}
		src.Drain(k)
		n -= k
	}
}

// Drain drops the first n bytes (at most all).
func (b *Buffer) Drain(n int) {
	for n > 0 && b.n > 0 {
		s := &b.segs[b.head]
		if k := len(s.b); n < k {
			s.b = s.b[n:]
			b.n -= n
			return
		} else {
			n -= k
			b.n -= k
		}
		if s.slab != nil {
			s.slab.release()
		}
		*s = segment{}
		b.head++
	}
	b.settle()
}

// settle forgets the segment list when nothing is left; an empty last segment (a reservation that was not used) goes too.
func (b *Buffer) settle() {
	if b.n > 0 {
		return
	}
	for i := b.head; i < len(b.segs); i++ {
		if b.segs[i].slab != nil {
			b.segs[i].slab.release()
		}
		b.segs[i] = segment{}
	}
	b.head = 0
	switch c := cap(b.segs); {
	case c == pairLen:
		b.pool.putPair(b.segs)
		b.segs = nil
	case c > 64:
		b.segs = nil
	default:
		b.segs = b.segs[:0]
	}
}

// Reset drops everything.
func (b *Buffer) Reset() {
	b.n = 0
	b.settle()
}

// Front returns the first contiguous run of bytes, nil if b is empty. It is valid until b changes.
func (b *Buffer) Front() []byte {
	for i := b.head; i < len(b.segs); i++ {
		if len(b.segs[i].b) > 0 {
			return b.segs[i].b
		}
	}
	return nil
}

// Slices appends the runs of b to dst, at most limit of them, for a vectored write.
func (b *Buffer) Slices(dst [][]byte, limit int) [][]byte {
	for i := b.head; i < len(b.segs) && len(dst) < limit; i++ {
		if len(b.segs[i].b) > 0 {
			dst = append(dst, b.segs[i].b)
		}
	}
	return dst
}

// Linearize returns the first n bytes (at most all) as one run, copying them together if they are not. It is valid until b
// changes.
func (b *Buffer) Linearize(n int) []byte {
	n = min(n, b.n)
	if f := b.Front(); len(f) >= n {
		return f[:n]
	}
	slab := b.pool.get(n)
	out := slab.buf[:0]
	for left := n; left > 0; {
		f := b.Front()
		k := min(left, len(f))
		out = append(out, f[:k]...)
		b.Drain(k)
		left -= k
	}
	rest := append([]segment(nil), b.segs[b.head:]...)
	b.segs = append(append(b.segs[:0], segment{b: out, slab: slab}), rest...)
	b.head = 0
	b.n += n
	return out
}

// AppendTo copies all bytes to dst and returns it. b is unchanged.
func (b *Buffer) AppendTo(dst []byte) []byte {
	for i := b.head; i < len(b.segs); i++ {
		dst = append(dst, b.segs[i].b...)
	}
	return dst
}

// Bytes returns a copy of all bytes, for tests and cold paths.
func (b *Buffer) Bytes() []byte { return b.AppendTo(make([]byte, 0, b.n)) }

// Borrowed tells whether b holds memory that is not its own.
func (b *Buffer) Borrowed() bool {
	for i := b.head; i < len(b.segs); i++ {
		if b.segs[i].slab == nil && len(b.segs[i].b) > 0 {
			return true
		}
	}
	return false
}

// Own copies what is borrowed, so that b may be kept beyond the callback.
func (b *Buffer) Own() {
	if !b.Borrowed() {
		return
	}
	var t Buffer
	t.Init(b.pool)
	t.Move(b)
	b.Move(&t)
}
