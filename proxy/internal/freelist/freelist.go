// Package freelist makes the objects that a worker keeps for reuse, several at a time.
//
// It owns nothing: the lists belong to those who keep them, on their worker. It never takes an object back.
package freelist

import "unsafe"

// Objects are made in blocks of smallBlock bytes, of bigBlock if they have more than 1 KiB: as many as fit. header is what the
// runtime puts before an object with pointers; without it the block would be of the next size class.
const (
	smallBlock = 8 << 10
	bigBlock   = 16 << 10
	header     = 8
)

// Batch is how many objects of a list are made at once.
func Batch[T any]() int {
	var o T
	size, block := int(unsafe.Sizeof(o)), smallBlock
	if size > 1<<10 {
		block = bigBlock
	}
	return max((block-header)/max(size, 1), 1)
}

// Take returns the last object of free, which it makes longer first where it is empty: by Batch objects that lie together, each
// prepared by init.
//
// One at a time, an object that lives long (a stream that outlasts many changes of the configuration) may be the only one that is
// left of a page of the heap, and keeps all of it.
func Take[T any](free *[]*T, init func(*T)) *T {
	if len(*free) == 0 {
		grow(free, init)
	}
	k := len(*free) - 1
	o := (*free)[k]
	(*free)[k] = nil
	*free = (*free)[:k]
	return o
}

func grow[T any](free *[]*T, init func(*T)) {
	objects := make([]T, Batch[T]())
	for i := range objects {
		if init != nil {
			init(&objects[i])
		}
		*free = append(*free, &objects[i])
	}
}
