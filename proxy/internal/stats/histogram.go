package stats

import "slices"

// maxBins is what a uint64 can reach: zero, 1..9, and ninety bins for each further decade.
const maxBins = 1 + 90*20

// Histogram keeps values in log-linear bins: two significant decimal digits and a power of ten, the bins of libcircllhist,
// which Envoy uses. It is owned by one thread; a copy is taken with clone.
type Histogram struct {
	bins   []uint16 // ascending
	counts []uint64
	last   int    // the bin that was hit last; values cluster
	n      uint64 // all values
}

// Record adds one value.
func (h *Histogram) Record(v uint64) {
	bin := binOf(v)
	h.n++
	if h.last < len(h.bins) && h.bins[h.last] == bin {
		h.counts[h.last]++
		return
	}
	h.record(bin)
}

// Count returns the number of values.
func (h *Histogram) Count() uint64 {
	if h == nil {
		return 0
	}
	return h.n
}

func (h *Histogram) record(bin uint16) {
	lo, hi := 0, len(h.bins)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if h.bins[mid] < bin {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(h.bins) || h.bins[lo] != bin {
		h.bins = slices.Insert(h.bins, lo, bin)
		h.counts = slices.Insert(h.counts, lo, 0)
	}
	h.counts[lo]++
	h.last = lo
}

// add merges o into h.
func (h *Histogram) add(o *Histogram) {
	if o == nil {
		return
	}
	for i, bin := range o.bins {
		if o.counts[i] == 0 {
			continue
		}
		h.record(bin)
		h.counts[h.last] += o.counts[i] - 1
	}
	h.n += o.n
}

// minus returns what h has more than an earlier state of itself.
func (h *Histogram) minus(earlier *Histogram) *Histogram {
	out := &Histogram{}
	for i, bin := range h.bins {
		c := h.counts[i]
		if earlier != nil {
			if j, ok := slices.BinarySearch(earlier.bins, bin); ok {
				c -= min(c, earlier.counts[j])
			}
		}
		if c > 0 {
			out.bins = append(out.bins, bin)
			out.counts = append(out.counts, c)
			out.n += c
		}
	}
	return out
}

func (h *Histogram) clone() *Histogram {
	return &Histogram{bins: slices.Clone(h.bins), counts: slices.Clone(h.counts), n: h.n}
}

// binOf returns the number of a value's bin: 0 for zero, then ninety a decade, [10^e, 10^(e+1)) in steps of 10^(e-1).
func binOf(v uint64) uint16 {
	if v < 10 {
		if v == 0 {
			return 0
		}
		return uint16(1 + v*10 - 10)
	}
	base := uint16(1 + 90)
	for v >= 100 {
		v /= 10
		base += 90
	}
	return base + uint16(v-10)
}
