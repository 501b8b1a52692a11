package lb

// Without computes the shares of the priorities into l when those of skip get nothing, each of the others as much as its hosts can bear.
// It is false, and l is not changed, if none of them has hosts to be used. skip is as long as the table has priorities.
func (t *Table) Without(l *Loads, skip []bool) bool {
	n := len(t.Sets)
	avail := make([]uint32, 2*n)
	healthy, degraded := avail[:n:n], avail[n:]
	total := uint32(0)
	for i := range t.Sets {
		if !skip[i] {
			healthy[i], degraded[i] = t.Sets[i].availability()
			total = min(100, total+healthy[i]+degraded[i])
		}
	}
	if total == 0 {
		return false
	}
	shares := make([]uint32, 2*n)
	l.Healthy, l.Degraded = shares[:n:n], shares[n:]
	// Rounding leaves something, which goes to the first that can bear it.
	for rest := uint32(100); rest > 0; {
		rest = add(l.Healthy, healthy, rest, total)
		rest = add(l.Degraded, degraded, rest, total)
	}
	return true
}

// add gives each priority as much of load as it can bear, and returns what is left.
func add(shares, avail []uint32, load, total uint32) uint32 {
	for i, a := range avail {
		n := min(load, a*100/total)
		shares[i] += n
		load -= n
	}
	return load
}
