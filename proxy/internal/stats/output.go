package stats

import (
	"errors"
	"math"
	"slices"
	"strconv"

	api "github.com/dragoman-proxy/dragoman/api/stats"
)

// Output is a page of stats that is written in pieces, so that a large one does not hold the main loop up. It shows the values that
// the store has while it is written; stats that are registered later are not in it.
type Output interface {
	// Next appends the next piece to dst and reports whether there is more. A piece ends with the first stat at which it
	// has at least limit bytes, or earlier where there is work to do without output: it may be empty.
	Next(dst []byte, limit int) (out []byte, more bool)
}

// WriteAll returns a whole output.
func WriteAll(o Output) []byte {
	out, more := o.Next(nil, math.MaxInt)
	for more {
		out, more = o.Next(out, math.MaxInt)
	}
	return out
}

// Buckets is the histogram_buckets= parameter of /stats.
type Buckets uint8

// Values of Buckets. BucketsUnset and BucketsNone differ only for Prometheus, where Envoy's default is Cumulative.
const (
	BucketsUnset Buckets = iota
	BucketsNone
	BucketsCumulative
	BucketsDisjoint
	BucketsDetailed
	BucketsSummary
)

// BucketsUsage is Envoy's answer to an unknown histogram_buckets=.
const BucketsUsage = "usage: /stats?histogram_buckets=(cumulative|disjoint|detailed|summary|prometheusnative)\n"

// ErrPrometheusBuckets is Envoy's answer to disjoint or detailed buckets for Prometheus.
var ErrPrometheusBuckets = errors.New("unsupported prometheus histogram bucket mode")

// ParseBuckets reads a histogram_buckets= parameter.
func ParseBuckets(s string) (Buckets, bool) {
	i := slices.Index([]string{"", "none", "cumulative", "disjoint", "detailed", "summary"}, s)
	return Buckets(max(i, 0)), i >= 0
}

// phases of the text and JSON outputs: text readouts, then counters and gauges, then histograms.
type phases struct {
	store *Store
	query Query
	texts []text
	w     *walker
	hists bool
}

func newPhases(s *Store, q Query) phases {
	p := phases{store: s, query: q}
	if q.Types == AllTypes || q.Types == TextsOnly {
		for _, t := range s.sortedTexts() {
			if (t.set || !q.UsedOnly) && s.wants([]byte(t.name), q.Filter) {
				p.texts = append(p.texts, t)
			}
		}
	}
	return p
}

// begin starts a piece.
func (p *phases) begin(limit int) {
	if p.w == nil {
		kinds := map[Types]kindSet{AllTypes: countersAndGauges, CountersOnly: counters, GaugesOnly: gauges}[p.query.Types]
		p.w = newWalker(p.store, kinds, p.query)
	}
	p.w.resume(limit / workShare)
}

// workShare is how many bytes of output stand for one stat that is looked at, so that the limit of a piece bounds both.
const workShare = 8

// next returns the next stat after the texts. Without one, more tells whether the piece is to end here or the whole output.
func (p *phases) next() (sm *sample, more bool) {
	for {
		if sm = p.w.next(); sm != nil || p.w.paused() {
			return sm, true
		}
		if p.hists || p.query.Types != AllTypes && p.query.Types != HistogramsOnly {
			return nil, false
		}
		p.hists = true
		limit := p.w.limit
		p.w = newWalker(p.store, histograms, p.query)
		p.w.resume(limit)
	}
}

// summary returns the quantiles of a histogram for output.
func summary(h *Histogram, unit api.Unit) [len(Quantiles)]float64 {
	q := h.Quantiles()
	if unit == api.Percent {
		for i := range q {
			q[i] /= api.PercentScale
		}
	}
	return q
}

// counts returns the counts of a histogram by bucket, cumulative or disjoint.
func counts(h *Histogram, limits []float64, disjoint bool) []uint64 {
	out := make([]uint64, len(limits))
	h.CountBelow(limits, out)
	if disjoint {
		for i := len(out) - 1; i > 0; i-- {
			out[i] -= out[i-1]
		}
	}
	return out
}

func (f *flushedValues) split() (cumulative, interval *Histogram) {
	if f == nil {
		return nil, nil
	}
	return f.cumulative, f.interval
}

// appendPlain writes a number as Envoy's text output does: the shortest digits that read back, without exponent below 1e16.
func appendPlain(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "nan"...)
	case math.Abs(v) >= 1e16:
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// appendSix writes a number with six significant digits at most.
func appendSix(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v, 'g', 6, 64) }

// appendExact writes a number as Envoy's Prometheus output does, with 32 significant digits.
func appendExact(dst []byte, v float64) []byte {
	if math.IsNaN(v) {
		return append(dst, "nan"...)
	}
	return strconv.AppendFloat(dst, v, 'g', 32, 64)
}

// appendJSON writes a number as Envoy's JSON output does: the shortest text of all, null for NaN.
func appendJSON(dst []byte, v float64) []byte {
	if math.IsNaN(v) {
		return append(dst, "null"...)
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	plain := len(dst) - n
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	if len(dst)-n-plain < plain {
		return append(dst[:n], dst[n+plain:]...)
	}
	return dst[:n+plain]
}

// appendString writes a JSON string.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
