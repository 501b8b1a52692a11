package yamlpos

// Outline names lists whose elements are to be left unread: those under a key of Lists in a map under a key of Parents
// in the root, or in the root itself if there are no Parents.
type Outline struct {
	Parents []string
	Lists   []string
	// Into is a tree that is not needed any more: its memory is reused. nil makes a new one.
	Into *Tree
}

// ParseJSONOutline is ParseJSON, but the elements of the lists that o names become Raw nodes, which take no memory of
// their own until Expand reads them. Mistakes of syntax inside them are found there.
func ParseJSONOutline(file string, src []byte, o Outline) (*Tree, error) {
	return parseJSON(file, src, false, o)
}

// Expand reads the Raw node n into a tree of its own. into is overwritten and its memory reused; nil makes a new one.
// Places in it are those of the whole file.
func (t *Tree) Expand(n Node, into *Tree) (*Tree, error) {
	nd := &t.nodes[n]
	if nd.kind != Raw {
		return nil, &SyntaxError{Pos: t.Pos(n), Msg: "the value has been read already"}
	}
	if into == nil {
		into = &Tree{}
	}
	*into = Tree{file: t.file, src: t.src, nodes: into.nodes[:0], aux: into.aux[:0], places: t.places}
	p := jsonParser{src: t.src[:nd.off+nd.n], i: int(nd.off), t: into}
	if !p.value(rawDepth, key{}) {
		return nil, p.err
	}
	p.space()
	if p.i < len(p.src) {
		p.unexpected("',' or ']'")
		return nil, p.err
	}
	if t.lookup != nil {
		if errs := into.Substitute(t.lookup); len(errs) > 0 {
			return nil, errs[0]
		}
	}
	return into, nil
}

// rawDepth is how deep an outlined element stands: root, parent, list.
const rawDepth = 3

// RawText returns the bytes of a Raw node as they stand in the source, nil for another node. They belong to the tree.
func (t *Tree) RawText(n Node) []byte {
	nd := &t.nodes[n]
	if nd.kind != Raw {
		return nil
	}
	return t.src[nd.off : nd.off+nd.n]
}

// outlined reads a value of the two top levels and watches for the lists whose elements stay unread.
func (p *jsonParser) outlined(depth int, k key) bool {
	name := p.src[k.off:min(k.off+k.n, uint32(len(p.src)))]
	switch {
	case k.flags&flagKeyAux != 0:
	case depth == 1 && contains(p.outline.Parents, name):
		p.inside = true
		ok := p.value(depth, k)
		p.inside = false
		return ok
	case p.leaves(depth, name) && p.i < len(p.src) && p.src[p.i] == '[':
		at := p.add(k, Seq)
		p.i++
		return p.elements(at, func() bool { return p.skip() })
	}
	return p.value(depth, k)
}

// leaves tells whether the elements of the list under name stay unread.
func (p *jsonParser) leaves(depth int, name []byte) bool {
	if len(p.outline.Parents) == 0 {
		return depth == 1 && contains(p.outline.Lists, name)
	}
	return depth == 2 && p.inside && contains(p.outline.Lists, name)
}

func contains(names []string, name []byte) bool {
	for _, n := range names {
		if n == string(name) {
			return true
		}
	}
	return false
}

// skip passes over a value by its brackets and adds it as a Raw node.
func (p *jsonParser) skip() bool {
	if p.i < len(p.src) && p.src[p.i] == '[' { // a list in the list is flattened by the caller, who must see it
		at := p.add(key{}, Seq)
		p.i++
		return p.elements(at, func() bool { return p.value(rawDepth+1, key{}) })
	}
	start, depth, i := p.i, 0, p.i
	for i < len(p.src) {
		switch p.src[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return p.raw(start, i)
			}
			if depth == 0 {
				return p.raw(start, i+1)
			}
		case ',':
			if depth == 0 {
				return p.raw(start, i)
			}
		case '"', '\'':
			quote := p.src[i]
			for i++; i < len(p.src) && p.src[i] != quote; i++ {
				if p.src[i] == '\\' {
					i++
				}
			}
		}
		i++
	}
	return p.fail(start, "the value is not closed")
}

func (p *jsonParser) raw(start, end int) bool {
	if end == start {
		return p.unexpected("a value")
	}
	at := p.add(key{}, Raw)
	p.t.nodes[at].off, p.t.nodes[at].n = uint32(start), uint32(end-start)
	p.i = end
	return true
}
