// Package mutant changes configurations in the ways in which people get them wrong: fields that are left out, values of another
// type, numbers out of range, names that are misspelt or taken twice. The same seed makes the same mutants.
package mutant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// Read parses a bootstrap in YAML or JSON to plain values. Numbers are json.Numbers.
func Read(data []byte) (any, error) {
	t, err := yamlpos.ParseYAML("", data)
	if err != nil {
		return nil, err
	}
	return plain(t, t.Root()), nil
}

func plain(t *yamlpos.Tree, n yamlpos.Node) any {
	switch t.Kind(n) {
	case yamlpos.Map:
		m := map[string]any{}
		for c := t.First(n); c < t.End(n); c = t.End(c) {
			m[string(t.Key(c))] = plain(t, c)
		}
		return m
	case yamlpos.Seq:
		l := []any{}
		for c := t.First(n); c < t.End(n); c = t.End(c) {
			l = append(l, plain(t, c))
		}
		return l
	case yamlpos.Bool:
		return t.Bool(n)
	case yamlpos.Number:
		return json.Number(t.Text(n))
	case yamlpos.String:
		return string(t.Text(n))
	}
	return nil
}

// Write prints plain values as JSON, a field a line, so that places in it mean something.
func Write(v any) []byte {
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return nil // plain values always have a JSON form, but for numbers that JSON has not
	}
	return out
}

// place is a value in the tree and how to replace it.
type place struct {
	key   string // of a map
	value any
	set   func(v any)
	drop  func()
	list  []any // the list that it is in, and
	index int   // its index there; key is "" then
	in    map[string]any
	grow  func(list []any)
}

// Mutate returns a changed copy of v and says what was changed.
func Mutate(v any, r *rand.Rand) (changed any, what string) {
	text := Write(v)
	for range 100 {
		tree, err := Read(text)
		if err != nil {
			return v, "nothing"
		}
		var all []place
		collect(tree, "", func(any) {}, &all)
		if len(all) == 0 {
			return tree, "nothing to change"
		}
		p := all[r.IntN(len(all))]
		name := p.key
		if name == "" {
			name = fmt.Sprintf("[%d]", p.index)
		}
		op := operations[r.IntN(len(operations))]
		if what := op(p, all, r); what != "" && !bytes.Equal(Write(tree), text) {
			return tree, name + ": " + what
		}
	}
	return v, "nothing"
}

// collect lists all values below v in a fixed order.
func collect(v any, _ string, grow func(any), out *[]place) {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			set := func(v any) { x[k] = v }
			*out = append(*out, place{key: k, value: x[k], set: set, drop: func() { delete(x, k) }, in: x})
			collect(x[k], k, set, out)
		}
	case []any:
		for i := range x {
			set := func(v any) { x[i] = v }
			*out = append(*out, place{value: x[i], set: set, list: x, index: i, grow: func(l []any) { grow(l) },
				drop: func() { grow(slices.Delete(slices.Clone(x), i, i+1)) }})
			collect(x[i], "", set, out)
		}
	}
}

// operations make one mistake each; "" means that it cannot be made there.
var operations = []func(p place, all []place, r *rand.Rand) string{
	leaveOut, leaveOut, otherType, outOfRange, outOfRange, misspellKey, misspellWord, twice, takeOther, empty, reorder, badText,
}

func leaveOut(p place, _ []place, _ *rand.Rand) string {
	p.drop()
	return "left out"
}

func otherType(p place, _ []place, r *rand.Rand) string {
	v := []any{true, json.Number("7"), "text", []any{}, map[string]any{}, []any{"text"}, map[string]any{"a": "b"}, nil}[r.IntN(8)]
	p.set(v)
	return fmt.Sprintf("is now %v", short(v))
}

func outOfRange(p place, _ []place, r *rand.Rand) string {
	if s, ok := p.value.(string); ok && strings.HasSuffix(s, "s") && len(s) > 1 && s[0] >= '0' && s[0] <= '9' {
		v := []string{"-1s", "0s", "0.0001s", "1.5", "1m", "315576000001s", "s", "9223372036s"}[r.IntN(8)]
		p.set(v)
		return "is now " + v
	}
	if _, ok := p.value.(json.Number); !ok {
		return ""
	}
	v := []string{"-1", "0", "1", "65536", "2147483648", "4294967296", "1.5", "1e3", "99999999999999999999", "600", "101"}[r.IntN(11)]
	p.set(json.Number(v))
	return "is now " + v
}

func misspellKey(p place, _ []place, r *rand.Rand) string {
	if p.in == nil || len(p.key) < 3 || p.key[0] == '@' {
		return ""
	}
	k := misspell(p.key, r)
	if _, taken := p.in[k]; taken {
		return ""
	}
	delete(p.in, p.key)
	p.in[k] = p.value
	return "is now called " + k
}

func misspellWord(p place, _ []place, r *rand.Rand) string {
	s, ok := p.value.(string)
	if !ok || len(s) < 3 {
		return ""
	}
	v := misspell(s, r)
	if r.IntN(4) == 0 {
		v = strings.ToLower(s)
	}
	p.set(v)
	return "is now " + v
}

func misspell(s string, r *rand.Rand) string {
	i := 1 + r.IntN(len(s)-1)
	switch b := []byte(s); r.IntN(3) {
	case 0:
		b[i-1], b[i] = b[i], b[i-1]
		return strings.ToValidUTF8(string(b), "x")
	case 1:
		return strings.ToValidUTF8(s[:i]+s[i+1:], "x")
	}
	return strings.ToValidUTF8(s[:i]+"x"+s[i:], "x")
}

func twice(p place, _ []place, _ *rand.Rand) string {
	if p.list == nil {
		return ""
	}
	p.grow(slices.Insert(slices.Clone(p.list), p.index, p.value))
	return "stands twice"
}

// takeOther gives a value that another field of the same name has: names that are taken, clusters that are others.
func takeOther(p place, all []place, r *rand.Rand) string {
	if p.in == nil {
		return ""
	}
	var same []place
	for _, o := range all {
		if o.key == p.key {
			same = append(same, o)
		}
	}
	o := same[r.IntN(len(same))]
	p.set(clone(o.value))
	return "is now " + short(o.value)
}

func empty(p place, _ []place, _ *rand.Rand) string {
	switch p.value.(type) {
	case string:
		p.set("")
	case []any:
		p.set([]any{})
	case map[string]any:
		p.set(map[string]any{})
	default:
		p.set(nil)
	}
	return "is now empty"
}

func reorder(p place, _ []place, _ *rand.Rand) string {
	if len(p.list) < 2 {
		return ""
	}
	l := slices.Clone(p.list)
	slices.Reverse(l)
	p.grow(l)
	return "and its neighbours are in the other order"
}

func badText(p place, _ []place, r *rand.Rand) string {
	if _, ok := p.value.(string); !ok {
		return ""
	}
	v := []string{"(", "*", "a b", "%BOGUS%", "%REQ(", "\n", "0.0.0.0", "::1", "/proc/nowhere", strings.Repeat("a", 300), "[", "GET", "x=y;", "%", "\u00e9"}[r.IntN(15)]
	p.set(v)
	return "is now " + short(v)
}

func clone(v any) any {
	out, err := Read(Write(v))
	if err != nil {
		return nil
	}
	return out
}

func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil || len(b) > 60 {
		return "something else"
	}
	return string(b)
}
