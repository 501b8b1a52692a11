package stats

import (
	"slices"
	"strings"

	api "github.com/dragoman-proxy/dragoman/api/stats"
)

// labelIndex holds what is left of the prefix of each group without tags, and the tags as labels, for plain names of one, two and
// three tokens. It is made once a page.
type labelIndex struct {
	extractor extractor
	groups    []labelled // in the order of their prefixes, token by token
	done      int
	widths    map[*api.Template]uint8 // which numbers of tokens its plain names have, as bits
	lefts     map[string]string
	tags      []Tag
	buf       []byte
}

type labelled struct {
	group
	left   [maxPlainTokens]string
	labels [maxPlainTokens]string
	plain  [maxPlainTokens]bool // false: the names have to be looked at one by one
}

func newLabelIndex(s *Store, tagger *Tagger) *labelIndex {
	groups := s.sortedGroups()
	slices.SortFunc(groups, func(a, b group) int { return compareTokens(a.prefix, b.prefix) })
	x := &labelIndex{extractor: extractor{tagger: tagger}, groups: make([]labelled, len(groups)),
		widths: make(map[*api.Template]uint8), lefts: make(map[string]string)}
	for i := range groups {
		x.groups[i].group = groups[i]
	}
	return x
}

// step looks at a number of groups and reports whether it has seen all.
func (x *labelIndex) step(n int) bool {
	for end := min(len(x.groups), x.done+max(n, 1)); x.done < end; x.done++ {
		g := &x.groups[x.done]
		widths := x.widthsOf(g.t)
		for k := range maxPlainTokens {
			if widths>>k&1 == 1 {
				x.label(g, k)
			}
		}
	}
	return x.done == len(x.groups)
}

func (x *labelIndex) label(g *labelled, k int) {
	var cuts []span
	cuts, x.tags, g.plain[k] = x.extractor.findPlain(g.prefix, k+1, x.tags[:0])
	if !g.plain[k] {
		return
	}
	x.buf = cutOut(x.buf[:0], g.prefix, cuts)
	left, ok := x.lefts[string(x.buf)]
	if !ok {
		left = string(x.buf)
		x.lefts[left] = left
	}
	g.left[k] = left
	x.buf = appendLabels(x.buf[:0], x.tags)
	if k > 0 && g.labels[k-1] == string(x.buf) {
		g.labels[k] = g.labels[k-1]
		return
	}
	g.labels[k] = string(x.buf)
}

// of takes the tags out of one whole name.
func (x *labelIndex) of(name string, more ...Tag) (left, labels string) {
	var cuts []span
	cuts, x.tags = x.extractor.find(name, x.tags[:0])
	x.tags = append(x.tags, more...)
	left = name
	if len(cuts) > 0 {
		left = strings.TrimRight(string(cutOut(nil, name, cuts)), ".")
	}
	return left, string(appendLabels(nil, x.tags))
}

func (x *labelIndex) widthsOf(t *api.Template) uint8 {
	widths, ok := x.widths[t]
	if !ok {
		for _, st := range t.Stats() {
			if k := x.extractor.tagger.plainTokens(st.Name); k > 0 {
				widths |= 1 << (k - 1)
			}
		}
		x.widths[t] = widths
	}
	return widths
}
