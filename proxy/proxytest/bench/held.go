package bench

import (
	"unsafe"

	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Held returns the sizes in bytes of the objects that are made one by one for a stream that lives long: its connections, and what
// finds them. The rest is made in blocks.
func Held() map[string]uintptr {
	return map[string]uintptr{
		"a downstream connection":         listener.SessionSize,
		"its HTTP connection manager":     unsafe.Sizeof(hcm.Conn{}),
		"an upstream connection":          unsafe.Sizeof(pool.Conn{}),
		"a pool of such":                  unsafe.Sizeof(pool.Pool{}),
		"a block of streams and the like": 8 << 10,
	}
}
