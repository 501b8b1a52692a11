package h2

import (
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
)

// maxFreeStreams and maxFreeScratch bound what a Pool keeps for reuse.
const (
	maxFreeStreams = 1024
	maxFreeScratch = 64
	maxScratch     = 64 << 10
)

// Pool keeps streams and scratch memory for all HTTP/2 connections of a worker. The zero value is ready. owner: worker.
type Pool struct {
	// Stats counts for the worker; nil counts nothing. Set it before first use.
	Stats stats.Recorder

	free []*stream
	// limbo holds streams that ended in this pass: whoever is still up the stack, or wants to log their bytes, may look at
	// them until the next Dispatch.
	limbo   []*stream
	scratch [][]byte
	list    []*stream
	live    int
}

// Live returns how many streams are open. Tests check that it returns to zero.
func (p *Pool) Live() int { return p.live }

func (p *Pool) get() *stream {
	p.live++
	return freelist.Take(&p.free, nil)
}

// put takes a stream that has ended. It is reused after the next settle.
func (p *Pool) put(st *stream) {
	p.live--
	p.limbo = append(p.limbo, st)
}

// settle recycles what is in limbo. It must be called from the bottom of the stack only: at the start of Dispatch.
func (p *Pool) settle() {
	for i, st := range p.limbo {
		p.limbo[i] = nil
		st.recycle()
		if len(p.free) < maxFreeStreams {
			p.free = append(p.free, st)
		}
	}
	p.limbo = p.limbo[:0]
}

// getScratch returns memory for header blocks that do not fit into a frame.
func (p *Pool) getScratch() []byte {
	k := len(p.scratch)
	if k == 0 {
		return make([]byte, 0, maxFrameSize)
	}
	b := p.scratch[k-1]
	p.scratch = p.scratch[:k-1]
	return b[:0]
}

func (p *Pool) putScratch(b []byte) {
	if cap(b) > 0 && cap(b) <= maxScratch && len(p.scratch) < maxFreeScratch {
		p.scratch = append(p.scratch, b)
	}
}

// getList returns an empty list, for a walk over streams that may change the table. Walks may nest.
func (p *Pool) getList() []*stream {
	l := p.list
	p.list = nil
	return l[:0]
}

func (p *Pool) putList(l []*stream) {
	clear(l)
	p.list = l[:0]
}

// streamTable finds streams by id: open addressing with linear probing. Ids of one connection are consecutive odd numbers, so that
// half the id is a perfect hash for streams of similar age.
type streamTable struct {
	slots []*stream // power of two, at most 3/4 full
	n     int
}

func (t *streamTable) get(id uint32) *stream {
	if t.n == 0 {
		return nil
	}
	mask := uint32(len(t.slots) - 1)
	for i := id >> 1 & mask; ; i = (i + 1) & mask {
		st := t.slots[i]
		if st == nil || st.id == id {
			return st
		}
	}
}

func (t *streamTable) put(st *stream) {
	if 4*(t.n+1) > 3*len(t.slots) {
		old := t.slots
		t.slots = make([]*stream, max(8, 2*len(old)))
		for _, o := range old {
			if o != nil {
				t.place(o)
			}
		}
	}
	t.n++
	t.place(st)
}

func (t *streamTable) place(st *stream) {
	mask := uint32(len(t.slots) - 1)
	i := st.id >> 1 & mask
	for t.slots[i] != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = st
}

// remove deletes id and moves what follows up, so that no probe is cut off.
func (t *streamTable) remove(id uint32) {
	mask := uint32(len(t.slots) - 1)
	i := id >> 1 & mask
	for t.slots[i] == nil || t.slots[i].id != id {
		if t.slots[i] == nil {
			return
		}
		i = (i + 1) & mask
	}
	t.n--
	for j := (i + 1) & mask; t.slots[j] != nil; j = (j + 1) & mask {
		home := t.slots[j].id >> 1 & mask
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = nil
}
