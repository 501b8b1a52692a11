package stats_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// recorded are histograms that Envoy 1.40 printed for known values (upstream_rs_body_size of known bodies).
var recorded = []struct {
	name      string
	values    func(h *stats.Histogram)
	quantiles string
	sum       string
	buckets   []uint64
}{
	{
		name: "mixed",
		values: func(h *stats.Histogram) {
			for _, v := range []uint64{0, 0, 1, 1, 2, 3, 5, 7, 9, 10, 11, 12, 15, 99, 100, 101, 105, 110, 150, 999, 1000, 1234, 5678,
				12345, 12345, 99999} {
				h.Record(v)
			}
		},
		quantiles: "0 5.05 15.5 995 12333.333333333334 12666.666666666666 99500 99500 99500 99500",
		sum:       "134159.30379671859554946422576904",
		buckets:   []uint64{2, 4, 7, 10, 13, 13, 17, 19, 19, 21, 22, 22, 23, 25, 25, 26, 26, 26, 26},
	},
	{
		name:      "one",
		values:    func(h *stats.Histogram) { h.Record(1) },
		quantiles: "1.05 1.05 1.05 1.05 1.05 1.05 1.05 1.05 1.05 1.05",
		sum:       "1.0476190476190476719153821250075",
		buckets:   []uint64{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	},
	{
		name: "one to 1100",
		values: func(h *stats.Histogram) {
			for v := uint64(1); v <= 1100; v++ {
				h.Record(v)
			}
		},
		quantiles: "1.05 275.45454545454544 550.9090909090909 825.4545454545454 990.9090909090909 1045.5445544554455 " +
			"1089.1089108910892 1095.049504950495 1099.009900990099 1150",
		sum:     "605847.04408546921331435441970825",
		buckets: []uint64{0, 1, 5, 10, 25, 50, 109, 259, 509, 1099, 1100, 1100, 1100, 1100, 1100, 1100, 1100, 1100, 1100},
	},
	{
		name: "heavy bins",
		values: func(h *stats.Histogram) {
			for v, n := range map[uint64]int{3: 7, 42: 11, 250: 3, 10: 200, 499: 1, 500: 1, 501: 1, 2500: 1, 2499: 1, 2549: 1, 2600: 1,
				5000: 1, 5099: 1} {
				for range n {
					h.Record(v)
				}
			}
		},
		quantiles: "3.0125 10.253731343283581 10.537313432835822 10.82587064676617 10.99502487562189 252.5 2650 " +
			"5033.333333333333 5066.666666666667 5066.666666666667",
		sum:     "25148.659331338963966118171811104",
		buckets: []uint64{0, 0, 7, 207, 207, 218, 218, 221, 224, 224, 227, 230, 230, 230, 230, 230, 230, 230, 230},
	},
	{
		name: "large",
		values: func(h *stats.Histogram) {
			for _, v := range []uint64{3000000, 30000000, 59999, 60000, 60999, 61000} {
				h.Record(v)
			}
		},
		quantiles: "59500 60333.333333333336 60666.666666666664 3050000 30500000 30500000 30500000 30500000 30500000 30500000",
		sum:       "33782967.075373247265815734863281",
		buckets:   []uint64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 4, 4, 5},
	},
}

func TestHistogramAsEnvoy(t *testing.T) {
	for _, tc := range recorded {
		t.Run(tc.name, func(t *testing.T) {
			var h stats.Histogram
			tc.values(&h)
			var quantiles []string
			for _, q := range h.Quantiles() {
				quantiles = append(quantiles, strconv.FormatFloat(q, 'f', -1, 64))
			}
			if got := strings.Join(quantiles, " "); got != tc.quantiles {
				t.Errorf("quantiles\n got %s\nwant %s", got, tc.quantiles)
			}
			if got := strconv.FormatFloat(h.Sum(), 'g', 32, 64); got != tc.sum {
				t.Errorf("sum %s, want %s", got, tc.sum)
			}
			got := make([]uint64, len(stats.DefaultBuckets))
			h.CountBelow(stats.DefaultBuckets, got)
			for i := range got {
				if got[i] != tc.buckets[i] {
					t.Errorf("bucket %v has %d, want %d", stats.DefaultBuckets[i], got[i], tc.buckets[i])
				}
			}
		})
	}
}

func TestHistogramWithoutValues(t *testing.T) {
	var h *stats.Histogram
	for _, q := range h.Quantiles() {
		if !math.IsNaN(q) {
			t.Errorf("quantile %v, want NaN", q)
		}
	}
	if h.Sum() != 0 || h.Count() != 0 || len(h.Bins()) != 0 {
		t.Errorf("a histogram without values has sum %v, count %v", h.Sum(), h.Count())
	}
}

// FuzzHistogram checks, for any values: counts add up, bins ascend and hold their values, quantiles ascend and stay between the
// bins of the smallest and the largest value.
func FuzzHistogram(f *testing.F) {
	f.Add(uint64(0), uint64(1), uint64(99), uint64(100))
	f.Add(uint64(math.MaxUint64), uint64(math.MaxInt64), uint64(9), uint64(10))
	f.Fuzz(func(t *testing.T, a, b, c, d uint64) {
		values := []uint64{a, b, c, d, a / 2, b + 1, a}
		var h stats.Histogram
		for _, v := range values {
			h.Record(v)
		}
		bins, total := h.Bins(), uint64(0)
		for i, bin := range bins {
			total += bin.Count
			if i > 0 && bin.LowerBound <= bins[i-1].LowerBound {
				t.Fatalf("bins do not ascend: %v", bins)
			}
		}
		if total != uint64(len(values)) || h.Count() != total {
			t.Fatalf("%d values in bins, %d counted, %d recorded", total, h.Count(), len(values))
		}
		for _, v := range values {
			if !inSomeBin(bins, float64(v)) {
				t.Fatalf("%d is in none of %v", v, bins)
			}
		}
		last := bins[len(bins)-1]
		q := h.Quantiles()
		for i := range q {
			if i > 0 && q[i] < q[i-1] || q[i] < bins[0].LowerBound || q[i] > last.LowerBound+last.Width {
				t.Fatalf("quantiles %v of %v", q, values)
			}
		}
	})
}

func inSomeBin(bins []stats.Bin, v float64) bool {
	const slack = 1e-12 // doubles near 2^64 are coarser than the bins' bounds
	for _, b := range bins {
		if v >= b.LowerBound*(1-slack) && v <= (b.LowerBound+b.Width)*(1+slack) {
			return true
		}
	}
	return false
}
