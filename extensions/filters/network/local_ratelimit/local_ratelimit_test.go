package local_ratelimit_test

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/local_ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/local_ratelimit"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func TestLimit(t *testing.T) {
	two := &typev3.TokenBucket{MaxTokens: 2, TokensPerFill: wrapperspb.UInt32(2), FillInterval: durationpb.New(2 * time.Second)}
	off := &corev3.RuntimeFeatureFlag{RuntimeKey: "k", DefaultValue: wrapperspb.Bool(false)}
	for name, c := range map[string]struct {
		cfg *limitv3.LocalRateLimit
		// script: c is a connection that is let through, x one that is not; digits let as many tenths of a second pass.
		script string
	}{
		"full at first":       {&limitv3.LocalRateLimit{TokenBucket: two}, "ccxx"},
		"fills all the time":  {&limitv3.LocalRateLimit{TokenBucket: two}, "ccx9x1cx91cx"},
		"no more than it has": {&limitv3.LocalRateLimit{TokenBucket: two}, "cc999999ccx"},
		"one per fill": {&limitv3.LocalRateLimit{TokenBucket: &typev3.TokenBucket{MaxTokens: 3, FillInterval: durationpb.New(time.Second)}},
			"cccx9x1cx"},
		"off": {&limitv3.LocalRateLimit{TokenBucket: two, RuntimeEnabled: off}, "cccccc"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := filtertest.NewContext()
			c.cfg.StatPrefix = "p"
			mk, err := local_ratelimit.Extension.New(c.cfg, ctx)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, step := range c.script {
				if step >= '0' && step <= '9' {
					ctx.Advance(time.Duration(step-'0') * 100 * time.Millisecond)
					got += string(step)
					continue
				}
				n := ctx.ConnectWith(mk, network.ConnInfo{})
				n.Receive("x", false)
				switch {
				case n.Closed == "" && n.Passed == "x":
					got += "c"
				case strings.Contains(n.Closed, "local_ratelimit_close_over_limit") && n.Passed == "":
					got += "x"
				default:
					got += "?"
				}
			}
			if got != c.script {
				t.Errorf("got %s, want %s", got, c.script)
			}
			want := map[string]uint64{}
			if n := strings.Count(c.script, "x"); n > 0 {
				want["local_rate_limit.p.rate_limited"] = uint64(n)
			}
			if d := cmp.Diff(want, ctx.Stats()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	for want, cfg := range map[string]*limitv3.LocalRateLimit{
		"local rate limit token bucket fill timer must be >= 50ms": {TokenBucket: &typev3.TokenBucket{MaxTokens: 1, FillInterval: durationpb.New(49 * time.Millisecond)}},
		"share_key: not supported yet":                             {ShareKey: "k"},
	} {
		if _, err := local_ratelimit.Extension.New(cfg, filtertest.NewContext()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
