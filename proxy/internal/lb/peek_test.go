package lb_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

// What was peeked at is what the next picks give, in its order.
func TestPeek(t *testing.T) {
	for _, c := range []struct {
		policy lb.Policy
		peeks  int // of four hosts, of which one is not healthy
	}{{lb.RoundRobin{}, 3}, {lb.Random{}, 3}, {lb.LeastRequest{Choices: 2}, 0}} {
		for _, weights := range [][]uint32{{1, 1, 1, 1}, {1, 5, 2, 9}} {
			tb, w := table(c.policy, hosts(weights, 0, host.FailedActiveHC)), worker(1)
			var l lb.Local
			var ahead []*host.Host
			for {
				h := tb.Peek(&l, &lb.Context{W: w})
				if h == nil {
					break
				}
				ahead = append(ahead, h)
			}
			if len(ahead) != c.peeks {
				t.Fatalf("%T %v: %d peeks, want %d", c.policy, weights, len(ahead), c.peeks)
			}
			for i, want := range ahead {
				if got, _ := tb.Pick(&l, &lb.Context{W: w}); got != want {
					t.Errorf("%T %v: pick %d is %s, want %s", c.policy, weights, i, got.Hostname, want.Hostname)
				}
			}
			if len(ahead) == 0 {
				continue
			}
			// A host to be avoided is not given although it was peeked at, and other tables know nothing of it.
			next := tb.Peek(&l, &lb.Context{W: w})
			if got, _ := tb.Pick(&l, &lb.Context{W: w, Exclude: []*host.Host{next}, Attempts: 100}); got == next {
				t.Errorf("%T %v: the pick gives an excluded host", c.policy, weights)
			}
			tb.Peek(&l, &lb.Context{W: w})
			if got, _ := table(c.policy, hosts([]uint32{1})).Pick(&l, &lb.Context{W: w}); got.Hostname != "h0" {
				t.Errorf("%T: another table gives %s", c.policy, got.Hostname)
			}
		}
	}
}
