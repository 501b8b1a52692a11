package stats_test

import (
	"fmt"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/google/go-cmp/cmp"
)

func TestTemplate(t *testing.T) {
	inner := stats.MustTemplate("inner", stats.Marker(0), stats.Counter(1, "b"), stats.Histogram(0, "h", stats.Bytes),
		stats.Codes(2, "rq_"))
	outer := stats.MustTemplate("outer", stats.Counter(0, "z"), stats.Gauge(1, "y"), stats.LazyHistogram(0, "time", stats.Milliseconds),
		stats.Block(10, 1, "in.", inner))
	if got := outer.Cells(); got != 10+2+stats.CodesCells {
		t.Errorf("%d cells", got)
	}
	if got := outer.Histograms(); got != 2 {
		t.Errorf("%d histograms", got)
	}
	var names []string
	for _, i := range outer.Sorted() {
		if st := outer.Stats()[i]; len(names) < 5 {
			names = append(names, fmt.Sprint(st.Name, " ", st.At, " ", st.Marker, " ", st.Lazy))
		}
	}
	want := []string{" 10 -1 false", "in.b 11 10 false", "in.h 1 10 false", "in.rq_100 36 10 true", "in.rq_101 35 10 true"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]stats.CodeBlock{{Name: "in.rq_", At: 12, Marker: 10}}, outer.CodeBlocks()); d != "" {
		t.Error(d)
	}
	base := stats.GroupBase{Cell: 2000, Hist: 100}
	if got := outer.Block(base, 10); got != (stats.GroupBase{Cell: 2010, Hist: 101}) {
		t.Errorf("block at %v", got)
	}
	if got := outer.Block(base, 11); got != (stats.GroupBase{}) {
		t.Errorf("a block that is not there at %v", got)
	}
}

func TestTemplateErrors(t *testing.T) {
	full := make([]stats.Entry, 0, stats.MaxTemplateCells+1)
	for i := range stats.MaxTemplateCells {
		full = append(full, stats.Counter(stats.CounterIndex(i), fmt.Sprint("c", i)))
	}
	hists := make([]stats.Entry, 0, stats.MaxTemplateHistograms+1)
	for i := range stats.MaxTemplateHistograms {
		hists = append(hists, stats.Histogram(stats.HistogramIndex(i), fmt.Sprint("h", i), stats.Bytes))
	}
	for _, tc := range []struct {
		name    string
		entries []stats.Entry
		ok      bool
	}{
		{"as many cells as are possible", full, true},
		{"one more", append(full, stats.Counter(stats.MaxTemplateCells, "more")), false},
		{"as many histograms as are possible", hists, true},
		{"one more", append(hists, stats.Histogram(stats.MaxTemplateHistograms, "more", stats.Bytes)), false},
		{"same cell", []stats.Entry{stats.Counter(3, "a"), stats.Gauge(3, "b")}, false},
		{"a cell and a histogram may have one index", []stats.Entry{stats.Counter(3, "a"), stats.Histogram(3, "b", stats.Bytes)}, true},
		{"same name", []stats.Entry{stats.Counter(3, "a"), stats.Counter(4, "a")}, false},
		{"overlap with codes", []stats.Entry{stats.Codes(3, "a"), stats.Counter(3+stats.CodesCells-1, "b")}, false},
		{"next to codes", []stats.Entry{stats.Codes(3, "a"), stats.Counter(3+stats.CodesCells, "b")}, true},
	} {
		if _, err := stats.NewTemplate("t", tc.entries...); (err == nil) != tc.ok {
			t.Errorf("%s: error %v", tc.name, err)
		}
	}
}

func TestCodeSlot(t *testing.T) {
	seen := map[uint32]int{}
	for code := 100; code < 600; code++ {
		slot := stats.CodeSlot(code)
		if slot == stats.CodeUnknown || slot >= stats.CodesCells || slot != 0 && slot <= stats.CodeUnknown {
			t.Errorf("slot %d for %d", slot, code)
		}
		if other, ok := seen[slot]; ok && slot != 0 {
			t.Errorf("%d and %d share slot %d", other, code, slot)
		}
		seen[slot] = code
	}
	for _, code := range []int{-1, 0, 99, 600, 1 << 40} {
		if slot := stats.CodeSlot(code); slot != stats.CodeUnknown {
			t.Errorf("slot %d for %d", slot, code)
		}
	}
}
