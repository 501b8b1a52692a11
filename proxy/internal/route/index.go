package route

// pathIndex finds the candidates of a virtual host by path without trying every route: exact paths by hash, prefixes by the
// lengths that occur. Candidates are tried in order of configuration, so that the first match wins as if all had been tried.
type pathIndex struct {
	exact map[string][]int32
	// prefixes[i] maps a prefix of length lengths[i] to its routes.
	lengths  []int
	prefixes []map[string][]int32
	others   []int32 // neither: always candidates
}

// indexFrom is the number of routes from which an index is worth it.
const indexFrom = 12

// maxPrefixLengths bounds the lengths that an index looks at; a virtual host with more is searched in order.
const maxPrefixLengths = 32

func newPathIndex(routes []*Entry) *pathIndex {
	if len(routes) < indexFrom {
		return nil
	}
	x := &pathIndex{exact: map[string][]int32{}}
	at := map[int]int{}
	for i, e := range routes {
		m := &e.match.path
		switch {
		case m.kind == pathExact && !m.fold:
			x.exact[m.text] = append(x.exact[m.text], int32(i))
		case (m.kind == pathPrefix || m.kind == pathSeparated) && !m.fold:
			k, ok := at[len(m.text)]
			if !ok {
				k = len(x.lengths)
				at[len(m.text)] = k
				x.lengths = append(x.lengths, len(m.text))
				x.prefixes = append(x.prefixes, map[string][]int32{})
			}
			x.prefixes[k][m.text] = append(x.prefixes[k][m.text], int32(i))
		default:
			x.others = append(x.others, int32(i))
		}
	}
	if len(x.lengths) > maxPrefixLengths {
		return nil
	}
	return x
}

func (x *pathIndex) match(v *VirtualHost, r *Request, path, query string) *Entry {
	var lists [maxPrefixLengths + 2][]int32
	n := 0
	if l := x.exact[path]; l != nil {
		lists[n] = l
		n++
	}
	for i, k := range x.lengths {
		if k <= len(path) {
			if l := x.prefixes[i][path[:k]]; l != nil {
				lists[n] = l
				n++
			}
		}
	}
	if len(x.others) > 0 {
		lists[n] = x.others
		n++
	}
	for {
		// The lists are sorted; take the smallest number of all.
		best, from := int32(-1), 0
		for i := 0; i < n; i++ {
			if len(lists[i]) > 0 && (best < 0 || lists[i][0] < best) {
				best, from = lists[i][0], i
			}
		}
		if best < 0 {
			return nil
		}
		lists[from] = lists[from][1:]
		e := v.routes[best]
		if e.match.path.matches(path) && e.match.rest(r, query) {
			return e.resolve(r)
		}
	}
}
