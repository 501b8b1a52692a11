package cluster

import "github.com/dragoman-proxy/dragoman/proxy/internal/pool"

// Unbound returns how many slots without a cluster are known.
func (m *Manager) Unbound() int { return len(m.unbound) }

// RetriesOf returns the breaker of retries of default priority.
func RetriesOf(c *Cluster) *pool.RetryResource {
	return &c.settings.Breakers(pool.DefaultPriority).Retries
}
