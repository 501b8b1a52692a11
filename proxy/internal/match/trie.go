package match

import "sort"

// Trie finds the longest of many prefixes of a text in one walk along it, however many there are. It is built once (see TrieBuilder)
// and immutable.
type Trie[T any] struct{ nodes []trieNode[T] }

// trieNode is a run of bytes below its parent. A node without a value is where prefixes part.
type trieNode[T any] struct {
	label string
	first string // the first bytes of the children's labels
	child int32  // the first child's place: children are side by side
	has   bool
	value T
}

// TrieBuilder collects prefixes.
type TrieBuilder[T any] struct {
	values map[string]T
}

// Set gives a prefix its value, in place of an earlier one.
func (b *TrieBuilder[T]) Set(prefix string, v T) {
	if b.values == nil {
		b.values = map[string]T{}
	}
	b.values[prefix] = v
}

// Get returns the value of a prefix that was set.
func (b *TrieBuilder[T]) Get(prefix string) (v T, ok bool) {
	v, ok = b.values[prefix]
	return v, ok
}

// Len is the number of prefixes.
func (b *TrieBuilder[T]) Len() int { return len(b.values) }

// Keys are the prefixes, in order: each comes after those that it begins with.
func (b *TrieBuilder[T]) Keys() []string {
	keys := make([]string, 0, len(b.values))
	for k := range b.values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// Build makes the trie, nil if there are no prefixes.
func (b *TrieBuilder[T]) Build() *Trie[T] {
	keys := b.Keys()
	if len(keys) == 0 {
		return nil
	}
	t := &Trie[T]{nodes: make([]trieNode[T], 1, 2*len(keys)+1)}
	t.fill(b, 0, keys, 0)
	return t
}

// fill makes node the root of all keys, which have their first depth bytes in common.
func (t *Trie[T]) fill(b *TrieBuilder[T], node int, keys []string, depth int) {
	if len(keys[0]) == depth {
		t.nodes[node].value, t.nodes[node].has = b.values[keys[0]], true
		keys = keys[1:]
	}
	var groups [][]string
	first := make([]byte, 0, 8)
	for len(keys) > 0 {
		c := keys[0][depth]
		n := 1
		for n < len(keys) && keys[n][depth] == c {
			n++
		}
		groups, first = append(groups, keys[:n]), append(first, c)
		keys = keys[n:]
	}
	at := len(t.nodes)
	t.nodes[node].first, t.nodes[node].child = string(first), int32(at)
	t.nodes = append(t.nodes, make([]trieNode[T], len(groups))...)
	for i, g := range groups {
		// The keys are in order: what the first and the last have in common, all have.
		end := common(g[0], g[len(g)-1])
		t.nodes[at+i].label = g[0][depth:end]
		t.fill(b, at+i, g, end)
	}
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Longest returns the value of the longest prefix of s that is at most limit bytes long.
func (t *Trie[T]) Longest(s string, limit int) (v T, ok bool) {
	if t == nil {
		return v, false
	}
	w := Walk[T]{trie: t, text: s}
	for w.Next() {
		if w.at > limit {
			break
		}
		v, ok = t.nodes[w.node].value, true
	}
	return v, ok
}

// Walk visits the prefixes of a text from the shortest to the longest.
type Walk[T any] struct {
	trie  *Trie[T]
	text  string
	node  int
	at    int
	begun bool
}

// Walk begins a walk along s.
func (t *Trie[T]) Walk(s string) Walk[T] { return Walk[T]{trie: t, text: s} }

// Next goes to the next longer prefix of the text; false: there is none.
func (w *Walk[T]) Next() bool {
	if w.trie == nil {
		return false
	}
	nodes := w.trie.nodes
	if !w.begun {
		w.begun = true
		if nodes[0].has {
			return true
		}
	}
	for w.at < len(w.text) {
		n := &nodes[w.node]
		i := indexByte(n.first, w.text[w.at])
		if i < 0 {
			return false
		}
		next := int(n.child) + i
		label := nodes[next].label
		if len(w.text)-w.at < len(label) || w.text[w.at:w.at+len(label)] != label {
			return false
		}
		w.node, w.at = next, w.at+len(label)
		if nodes[next].has {
			return true
		}
	}
	return false
}

// indexByte is strings.IndexByte for the few bytes that most nodes have.
func indexByte(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// Value is that of the current prefix.
func (w *Walk[T]) Value() T { return w.trie.nodes[w.node].value }

// Len is the length of the current prefix.
func (w *Walk[T]) Len() int { return w.at }
