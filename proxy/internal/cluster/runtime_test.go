package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
)

// keys are runtime keys with numbers.
type keys map[string]float64

func (k keys) Len() int { return len(k) }

func (k keys) Uint(key string, def uint64) uint64 {
	if v, ok := k[key]; ok {
		return uint64(v)
	}
	return def
}

func (k keys) Double(key string, def float64) float64 {
	if v, ok := k[key]; ok {
		return v
	}
	return def
}

func (keys) Fraction(_ string, n, d uint64) (uint64, uint64) { return n, d }

// TestRetryBudgetOfRuntime gives retry budgets by runtime keys. That either key alone makes one, and what it is then, is what Envoy 1.40
// shows as max_retries at /clusters.
func TestRetryBudgetOfRuntime(t *testing.T) {
	type budget struct {
		Has     bool
		Percent float64
		Least   uint32
	}
	const configured = ", circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 10}, min_retry_concurrency: 8}}]}"
	for name, x := range map[string]struct {
		config string
		keys   keys
		want   budget
	}{
		"nothing":             {keys: keys{"circuit_breakers.b.default.retry_budget.min_retry_concurrency": 7}},
		"least":               {keys: keys{"circuit_breakers.a.default.retry_budget.min_retry_concurrency": 7}, want: budget{true, 20, 7}},
		"percent":             {keys: keys{"circuit_breakers.a.default.retry_budget.budget_percent": 50.5}, want: budget{true, 50.5, 3}},
		"of another priority": {keys: keys{"circuit_breakers.a.high.retry_budget.budget_percent": 50}},
		"in place of one":     {configured, keys{"circuit_breakers.a.default.retry_budget.budget_percent": 0}, budget{true, 0, 8}},
		"beside one":          {configured, keys{"x": 1}, budget{true, 10, 8}},
	} {
		r := newRig(t, 1)
		r.deps.Runtime = x.keys
		c, err := cluster.Build(parse(t, "{name: a"+x.config+"}"), r.deps)
		if err != nil {
			t.Fatal(err)
		}
		l := c.Resources(0).Limits()
		if diff := cmp.Diff(x.want, budget{l.HasBudget, l.BudgetPercent, l.MinRetries}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
