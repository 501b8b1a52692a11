package cluster

import "github.com/dragoman-proxy/dragoman/proxy/internal/pool"

// Unbound returns how many slots without a cluster are known.
func (m *Manager) Unbound() int { return len(m.unbound) }

// Shares tells whether clusters with these options share them.
func Shares(a, b pool.Options) bool {
	var s interned
	return s.pool(&poolOptions{Options: a}) == s.pool(&poolOptions{Options: b})
}

// RetriesOf returns the breaker of retries of default priority.
func RetriesOf(c *Cluster) *pool.RetryResource {
	return &c.settings.Breakers(pool.DefaultPriority).Retries
}
