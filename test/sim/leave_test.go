package sim_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// A proxy that is told to go loses nothing that it has accepted, and whatever it leaves open is its own again.
func TestLeaving(t *testing.T) {
	for how, leave := range map[string]simtest.Leave{"drain": simtest.Drain, "stop listening": simtest.StopListening, "shutdown": simtest.Shutdown} {
		for p, name := range protocols {
			t.Run(how+", "+name, func(t *testing.T) {
				// What was sent behind a request that is answered with "connection: close" is lost (RFC 9112, section 9.3.2).
				o := simtest.Options{Protocol: p, Upstream: p, Pipeline: 1, Leave: leave, Clients: 4, Stats: map[string]uint64{}}
				games(t, 20, simtest.Proxy(config(p), 2), o)
				if leave != simtest.Shutdown {
					happened(t, o.Stats, "http.h1.downstream_cx_drain_close")
				}
				happened(t, o.Stats, "http.h1.downstream_rq_2xx")
			})
		}
	}
}
