package cluster

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Runtime answers runtime keys. It is asked on the main loop.
type Runtime interface {
	// Len is the number of keys.
	Len() int
	Uint(key string, def uint64) uint64
	Double(key string, def float64) float64
	Fraction(key string, numerator, denominator uint64) (n, d uint64)
}

// MaintenanceKey is what keys of maintenance mode begin with; the name of a cluster follows.
const MaintenanceKey = "upstream.maintenance_mode."

// RuntimeChanged takes over what runtime keys say of clusters that exist already, which is maintenance mode; limits and thresholds
// hold from the next configuration of a cluster on. names are the clusters that have a key now.
func (m *Manager) RuntimeChanged(names []string) {
	for _, n := range append(m.maintained, names...) {
		if s := m.index.find(n); s != nil && s.active != nil {
			s.active.c.fromRuntime(m.d.Runtime)
		}
	}
	m.maintained = names
	m.zonesChanged()
}

// fromRuntime reads upstream.maintenance_mode.<cluster>.
func (c *Cluster) fromRuntime(r Runtime) {
	if r == nil || r.Len() == 0 {
		c.SetMaintenance(0)
		return
	}
	n, d := r.Fraction(MaintenanceKey+c.name, 0, 100)
	c.SetMaintenance(uint32(min(n, d) * 10000 / d))
}

// panicThreshold is the threshold in percent, which a runtime key may replace.
func panicThreshold(r Runtime, percent float64) float64 {
	const unset = 1 << 32
	if r != nil {
		if n := r.Uint("upstream.healthy_panic_threshold", unset); n != unset {
			return float64(min(n, 100))
		}
	}
	return percent
}

// limitsFromRuntime replaces the breakers' limits by circuit_breakers.<cluster>.<priority>.<limit>.
func limitsFromRuntime(r Runtime, name string, limits *[pool.NumPriorities]pool.Limits) {
	if r == nil || r.Len() == 0 {
		return
	}
	for p := range limits {
		l := &limits[p]
		prefix := "circuit_breakers." + name + "." + pool.Priority(p).String() + "."
		for _, x := range []struct {
			key string
			to  *uint32
		}{{"max_connections", &l.MaxConnections}, {"max_pending_requests", &l.MaxPending}, {"max_requests", &l.MaxRequests},
			{"max_retries", &l.MaxRetries}, {"max_connection_pools", &l.MaxPools}} {
			*x.to = uint32(min(r.Uint(prefix+x.key, uint64(*x.to)), pool.Unlimited))
		}
		budgetFromRuntime(r, prefix+"retry_budget.", l)
	}
}

// budgetFromRuntime replaces parts of a retry budget. Either key alone makes one, with the default of the other.
func budgetFromRuntime(r Runtime, prefix string, l *pool.Limits) {
	const unset = 1 << 32
	percent, least := r.Double(prefix+"budget_percent", -1), r.Uint(prefix+"min_retry_concurrency", unset)
	if percent < 0 && least == unset {
		return
	}
	if !l.HasBudget {
		l.HasBudget, l.BudgetPercent, l.MinRetries = true, defaultBudgetPercent, defaultMinRetries
	}
	if percent >= 0 {
		l.BudgetPercent = percent
	}
	if least != unset {
		l.MinRetries = uint32(min(least, pool.Unlimited))
	}
}
