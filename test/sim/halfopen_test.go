package sim_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// Upstreams close connections just when they are used again. What is sent again then has not been seen before: upstreams notice a
// request that comes twice.
func TestClosedWhileUsed(t *testing.T) {
	seen := map[string]uint64{}
	games(t, 80, simtest.Proxy(config(simtest.HTTP1), 2), simtest.Options{Weather: simtest.Stormy, Clients: 8, Requests: 8, Stats: seen})
	happened(t, seen, "cluster.b.dragoman.resent", "cluster.b.dragoman.lost.unacknowledged", "cluster.b.dragoman.lost.acknowledged")
}
