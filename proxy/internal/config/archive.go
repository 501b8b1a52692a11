package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Archive keeps serialized resources for /config_dump in little memory. A single resource compresses badly (70 to 1,100
// bytes, and what repeats is in its neighbours), so resources are compressed in blocks: 14 bytes are left of a small
// static cluster and 90 of one of Istio's. It belongs to the main loop.
type Archive struct {
	entries []entry // by Ref - 1
	unused  []Ref
	blocks  map[uint32]*block
	next    uint32 // the number of the open block
	open    block  // not compressed yet
	bytes   int    // of compressed blocks

	scratch   []byte // the block that was read last
	scratchOf uint32
}

// Ref names a resource in an Archive. The zero Ref names none.
type Ref uint32

type entry struct {
	block uint32
	off   uint32
	n     uint32
}

type block struct {
	data []byte // compressed when it is closed
	size int    // uncompressed
	live int    // bytes that are still referred to
	refs []Ref
}

// archiveBlock is how many bytes are compressed together: with 16 KiB the dictionary is rebuilt twice as often, with 64 KiB
// reading one resource costs 15 µs more.
const archiveBlock = 32 << 10

// NewArchive returns an empty archive.
func NewArchive() *Archive { return &Archive{blocks: map[uint32]*block{}, next: 1} }

// Put stores a copy of raw.
func (a *Archive) Put(raw []byte) Ref {
	var r Ref
	if n := len(a.unused); n > 0 {
		r, a.unused = a.unused[n-1], a.unused[:n-1]
	} else {
		a.entries = append(a.entries, entry{})
		r = Ref(len(a.entries))
	}
	a.place(r, raw)
	return r
}

func (a *Archive) place(r Ref, raw []byte) {
	b := &a.open
	a.entries[r-1] = entry{block: a.next, off: uint32(len(b.data)), n: uint32(len(raw))}
	b.data = append(b.data, raw...)
	b.live += len(raw)
	b.refs = append(b.refs, r)
	if len(b.data) >= archiveBlock {
		a.close()
	}
}

func (a *Archive) close() {
	b := a.open
	b.size = len(b.data)
	b.data = slices.Clone(s2.Encode(nil, b.data))
	b.refs = slices.Clone(b.refs)
	a.bytes += len(b.data)
	a.blocks[a.next] = &b
	a.next++
	a.open = block{data: a.open.data[:0], refs: a.open.refs[:0]}
	if cap(a.open.data) > 4*archiveBlock { // one huge resource must not leave its buffer behind
		a.open.data = nil
	}
}

// Get returns the bytes of r. They are valid until the next call of a method. An unknown r gives nil.
func (a *Archive) Get(r Ref) ([]byte, error) {
	if r == 0 || int(r) > len(a.entries) || a.entries[r-1].block == 0 {
		return nil, nil
	}
	e := a.entries[r-1]
	data := a.open.data
	if e.block != a.next {
		var err error
		if data, err = a.read(e.block); err != nil {
			return nil, err
		}
	}
	return data[e.off : e.off+e.n], nil
}

func (a *Archive) read(n uint32) ([]byte, error) {
	if a.scratchOf == n {
		return a.scratch, nil
	}
	a.scratchOf = 0
	data, err := s2.Decode(a.scratch[:cap(a.scratch)], a.blocks[n].data)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	a.scratch, a.scratchOf = data, n
	return data, nil
}

// Drop forgets r. A block of which less than a third is left is packed anew.
func (a *Archive) Drop(r Ref) {
	if r == 0 || int(r) > len(a.entries) || a.entries[r-1].block == 0 {
		return
	}
	e := a.entries[r-1]
	a.entries[r-1] = entry{}
	a.unused = append(a.unused, r)
	if e.block == a.next {
		a.open.live -= int(e.n)
		if i := slices.Index(a.open.refs, r); i >= 0 {
			a.open.refs = slices.Delete(a.open.refs, i, i+1)
		}
		if len(a.open.refs) == 0 {
			a.open.data = a.open.data[:0]
		}
		return
	}
	b := a.blocks[e.block]
	b.live -= int(e.n)
	if b.live*3 < b.size {
		a.repack(e.block, b)
	}
}

func (a *Archive) repack(n uint32, b *block) {
	data, err := a.read(n)
	if err != nil {
		return // it stays as it is; Get will tell
	}
	delete(a.blocks, n)
	a.bytes -= len(b.data)
	a.scratchOf = 0
	for _, r := range b.refs {
		if e := a.entries[r-1]; e.block == n {
			a.place(r, data[e.off:e.off+e.n])
		}
	}
}

// Release frees the buffers that reading and the open block left behind. Call it when a burst is over.
func (a *Archive) Release() {
	a.scratch, a.scratchOf = nil, 0
	a.open.data = slices.Clip(a.open.data)
	a.open.refs = slices.Clip(a.open.refs)
}

// Len returns how many resources there are.
func (a *Archive) Len() int { return len(a.entries) - len(a.unused) }

// Size returns how many bytes the archive takes, without what Release frees.
func (a *Archive) Size() int {
	size := a.bytes + len(a.open.data) + 4*len(a.open.refs) + 12*len(a.entries)
	for _, b := range a.blocks {
		size += 4*len(b.refs) + 64
	}
	return size
}

// Compress packs one larger message, such as a bootstrap or a route table.
func Compress(src []byte) []byte {
	packed, _ := CompressWith(nil, src)
	return packed
}

// CompressWith is Compress with memory to work in, which it returns, maybe grown.
func CompressWith(scratch, src []byte) (packed, grown []byte) {
	scratch = s2.Encode(scratch[:cap(scratch)], src)
	return slices.Clone(scratch), scratch
}

// maxDecompressed bounds what Decompress returns.
const maxDecompressed = 1 << 30

// Decompress unpacks what Compress returned; dst is overwritten and grown if need be.
func Decompress(dst, src []byte) ([]byte, error) {
	if n, err := s2.DecodedLen(src); err != nil || n > maxDecompressed {
		return nil, errors.New("decompress: not a compressed message")
	}
	out, err := s2.Decode(dst[:cap(dst)], src)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return out, nil
}
