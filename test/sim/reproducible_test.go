package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

const childSeed = "DRAGOMAN_SIM_CHILD_SEED"

// A seed plays the same game with a whole proxy, in every process: nothing in it depends on the order of a map, the real time, an
// address in memory or another goroutine.
func TestReproducible(t *testing.T) {
	play := func(seed uint64) string {
		line := "hash="
		for _, p := range []simtest.Protocol{simtest.HTTP1, simtest.HTTP2} {
			o := simtest.Options{Protocol: p, Upstream: p, Weather: simtest.Stormy, Pipeline: 2}
			hash, err := simtest.Hash(seed, simtest.Proxy(config(p), 2), o)
			if err != nil {
				t.Error(err)
			}
			line += fmt.Sprintf("%x;", hash)
		}
		return line
	}
	if s := os.Getenv(childSeed); s != "" {
		fmt.Println(play(number(t, s)))
		return
	}
	for seed := range uint64(20) {
		if a, b := play(seed), play(seed); a != b {
			t.Errorf("SEED=%d: %s, then %s", seed, a, b)
		}
	}
	want := play(5)
	for i := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestReproducible$", "-test.count=1")
		cmd.Env = append(os.Environ(), childSeed+"=5")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("process %d: %v, want %s in\n%s", i, err, want, out)
		}
	}
}
