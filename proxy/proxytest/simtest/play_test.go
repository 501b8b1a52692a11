package simtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

var protocols = map[string]simtest.Protocol{"http1": simtest.HTTP1, "http2": simtest.HTTP2, "tcp": simtest.TCP}

// seeds is how many games a test plays; DRAGOMAN_SIM_SEEDS says otherwise.
func seeds(t *testing.T, n uint64) uint64 {
	t.Helper()
	if s := os.Getenv("DRAGOMAN_SIM_SEEDS"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return n
}

// A proxy that is right passes in all weathers.
func TestRelayPasses(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds(t, 100) {
				if err := simtest.Play(seed, buildRelay(none), simtest.Options{Protocol: p, Upstream: p, Blind: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Each mistake is found within a thousand games.
func TestBugsAreFound(t *testing.T) {
	for _, b := range bugs {
		t.Run(string(b), func(t *testing.T) {
			for seed := range uint64(1000) {
				for _, p := range []simtest.Protocol{simtest.HTTP1, simtest.TCP, simtest.HTTP2} {
					if err := simtest.Play(seed, buildRelay(b), simtest.Options{Protocol: p, Upstream: p, Blind: true}); err != nil {
						t.Logf("found in game %d: %v", seed+1, err)
						return
					}
				}
			}
			t.Error("not found")
		})
	}
}

const childSeed = "DRAGOMAN_SIM_CHILD_SEED"

// A seed plays the same game in every process.
func TestGamesAreReproducible(t *testing.T) {
	play := func(seed uint64) string {
		var line strings.Builder
		for _, name := range []string{"http1", "http2", "tcp"} {
			hash, err := simtest.Hash(seed, buildConnRelay, simtest.Options{Protocol: protocols[name], Upstream: protocols[name], Weather: simtest.Stormy, Blind: true})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&line, "%s=%x;", name, hash)
		}
		return line.String()
	}
	if s := os.Getenv(childSeed); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(play(seed))
		return
	}
	seen := map[string]uint64{}
	for seed := range uint64(20) {
		h := play(seed)
		if again := play(seed); again != h {
			t.Errorf("seed %d: %s, then %s", seed, h, again)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("seeds %d and %d: both %s", seed, other, h)
		}
		seen[h] = seed
	}
	want := play(3)
	for i := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestGamesAreReproducible$", "-test.count=1")
		cmd.Env = append(os.Environ(), childSeed+"=3")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("process %d: %v, want %s in\n%s", i, err, want, out)
		}
	}
}
