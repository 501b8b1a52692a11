package bench

import (
	"unsafe"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Held returns the sizes in bytes of the objects that are made one by one for a stream that lives long, its connections and what finds
// them, and for a cluster that has changed. The rest of a stream is made in blocks.
func Held() map[string]uintptr {
	return map[string]uintptr{
		"a downstream connection":         listener.SessionSize,
		"its HTTP connection manager":     unsafe.Sizeof(hcm.Conn{}),
		"an upstream connection":          unsafe.Sizeof(pool.Conn{}),
		"a cluster":                       unsafe.Sizeof(cluster.Cluster{}),
		"a table of hosts":                lb.SingleSize,
		"a host":                          unsafe.Sizeof(host.Host{}),
		"a pool of such":                  unsafe.Sizeof(pool.Pool{}),
		"a block of streams and the like": 8 << 10,
	}
}
