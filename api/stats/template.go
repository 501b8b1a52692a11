package stats

import (
	"fmt"
	"slices"
	"strings"
)

// MaxTemplateCells and MaxTemplateHistograms bound one template, blocks included. The first MaxTemplateCells ids of a store
// are never given out, so that the zero GroupBase is a place to count into nothing.
const (
	MaxTemplateCells      = 1024
	MaxTemplateHistograms = 64
)

// Indices are positions in a template. Counters and gauges (and the blocks that hold them) share one range of cells in the
// order of their declaration, so that what is counted together should be declared together; histograms have their own.
type (
	CounterIndex   uint16
	GaugeIndex     uint16
	HistogramIndex uint16
	CodesIndex     uint16
	BlockIndex     uint16
)

// Kind says what an entry of a template is.
type Kind uint8

// Kinds of entries.
const (
	KindCounter Kind = iota
	KindGauge
	KindHistogram
	KindCodes
	KindMarker
	KindBlock
)

// Entry is one line of a template. Make them with Counter, Gauge, Histogram, Codes, Marker and Block.
type Entry struct {
	Name string
	Kind Kind
	Lazy bool // shown only when it has been used
	Unit Unit
	at   uint16
	hist uint16 // of a block: its first histogram
	sub  *Template
}

// Counter is a counter at index i.
func Counter(i CounterIndex, name string) Entry {
	return Entry{Name: name, Kind: KindCounter, at: uint16(i)}
}

// LazyCounter is a counter that does not show until it has been used, for names that Envoy creates on first use.
func LazyCounter(i CounterIndex, name string) Entry {
	return Entry{Name: name, Kind: KindCounter, at: uint16(i), Lazy: true}
}

// Gauge is a gauge at index i.
func Gauge(i GaugeIndex, name string) Entry {
	return Entry{Name: name, Kind: KindGauge, at: uint16(i)}
}

// LazyGauge is a gauge that does not show until it has been used.
func LazyGauge(i GaugeIndex, name string) Entry {
	return Entry{Name: name, Kind: KindGauge, at: uint16(i), Lazy: true}
}

// Histogram is a histogram at index i of the histograms.
func Histogram(i HistogramIndex, name string, unit Unit) Entry {
	return Entry{Name: name, Kind: KindHistogram, at: uint16(i), Unit: unit}
}

// LazyHistogram is a histogram that does not show until it has a value.
func LazyHistogram(i HistogramIndex, name string, unit Unit) Entry {
	return Entry{Name: name, Kind: KindHistogram, at: uint16(i), Unit: unit, Lazy: true}
}

// Codes is a block of response-code counters, CodesCells wide: name is the part before the code, "upstream_rq_". Each of its
// counters is lazy.
func Codes(i CodesIndex, name string) Entry {
	return Entry{Name: name, Kind: KindCodes, at: uint16(i), Lazy: true}
}

// Marker is a hidden counter. A template that has one shows nothing until the marker has been counted, then everything:
// how Envoy's codec stats appear with the first connection.
func Marker(i CounterIndex) Entry { return Entry{Kind: KindMarker, at: uint16(i)} }

// Block places a whole template inside another one under a name ("http1."): its cells begin at cell and its
// histograms at hist.
func Block(cell BlockIndex, hist HistogramIndex, name string, sub *Template) Entry {
	return Entry{Name: name, Kind: KindBlock, at: uint16(cell), hist: uint16(hist), sub: sub}
}

// Template is a static list of stats that are registered together. It is immutable.
type Template struct {
	name       string
	cells      int
	histograms int
	stats      []Stat
	sorted     []int32 // positions in stats in the order of their names
	blocks     []Entry
	codes      []CodeBlock
}

// CodeBlock is a block of response-code counters of a template: where it begins and what comes before the code.
type CodeBlock struct {
	Name   string
	At     uint16
	Marker int16 // as in Stat
}

// Stat is one stat of a template, blocks and code blocks unrolled.
type Stat struct {
	Name   string
	Kind   Kind // KindCounter, KindGauge, KindHistogram or KindMarker
	Lazy   bool
	Unit   Unit
	At     uint16 // cell, or histogram, relative to the group's base
	Marker int16  // cell that must have been used for this stat to show, or -1
}

