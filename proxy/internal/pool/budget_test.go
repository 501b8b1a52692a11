package pool_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// A budget is of what is under way, or with an interval of what has begun within it.
func TestRetryBudget(t *testing.T) {
	limits := pool.DefaultLimits
	limits.HasBudget, limits.BudgetPercent, limits.MinRetries = true, 25, 1
	b := pool.NewBreakers(&limits)
	want := func(now time.Duration, n int64) {
		t.Helper()
		if got := b.Retries.Max(int64(now)); got != n {
			t.Errorf("after %v %d retries are allowed, want %d", now, got, n)
		}
	}
	want(0, 1)
	for range 12 {
		b.Requests.Force()
		b.Began(0)
	}
	b.Pending.Force()
	want(0, 3)
	for i := range 4 {
		if got := b.Retries.TryAcquire(0); got != (i < 3) {
			t.Errorf("retry %d: %v", i, got)
		}
	}

	limits.BudgetInterval = time.Second
	b = pool.NewBreakers(&limits)
	b.Requests.Force() // what is under way is nothing to it
	want(0, 1)
	for i := range 40 {
		b.Began(int64(i) * int64(50*time.Millisecond)) // 20 a second
	}
	want(1950*time.Millisecond, 5)
	want(2450*time.Millisecond, 2)
	want(2950*time.Millisecond+time.Second/32, 1)
	want(time.Hour, 1)
}

// The count is that of a list of all times, but for a slot.
func TestBudgetInterval(t *testing.T) {
	for _, interval := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second} {
		limits := pool.DefaultLimits
		limits.HasBudget, limits.BudgetPercent, limits.MinRetries, limits.BudgetInterval = true, 100, 0, interval
		b := pool.NewBreakers(&limits)
		slot := max(interval/64, time.Millisecond)
		r := rand.New(rand.NewPCG(1, uint64(interval)))
		var times []time.Duration
		now := time.Duration(0)
		for range 3000 {
			now += time.Duration(r.Int64N(int64(interval) / 8))
			times = append(times, now)
			b.Began(int64(now))
			least, most := int64(0), int64(0)
			for i := len(times) - 1; i >= 0 && now-times[i] <= interval+slot; i-- {
				most++
				if now-times[i] < interval-slot {
					least++
				}
			}
			if n := b.Retries.Max(int64(now)); n < max(least, 1) || n > most {
				t.Fatalf("%v after %v: %d, want %d to %d", interval, now, n, least, most)
			}
		}
	}
}

func TestBudgetOfThreads(t *testing.T) {
	limits := pool.DefaultLimits
	limits.HasBudget, limits.BudgetPercent, limits.BudgetInterval = true, 100, time.Hour
	b := pool.NewBreakers(&limits)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10000 {
				b.Began(int64(time.Minute))
			}
		})
	}
	all.Wait()
	if n := b.Retries.Max(int64(time.Minute)); n != 40000 {
		t.Errorf("%d requests have begun, want 40000", n)
	}
}
