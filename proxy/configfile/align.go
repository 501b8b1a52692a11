package configfile

import (
	"fmt"
	"slices"
	"strings"
)

// pair is an element of two lists that belongs together; one side is nil if the other list does not have it.
type pair struct {
	a, b  *Value
	i, j  int  // where they stand, -1 for nil
	moved bool // the order of the pairs is not that of the lists
}

// align pairs the elements of two lists by what id says, in the order of the second list, what is gone before what is new. Elements
// with equal ids are paired in order.
func align(a, b []*Value, id func(*Value) string) []pair {
	places := map[string][]int{}
	for i, x := range a {
		k := id(x)
		places[k] = append(places[k], i)
	}
	pairs := make([]pair, 0, len(b))
	var order []int // places in a of those that have a partner, in the order of b
	taken := make([]bool, len(a))
	for j, y := range b {
		p := pair{b: y, i: -1, j: j}
		if list := places[id(y)]; len(list) > 0 {
			p.i, p.a = list[0], a[list[0]]
			places[id(y)] = list[1:]
			taken[p.i] = true
			order = append(order, p.i)
		}
		pairs = append(pairs, p)
	}
	stay := longestRise(order)
	for k := range pairs {
		if pairs[k].i >= 0 {
			pairs[k].moved = !stay[pairs[k].i]
		}
	}
	var gone []pair
	for i, x := range a {
		if !taken[i] {
			gone = append(gone, pair{a: x, i: i, j: -1})
		}
	}
	return append(gone, pairs...)
}

// longestRise returns the members of a longest rising subsequence: what kept its order.
func longestRise(list []int) map[int]bool {
	var tails []int // places in list
	prev := make([]int, len(list))
	for i, x := range list {
		k, _ := slices.BinarySearchFunc(tails, x, func(t, x int) int { return list[t] - x })
		if prev[i] = -1; k > 0 {
			prev[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	stay := map[int]bool{}
	if len(tails) > 0 {
		for i := tails[len(tails)-1]; i >= 0; i = prev[i] {
			stay[list[i]] = true
		}
	}
	return stay
}

// fields appends what differs between two values at path.
func fields(list []Field, path string, x, y *Value) []Field {
	switch {
	case equal(x, y):
		return list
	case x == nil || y == nil || x.Kind != y.Kind || x.Kind < Map:
		f := Field{Path: path}
		if x != nil {
			f.Old = short(x)
		}
		if y != nil {
			f.New = short(y)
		}
		return append(list, f)
	case x.Kind == Map:
		for _, k := range keysOf(x, y) {
			list = fields(list, below(path, k), x.Get(k), y.Get(k))
		}
		return list
	}
	return elements(list, path, x.Items, y.Items)
}

func below(path, key string) string {
	if strings.ContainsAny(key, ".[ ") || key == "" {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// elements compares lists: by names, if all elements have one of their own, else by what is equal and by places.
func elements(list []Field, path string, a, b []*Value) []Field {
	if id := identity(a, b); id != nil {
		for _, p := range align(a, b, id) {
			at := path + "["
			if p.b != nil {
				at += id(p.b) + "]"
			} else {
				at += id(p.a) + "]"
			}
			if p.moved && equal(p.a, p.b) {
				list = append(list, Field{Path: at, Old: fmt.Sprintf("place %d", p.i), New: fmt.Sprintf("place %d", p.j)})
				continue
			}
			list = fields(list, at, p.a, p.b)
		}
		return list
	}
	for len(a) > 0 && len(b) > 0 && equal(a[len(a)-1], b[len(b)-1]) && len(a) != len(b) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for i := range max(len(a), len(b)) {
		var x, y *Value
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		list = fields(list, fmt.Sprintf("%s[%d]", path, i), x, y)
	}
	return list
}

// identity returns what tells the elements of two lists apart, nil if nothing does.
func identity(a, b []*Value) func(*Value) string {
	for _, id := range []func(*Value) string{clusterName, hostName, func(v *Value) string {
		if v.Kind == String {
			return v.Text
		}
		return ""
	}} {
		if distinct(a, id) && distinct(b, id) {
			return id
		}
	}
	return nil
}

// hostName is what tells an endpoint.
func hostName(v *Value) string {
	if a := v.At("endpoint", "address"); a != nil {
		return address(a)
	}
	return ""
}

func distinct(list []*Value, id func(*Value) string) bool {
	seen := map[string]bool{}
	for _, v := range list {
		n := id(v)
		if n == "" || seen[n] {
			return false
		}
		seen[n] = true
	}
	return true
}

// shortLength is how many bytes of a value are shown.
const shortLength = 160

// short prints a value in one line.
func short(v *Value) string {
	s := v.Text
	switch {
	case hostName(v) != "" && len(v.Keys) == 1 && len(v.Get("endpoint").Keys) == 1: // an endpoint with nothing but its address
		return hostName(v)
	case v.Kind == String && !isPlain(v.Text) || v.Kind >= Map || v.Kind == Null:
		s = v.compact()
	}
	if len(s) > shortLength {
		s = strings.ToValidUTF8(s[:shortLength], "") + "..."
	}
	return s
}
