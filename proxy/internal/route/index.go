package route

import (
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// pathIndex finds the candidates of a virtual host by path without trying every route: one lookup for exact paths, and one walk for all
// prefixes. Each path and each prefix has the list of all routes that are possible below it, in the order of the configuration, so that
// the first match wins as if all had been tried. A list ends with the first route that asks for nothing more.
type pathIndex struct {
	exact map[string][]int32
	trie  *match.Trie[[]int32]
	// fold: some route does not care about case, and all keys are lower-case.
	fold bool
	// longest is the length of the longest key.
	longest int
}

// indexFrom is the number of routes from which an index is worth it.
const indexFrom = 8

// maxIndex bounds the length of all lists of an index. Only many prefixes of each other with conditions come near; such a virtual host
// is searched in order.
const maxIndex = 64

func newPathIndex(routes []*Entry) *pathIndex {
	if len(routes) < indexFrom {
		return nil
	}
	x := &pathIndex{exact: map[string][]int32{}}
	for _, e := range routes {
		x.fold = x.fold || e.match.path.fold
	}
	var prefixes match.TrieBuilder[[]int32]
	prefixes.Set("", nil)
	for i, e := range routes {
		key, exact := e.match.path.key()
		if x.fold {
			key = strings.ToLower(key)
		}
		x.longest = max(x.longest, len(key))
		if exact {
			x.exact[key] = append(x.exact[key], int32(i))
			continue
		}
		l, _ := prefixes.Get(key)
		prefixes.Set(key, append(l, int32(i)))
	}
	limit := maxIndex * (len(routes) + 16)
	// Each prefix comes behind those that it begins with.
	var open []string
	for _, k := range prefixes.Keys() {
		for len(open) > 0 && !strings.HasPrefix(k, open[len(open)-1]) {
			open = open[:len(open)-1]
		}
		own, _ := prefixes.Get(k)
		if len(open) > 0 {
			shorter, _ := prefixes.Get(open[len(open)-1])
			own = x.merge(routes, own, shorter, false)
			prefixes.Set(k, own)
		} else {
			prefixes.Set(k, x.merge(routes, own, nil, false))
		}
		if limit -= len(own); limit < 0 {
			return nil
		}
		open = append(open, k)
	}
	x.trie = prefixes.Build()
	for k, own := range x.exact {
		below, _ := x.trie.Longest(k, len(k))
		l := x.merge(routes, own, below, true)
		if limit -= len(l); limit < 0 {
			return nil
		}
		x.exact[k] = l
	}
	return x
}

// merge puts two ordered lists together, up to a route that takes everything that comes to the list.
func (x *pathIndex) merge(routes []*Entry, a, b []int32, exact bool) []int32 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	for i, n := range out {
		m := &routes[n].match
		sure := m.path.kind == pathPrefix || exact && m.path.kind == pathExact
		if sure && (m.path.fold || !x.fold) && m.pathOnly() {
			out = out[:i+1]
			break
		}
	}
	return slices.Clip(out)
}

// key is what a path must begin with, or be.
func (m *pathMatch) key() (key string, exact bool) {
	switch m.kind {
	case pathExact:
		return m.text, true
	case pathPrefix, pathSeparated:
		return m.text, false
	case pathRegex, pathTemplate:
		return m.literal, false
	}
	return "", false
}

func (x *pathIndex) match(v *VirtualHost, r *Request, path, query string) *Entry {
	for _, n := range x.candidates(path) {
		e := v.routes[n]
		if e.match.path.matches(path) && e.match.rest(r, query) {
			return e.resolve(r)
		}
	}
	return nil
}

// candidates are the routes that a path may take.
func (x *pathIndex) candidates(path string) []int32 {
	if !x.fold {
		if l := x.exact[path]; l != nil {
			return l
		}
		l, _ := x.trie.Longest(path, len(path))
		return l
	}
	// One byte more than any key tells a longer path from one that is a key.
	var scratch [256]byte
	b := lower(path[:min(len(path), x.longest+1)], scratch[:0])
	if l := x.exact[string(b)]; l != nil {
		return l
	}
	l, _ := x.trie.Longest(view(b), len(b))
	return l
}
