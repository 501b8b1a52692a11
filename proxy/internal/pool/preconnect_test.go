package pool_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Connections are opened ahead of the requests that need them.
func TestPreconnect(t *testing.T) {
	for name, c := range map[string]struct {
		ratio    float64
		limit    uint32
		flags    host.Flag
		requests int
		want     int
	}{
		"off":                     {0, 100, 0, 2, 2},
		"one is as off":           {1, 100, 0, 2, 2},
		"half as many again":      {1.5, 100, 0, 2, 3},
		"one of one and a half":   {1.5, 100, 0, 1, 2},
		"three for one":           {3, 100, 0, 1, 3},
		"at the limit":            {3, 5, 0, 2, 5},
		"degraded hosts get none": {3, 100, host.DegradedActiveHC, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				r.s.Preconnect = c.ratio
				r.s.Limits[0].MaxConnections = c.limit
				h := hostOf(server(t, reading).Listener.Addr())
				h.SetFlag(c.flags, c.flags != 0)
				p := r.pool(h, pool.HTTP1)
				var calls []*call
				for range c.requests {
					x := &call{r: r, method: "POST", path: "/", hold: true}
					x.start(p)
					calls = append(calls, x)
				}
				r.run("streams for all", func() bool {
					for _, x := range calls {
						if x.ready == 0 {
							return false
						}
					}
					return true
				})
				if n := p.Connections(); n != c.want {
					t.Errorf("%d connections, want %d", n, c.want)
				}
				for _, x := range calls {
					x.finish()
				}
				r.run("the answers", allDone(calls...))
				p.Drain()
				r.run("the end", p.Empty)
			})
		})
	}
}
