package cluster

import (
	"hash/maphash"
	"sync/atomic"
)

// Slot is the place of a cluster by name. Routes hold it from the time they are built; the cluster may come, change and go.
type Slot struct {
	name    string
	cluster atomic.Pointer[Cluster]
	// active is what serves, warming what is to replace it. owner: main loop.
	active, warming *generation
}

// last returns the newest generation, nil if there is none.
func (s *Slot) last() *generation {
	if s.warming != nil {
		return s.warming
	}
	return s.active
}

// Name returns the cluster's name.
func (s *Slot) Name() string { return s.name }

// Load returns the cluster, nil if there is none of this name now. Safe from any thread.
func (s *Slot) Load() *Cluster { return s.cluster.Load() }

// index finds slots by name: a hash table with one writer, the main loop, and readers on all threads that never wait. A slot is
// in it as long as its cluster exists.
type index struct {
	seed  maphash.Seed
	table atomic.Pointer[[]atomic.Pointer[Slot]]
	n     int // slots and graves. owner: main loop
	live  int
}

// minIndex is the size of the smallest table.
const minIndex = 16

func newIndex() *index {
	x := &index{seed: maphash.MakeSeed()}
	t := make([]atomic.Pointer[Slot], minIndex)
	x.table.Store(&t)
	return x
}

// grave marks where a slot was, so that probes go on.
var grave = &Slot{}

// find returns the slot called name, nil if there is none. Safe from any thread.
func (x *index) find(name string) *Slot {
	t := *x.table.Load()
	mask := uint64(len(t) - 1)
	for i := maphash.String(x.seed, name) & mask; ; i = (i + 1) & mask {
		s := t[i].Load()
		if s == nil {
			return nil
		}
		if s != grave && s.name == name {
			return s
		}
	}
}

// add puts s in; it must not be there. owner: main loop.
func (x *index) add(s *Slot) {
	t := *x.table.Load()
	if 4*(x.n+1) > 3*len(t) {
		t = x.rebuild(t)
	}
	place(t, x.seed, s)
	x.n++
	x.live++
}

func place(t []atomic.Pointer[Slot], seed maphash.Seed, s *Slot) {
	mask := uint64(len(t) - 1)
	i := maphash.String(seed, s.name) & mask
	for t[i].Load() != nil {
		i = (i + 1) & mask
	}
	t[i].Store(s)
}

// rebuild makes a table without graves that has room; readers go on with the old one until it is complete.
func (x *index) rebuild(old []atomic.Pointer[Slot]) []atomic.Pointer[Slot] {
	size := minIndex
	for 2*(x.live+1) > size {
		size *= 2
	}
	t := make([]atomic.Pointer[Slot], size)
	for i := range old {
		if s := old[i].Load(); s != nil && s != grave {
			place(t, x.seed, s)
		}
	}
	x.n = x.live
	x.table.Store(&t)
	return t
}

// remove takes s out. owner: main loop.
func (x *index) remove(s *Slot) {
	t := *x.table.Load()
	mask := uint64(len(t) - 1)
	for i := maphash.String(x.seed, s.name) & mask; ; i = (i + 1) & mask {
		switch t[i].Load() {
		case nil:
			return
		case s:
			t[i].Store(grave)
			x.live--
			return
		}
	}
}
