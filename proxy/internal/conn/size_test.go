package conn

import (
	"testing"
	"unsafe"
)

// An idle connection costs a Conn. 384 bytes is a size class of the allocator; the next is 416.
func TestSize(t *testing.T) {
	if got := unsafe.Sizeof(Conn{}); unsafe.Sizeof(uintptr(0)) == 8 && got > 384 {
		t.Errorf("a Conn has %d bytes", got)
	}
}
