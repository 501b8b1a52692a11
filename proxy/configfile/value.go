// Package configfile is for people who work with configuration files: it reads them, writes them in another form, formats
// them, fills in defaults, compares two of them in terms of listeners, routes and clusters, and expands a short form to a
// bootstrap.
//
// It owns the text and its meaning as data; it starts nothing and keeps nothing. All of it runs on the caller's goroutine. It is
// never used while a proxy serves, except to tell what a new version of a file changes.
package configfile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// Kind says what a Value is.
type Kind uint8

// The kinds. Number is a number of JSON or an integer of YAML; Text keeps it as it was written.
const (
	Null Kind = iota
	Bool
	Number
	String
	Map
	List
)

// Value is a node of a configuration: a scalar, a map in the order in which it was written, or a list.
type Value struct {
	Kind  Kind
	Text  string   // of a scalar; "true" or "false" of a Bool
	Keys  []string // of a Map, one for each of Items
	Items []*Value
	// Note is written as a comment behind a scalar, or in the line of the key of what is none.
	Note string

	orText bool // a number that is compared with YAML, which has text for some
}

// text returns a string.
func text(s string) *Value { return &Value{Kind: String, Text: s} }

// Get returns the value under key in a map, nil if there is none or v is no map.
func (v *Value) Get(key string) *Value {
	if v == nil || v.Kind != Map {
		return nil
	}
	if i := slices.Index(v.Keys, key); i >= 0 {
		return v.Items[i]
	}
	return nil
}

// At returns the value at a path of keys, nil if there is none.
func (v *Value) At(keys ...string) *Value {
	for _, k := range keys {
		v = v.Get(k)
	}
	return v
}

// Str returns the text of the scalar under key, "" if there is none.
func (v *Value) Str(key string) string {
	if x := v.Get(key); x != nil && x.Kind < Map {
		return x.Text
	}
	return ""
}

// List returns the items of the list under key; a single value stands for a list of one, as in Envoy's reader.
func (v *Value) List(key string) []*Value {
	x := v.Get(key)
	switch {
	case x == nil || x.Kind == Null:
		return nil
	case x.Kind == List:
		return x.Items
	}
	return []*Value{x}
}

// Set puts a value under a key of a map, in the place of the one that is there, or at the end.
func (v *Value) Set(key string, x *Value) {
	if i := slices.Index(v.Keys, key); i >= 0 {
		v.Items[i] = x
		return
	}
	v.Keys = append(v.Keys, key)
	v.Items = append(v.Items, x)
}

// Without returns a copy of a map that lacks some keys; what it holds is shared.
func (v *Value) Without(keys ...string) *Value {
	if v == nil || v.Kind != Map {
		return v
	}
	out := &Value{Kind: Map}
	for i, k := range v.Keys {
		if !slices.Contains(keys, k) {
			out.Set(k, v.Items[i])
		}
	}
	return out
}

// equal compares the data, not the notes. The order of a map's keys does not matter.
func equal(a, b *Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.orText && b.Kind == String {
		return isNumber(b.Text, a.Text)
	}
	if b.orText && a.Kind == String {
		return isNumber(a.Text, b.Text)
	}
	if a.Kind != b.Kind || a.Text != b.Text || len(a.Items) != len(b.Items) {
		return false
	}
	for i, x := range a.Items {
		y := b.Items[i]
		if a.Kind == Map && b.Keys[i] != a.Keys[i] {
			y = b.Get(a.Keys[i])
		}
		if !equal(x, y) {
			return false
		}
	}
	return true
}

// inYAML tells whether the text of a number is one in YAML, too, where any kind of value may stand: Envoy's reader takes integers of 32
// bits for numbers, and all others for text.
func inYAML(number string) bool {
	_, err := strconv.ParseInt(number, 10, 32)
	return err == nil
}

// isNumber tells whether a text is what YAML makes of a number.
func isNumber(text, number string) bool {
	if inYAML(text) {
		return false // it was in quotes
	}
	x, err := strconv.ParseFloat(text, 64)
	y, err2 := strconv.ParseFloat(number, 64)
	return err == nil && err2 == nil && x == y
}

// largeToText makes what YAML has as text what it is: a large integer would be a number in JSON.
func (v *Value) largeToText() {
	if v.Kind == Number && !inYAML(v.Text) {
		v.Kind = String
	}
	for _, x := range v.Items {
		x.largeToText()
	}
}

// numbersOrText marks the numbers below v: YAML may have them as text.
func (v *Value) numbersOrText() {
	v.orText = v.Kind == Number
	for _, x := range v.Items {
		x.numbersOrText()
	}
}

// fromTree copies a tree; the places are lost. Anchors have been expanded, and of equal keys the last holds.
func fromTree(t *yamlpos.Tree, n yamlpos.Node) *Value {
	switch t.Kind(n) {
	case yamlpos.Bool:
		if t.Bool(n) {
			return &Value{Kind: Bool, Text: "true"}
		}
		return &Value{Kind: Bool, Text: "false"}
	case yamlpos.Number:
		return &Value{Kind: Number, Text: string(t.Text(n))}
	case yamlpos.String:
		return text(string(t.Text(n)))
	case yamlpos.Seq:
		v := &Value{Kind: List, Items: make([]*Value, 0, t.Len(n))}
		for c := t.First(n); c < t.End(n); c = t.End(c) {
			v.Items = append(v.Items, fromTree(t, c))
		}
		return v
	case yamlpos.Map:
		v := &Value{Kind: Map}
		for c := t.First(n); c < t.End(n); c = t.End(c) {
			if k := string(t.Key(c)); t.Len(n) < 64 {
				v.Set(k, fromTree(t, c))
			} else { // a large map: looking for equal keys would take too long, and none is the rule
				v.Keys, v.Items = append(v.Keys, k), append(v.Items, fromTree(t, c))
			}
		}
		return v
	}
	return &Value{}
}

// snake rewrites the keys of maps from lowerCamelCase, which Envoy takes too, to the names of the protobufs. Maps whose keys
// are the user's own are left alone as far as they can be told: keys with other characters than letters and digits.
func snake(v *Value) {
	for i, k := range v.Keys {
		v.Keys[i] = snakeKey(k)
	}
	for _, x := range v.Items {
		snake(x)
	}
}

func snakeKey(k string) string {
	var b strings.Builder
	for i, r := range k {
		switch {
		case r >= 'A' && r <= 'Z' && i > 0:
			b.WriteByte('_')
			b.WriteRune(r + 'a' - 'A')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			return k
		}
	}
	return b.String()
}
