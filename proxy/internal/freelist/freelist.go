// Package freelist makes the objects that a worker keeps for reuse, several at a time.
//
// It owns nothing: the lists belong to those who keep them, on their worker. It never takes an object back.
package freelist

// Batch is how many objects of a list are made at once.
const Batch = 8

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
	objects := make([]T, Batch)
	for i := range objects {
		if init != nil {
			init(&objects[i])
		}
		*free = append(*free, &objects[i])
	}
}
