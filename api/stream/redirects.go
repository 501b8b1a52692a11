package stream

// Redirects is what the internal redirects of a request have left behind: it goes along when the request starts anew.
type Redirects struct {
	// N counts them.
	N uint32
	// Taken are the pairs of routes, by name, that the request was redirected from and to, as far as a predicate asks for them.
	Taken [][2]string
}

// Take notes a redirect from one route to another. false: it was taken before.
func (r *Redirects) Take(from, to string) bool {
	for _, t := range r.Taken {
		if t == [2]string{from, to} {
			return false
		}
	}
	r.Taken = append(r.Taken, [2]string{from, to})
	return true
}
