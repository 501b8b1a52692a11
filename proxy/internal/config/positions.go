package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// Positions knows where the fields of a loaded message stand in its file. It holds the file's bytes and tree: drop it
// when the message is built. A nil Positions knows nothing and is fine to use.
type Positions struct {
	trees []*yamlpos.Tree // in the order in which they were merged
	text  *textSource     // nil unless there is one
}

// PositionsIn are those of a message that was read from trees, in the order in which they were merged.
func PositionsIn(trees ...*yamlpos.Tree) *Positions { return &Positions{trees: trees} }

func (p *Positions) add(t *yamlpos.Tree) { p.trees = append(p.trees, t) }

// Lookup returns the place of the field at path, such as static_resources.clusters[3].lb_policy, or of its nearest
// ancestor that is written down. ok tells whether the field itself is.
func (p *Positions) Lookup(path string) (pos yamlpos.Pos, ok bool) {
	n, ok := p.node(path)
	if n.tree == nil {
		if p != nil && p.text != nil {
			return p.text.lookup(path)
		}
		return yamlpos.Pos{}, false
	}
	return n.tree.Pos(n.node), ok
}

// Error attaches the place of the field at path to an error that a later check found.
// What stands there is what was found, unless x says something else of it, or quotes it.
func (p *Positions) Error(path string, x Error) *Error {
	n, ok := p.node(path)
	x.Path = path
	if n.tree == nil {
		if pos, _ := p.Lookup(path); x.File == "" {
			x.File, x.Line, x.Col = pos.File, pos.Line, pos.Col
		}
		return &x
	}
	pos := n.tree.Pos(n.node)
	x.File, x.Line, x.Col = pos.File, pos.Line, pos.Col
	if name := n.emptied(ok, path, x.Allowed); name != "" {
		x.Advice, x.Suggestion = emptyVariable(name), ""
	}
	if k := n.tree.Kind(n.node); ok && x.Found == "" && (k == yamlpos.Bool || k == yamlpos.Number || k == yamlpos.String) {
		if text := n.tree.Text(n.node); len(text) == 0 || !strings.Contains(x.Msg, string(text)) {
			e := encoder{tree: n.tree}
			x.Found = e.found(n.node)
		}
	}
	return &x
}

// Attach gives the errors of a later check their places: the paths in err are relative to prefix. An error that is none
// of this package's gets the place of prefix itself.
func (p *Positions) Attach(prefix string, err error) error {
	return placed(err, func(x *Error) *Error { return p.Error(below(prefix, x.Path), *x) })
}

// AttachIn is Attach for a part of a file, to errors that have no place yet. If the places are not known any more, the file is.
func (p *Positions) AttachIn(file, prefix string, err error) error {
	return placed(err, func(x *Error) *Error {
		if x.File != "" {
			return x
		}
		at := p.Error(below(prefix, x.Path), *x)
		if at.File == "" {
			at.File = file
		}
		return at
	})
}

// placed puts each error that err holds through place; one that is none of this package's becomes one.
func placed(err error, place func(*Error) *Error) error {
	var one *Error
	var many *Errors
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		out := &Errors{More: many.More}
		for _, x := range many.List {
			out.List = append(out.List, place(x))
		}
		return out
	case errors.As(err, &one):
		return place(one)
	}
	return place(&Error{Msg: err.Error()})
}

func below(prefix, path string) string {
	if prefix == "" || path == "" || path[0] == '[' {
		return prefix + path
	}
	return prefix + "." + path
}

// node walks path through all sources at once, since each may hold a part of a merged message.
func (p *Positions) node(path string) (n treeNode, ok bool) {
	if p == nil || len(p.trees) == 0 {
		return treeNode{}, false
	}
	spots := make([]treeNode, 0, len(p.trees))
	for _, t := range p.trees {
		spots = append(spots, treeNode{t, t.Root()})
	}
	for path != "" {
		var next []treeNode
		var step string
		var isIndex bool
		step, isIndex, path = cutStep(path)
		if isIndex {
			next = elementOf(spots, step)
		} else {
			next = childOf(spots, step)
		}
		if len(next) == 0 {
			return spots[len(spots)-1], false
		}
		spots = next
	}
	return spots[len(spots)-1], true // what was merged last wins
}

