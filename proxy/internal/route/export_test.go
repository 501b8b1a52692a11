package route

// Linear makes t try every route in order.
func Linear(t *Table) *Table {
	for _, v := range hosts(t) {
		v.index = nil
	}
	return t
}

// Indexed tells whether a virtual host of t has an index.
func Indexed(t *Table) bool {
	for _, v := range hosts(t) {
		if v.index != nil {
			return true
		}
	}
	return false
}

func hosts(t *Table) []*VirtualHost {
	out := []*VirtualHost{t.star}
	for _, v := range t.exact {
		out = append(out, v)
	}
	return out
}

// QueryParam is how a query parameter is found.
var QueryParam = queryParam

// ParseTemplate returns what a template matches, and what its variables are in it.
func ParseTemplate(s string) (match func(path string) (vars map[string]string, ok bool), err error) {
	t, err := parseTemplate(s)
	if err != nil {
		return nil, err
	}
	return func(path string) (map[string]string, bool) {
		m := t.re.FindStringSubmatch(path)
		if m == nil {
			return nil, false
		}
		vars := map[string]string{}
		for n, g := range t.vars {
			vars[n] = m[g]
		}
		return vars, true
	}, nil
}

// Tried is how many routes are tried for a request at most.
func Tried(t *Table, authority, path string) int {
	v := t.Host(authority)
	if v.index == nil {
		return len(v.routes)
	}
	return len(v.index.candidates(path))
}
