package stats

import "math"

// Quantiles are what Envoy computes for a histogram, in the order of its output.
var Quantiles = [...]float64{0, 0.25, 0.5, 0.75, 0.90, 0.95, 0.99, 0.995, 0.999, 1}

// DefaultBuckets are the upper bounds that Envoy uses where no histogram_bucket_settings match.
var DefaultBuckets = []float64{0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 600000,
	1800000, 3600000}

// Quantiles returns the values below which the shares Quantiles of all values lie, NaN without values. A quantile is that of
// the first value that reaches it; the n values of a bin are taken to lie evenly inside it, at 1/(n+1) .. n/(n+1) of its
// width.
func (h *Histogram) Quantiles() (out [len(Quantiles)]float64) {
	if h.Count() == 0 {
		for i := range out {
			out[i] = math.NaN()
		}
		return out
	}
	i, below := 0, uint64(0)
	for k, q := range Quantiles {
		rank := max(1, uint64(math.Ceil(q*float64(h.n))))
		for i < len(h.bins)-1 && below+h.counts[i] < rank {
			below += h.counts[i]
			i++
		}
		left, width := bounds(h.bins[i])
		share := float64(rank-below) / float64(h.counts[i]+1)
		out[k] = left + float64(share*width)
	}
	return out
}

// Sum returns the approximate sum of all values, from the point of each bin that keeps the relative error smallest.
func (h *Histogram) Sum() float64 {
	if h == nil {
		return 0
	}
	sum := 0.0
	for i, bin := range h.bins {
		left, width := bounds(bin)
		if left == 0 {
			continue
		}
		ratio := left / (2*left + width)
		sum += float64((left + float64(width*ratio)) * float64(h.counts[i]))
	}
	return sum
}

// CountBelow fills out[i] with the number of values in bins that begin at or below bounds[i]. Bounds ascend.
func (h *Histogram) CountBelow(limits []float64, out []uint64) {
	i, n := 0, uint64(0)
	for k, limit := range limits {
		for h != nil && i < len(h.bins) {
			if left, _ := bounds(h.bins[i]); left > limit {
				break
			}
			n += h.counts[i]
			i++
		}
		out[k] = n
	}
}

// Bin is one bin of a histogram in the detailed output.
type Bin struct {
	LowerBound, Width float64
	Count             uint64
}

// Bins returns the bins that have values, ascending.
func (h *Histogram) Bins() []Bin {
	if h == nil {
		return nil
	}
	out := make([]Bin, 0, len(h.bins))
	for i, bin := range h.bins {
		if h.counts[i] > 0 {
			left, width := bounds(bin)
			out = append(out, Bin{LowerBound: left, Width: width, Count: h.counts[i]})
		}
	}
	return out
}

// bounds returns where a bin begins and how wide it is, with the rounding that libcircllhist's doubles have: the mantissa divided by
// ten comes first.
func bounds(bin uint16) (left, width float64) {
	if bin == 0 {
		return 0, 0
	}
	exponent, mantissa := (bin-1)/90, (bin-1)%90+10
	return float64(mantissa) / 10 * pow10[exponent], pow10[exponent] / 10
}

var pow10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
	1e18, 1e19, 1e20}
