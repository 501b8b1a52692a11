package cluster

// Unbound returns how many slots without a cluster are known.
func (m *Manager) Unbound() int { return len(m.unbound) }