type treeNode struct {
	tree *yamlpos.Tree
	node yamlpos.Node
}

// emptied is the variable whose empty value is why there is none at path, of which n is the node, or if !ok that of the message around;
// "" if there is no such. members are the fields that may stand at path, if it is that of a oneof.
func (s treeNode) emptied(ok bool, path, members string) string {
	if ok {
		return s.tree.Emptied(s.node)
	}
	if s.tree.Kind(s.node) != yamlpos.Map {
		return ""
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	for c := s.tree.First(s.node); c < s.tree.End(s.node); c = s.tree.End(c) {
		if name, key := s.tree.Emptied(c), s.tree.Key(c); name != "" && (sameField(key, last) || strings.Contains(members, string(key))) {
			return name
		}
	}
	return ""
}

func emptyVariable(name string) string { return "the variable " + name + " is empty" }

// read expands a value that was left unread; one that cannot be read stays as it is.
func (s treeNode) read() treeNode {
	if s.tree.Kind(s.node) == yamlpos.Raw {
		if t, err := s.tree.Expand(s.node, nil); err == nil {
			return treeNode{t, t.Root()}
		}
	}
	return s
}

// cutStep takes the first step off a path: a name up to '.' or '[', or an index or quoted key in brackets.
func cutStep(path string) (step string, index bool, rest string) {
	path = strings.TrimPrefix(path, ".")
	if !strings.HasPrefix(path, "[") {
		i := strings.IndexAny(path, ".[")
		if i < 0 {
			return path, false, ""
		}
		return path[:i], false, path[i:]
	}
	if quoted, err := strconv.QuotedPrefix(path[1:]); err == nil {
		step, _ = strconv.Unquote(quoted)
		return step, true, strings.TrimPrefix(path[1+len(quoted):], "]")
	}
	step, rest, _ = strings.Cut(path[1:], "]")
	return step, true, rest
}

func childOf(spots []treeNode, name string) []treeNode {
	var next []treeNode
	for _, s := range spots {
		if s = s.read(); s.tree.Kind(s.node) != yamlpos.Map {
			continue
		}
		for c := s.tree.First(s.node); c < s.tree.End(s.node); c = s.tree.End(c) {
			if sameField(s.tree.Key(c), name) {
				next = append(next, treeNode{s.tree, c})
			}
		}
	}
	return next
}

// elementOf follows an index through lists that were merged by appending, or a key of a map.
func elementOf(spots []treeNode, step string) []treeNode {
	i, err := strconv.Atoi(step)
	var next []treeNode
	for _, s := range spots {
		switch s = s.read(); s.tree.Kind(s.node) {
		case yamlpos.Map:
			if c, ok := s.tree.Child(s.node, step); ok {
				next = append(next, treeNode{s.tree, c})
				continue
			}
			if err == nil && i == 0 { // a map that stands for a list of one
				return []treeNode{s}
			}
			i--
		case yamlpos.Seq:
			if err != nil {
				continue
			}
			if c, ok := s.tree.Elem(s.node, i); ok {
				return []treeNode{{s.tree, c}}
			}
			i -= s.tree.Len(s.node)
		}
	}
	return next
}

// sameField compares a key in either spelling with a proto name.
func sameField(key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	i, j := 0, 0
	for i < len(key) && j < len(name) {
		c := name[j]
		if c == '_' {
			j++
			if j == len(name) {
				return false
			}
			if c = name[j]; isLower(c) {
				c -= 'a' - 'A'
			}
		}
		if key[i] != c {
			return false
		}
		i++
		j++
	}
	return i == len(key) && j == len(name)
}