// NewTemplate checks and returns a template. The error names the first entry that overlaps another or repeats a name.
func NewTemplate(name string, entries ...Entry) (*Template, error) {
	t := &Template{name: name}
	marker := int16(-1)
	for _, e := range entries {
		if e.Kind == KindMarker {
			marker = int16(e.at)
		}
	}
	for _, e := range entries {
		t.unroll(e, marker)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	t.sorted = make([]int32, len(t.stats))
	for i := range t.sorted {
		t.sorted[i] = int32(i)
	}
	slices.SortFunc(t.sorted, func(a, b int32) int { return strings.Compare(t.stats[a].Name, t.stats[b].Name) })
	return t, nil
}

// MustTemplate is NewTemplate for templates that are written in source. It panics on an invalid one.
func MustTemplate(name string, entries ...Entry) *Template {
	t, err := NewTemplate(name, entries...)
	if err != nil {
		panic(err)
	}
	return t
}

// Name returns the template's name, for messages.
func (t *Template) Name() string { return t.name }

// Cells returns the number of cells that a group takes.
func (t *Template) Cells() int { return t.cells }

// Histograms returns the number of histograms that a group takes.
func (t *Template) Histograms() int { return t.histograms }

// Stats returns all stats in the order of declaration. The caller must not change it.
func (t *Template) Stats() []Stat { return t.stats }

// Sorted returns the positions in Stats in the order of the names. The caller must not change it.
func (t *Template) Sorted() []int32 { return t.sorted }

// CodeBlocks returns the blocks of response codes, nested ones included.
func (t *Template) CodeBlocks() []CodeBlock { return t.codes }

// Block returns the base of the block that was declared at i in a group of this template, or the zero base, which counts
// into nothing, if there is none or g itself is the zero base.
func (t *Template) Block(g GroupBase, i BlockIndex) GroupBase {
	if g.Cell == 0 {
		return GroupBase{}
	}
	for _, b := range t.blocks {
		if b.at == uint16(i) {
			return GroupBase{Cell: g.Cell + uint32(b.at), Hist: g.Hist + uint32(b.hist)}
		}
	}
	return GroupBase{}
}

func (t *Template) unroll(e Entry, marker int16) {
	switch e.Kind {
	case KindBlock:
		t.blocks = append(t.blocks, e)
		for _, s := range e.sub.stats {
			if s.Kind != KindMarker {
				s.Name = e.Name + s.Name
			}
			if s.Kind == KindHistogram {
				s.At += e.hist
			} else {
				s.At += e.at
			}
			if s.Marker >= 0 {
				s.Marker += int16(e.at)
			}
			t.add(s)
		}
		for _, c := range e.sub.codes {
			c.Name, c.At = e.Name+c.Name, c.At+e.at
			if c.Marker >= 0 {
				c.Marker += int16(e.at)
			}
			t.codes = append(t.codes, c)
		}
	case KindCodes:
		t.codes = append(t.codes, CodeBlock{Name: e.Name, At: e.at, Marker: marker})
		for i, suffix := range codeSuffixes() {
			t.add(Stat{Name: e.Name + suffix, Kind: KindCounter, Lazy: true, At: e.at + uint16(i), Marker: marker})
		}
	case KindMarker:
		t.add(Stat{Kind: KindMarker, At: e.at, Marker: -1})
	default:
		t.add(Stat{Name: e.Name, Kind: e.Kind, Lazy: e.Lazy, Unit: e.Unit, At: e.at, Marker: marker})
	}
}

func (t *Template) add(s Stat) {
	t.stats = append(t.stats, s)
	if s.Kind == KindHistogram {
		t.histograms = max(t.histograms, int(s.At)+1)
	} else {
		t.cells = max(t.cells, int(s.At)+1)
	}
}

func (t *Template) check() error {
	if t.cells > MaxTemplateCells || t.histograms > MaxTemplateHistograms {
		return fmt.Errorf("stats template %s: %d cells and %d histograms are more than %d and %d",
			t.name, t.cells, t.histograms, MaxTemplateCells, MaxTemplateHistograms)
	}
	cells, hists, names := map[uint16]string{}, map[uint16]string{}, map[string]bool{}
	for _, s := range t.stats {
		taken := cells
		if s.Kind == KindHistogram {
			taken = hists
		}
		if other, ok := taken[s.At]; ok {
			return fmt.Errorf("stats template %s: %q and %q have the same index %d", t.name, other, s.Name, s.At)
		}
		taken[s.At] = s.Name
		if s.Kind == KindMarker {
			continue
		}
		if names[s.Name] {
			return fmt.Errorf("stats template %s: %q is there twice", t.name, s.Name)
		}
		names[s.Name] = true
	}
	return nil
}
