package stats

import (
	"math"
	"strconv"
)

type textOutput struct{ phases }

// Text returns the page of /stats: text readouts, counters and gauges, histograms.
func (s *Store) Text(q Query) Output { return &textOutput{newPhases(s, q)} }

func (o *textOutput) Next(dst []byte, limit int) ([]byte, bool) {
	end := stop(dst, limit)
	o.begin(limit)
	for len(dst) < end && len(o.texts) > 0 {
		t := o.texts[0]
		o.texts = o.texts[1:]
		dst = append(append(append(append(dst, t.name...), `: "`...), t.value...), "\"\n"...)
	}
	for len(dst) < end {
		sm, more := o.next()
		if sm == nil {
			return dst, more
		}
		dst = append(append(dst, sm.name...), ':')
		if o.hists {
			dst = o.histogram(dst, sm)
		} else {
			dst = strconv.AppendUint(append(dst, ' '), sm.value, 10)
		}
		dst = append(dst, '\n')
	}
	return dst, true
}

func (o *textOutput) histogram(dst []byte, sm *sample) []byte {
	cumulative, interval := sm.hist.split()
	if cumulative.Count() == 0 {
		return append(dst, " No recorded values"...)
	}
	switch o.query.Buckets {
	case BucketsCumulative, BucketsDisjoint:
		limits := o.store.bucketsOf(string(sm.name))
		disjoint := o.query.Buckets == BucketsDisjoint
		c, i := counts(cumulative, limits, disjoint), counts(interval, limits, disjoint)
		for k, limit := range limits {
			dst = append(appendSix(append(dst, " B"...), limit), '(')
			dst = append(strconv.AppendUint(dst, i[k], 10), ',')
			dst = append(strconv.AppendUint(dst, c[k], 10), ')')
		}
		return dst
	case BucketsDetailed:
		dst = appendBins(append(dst, "\n  totals="...), cumulative)
		dst = appendBins(append(dst, "\n  intervals="...), interval)
		return appendSummary(append(dst, "\n  summary="...), sm, cumulative, interval)
	}
	return appendSummary(append(dst, ' '), sm, cumulative, interval)
}

func appendSummary(dst []byte, sm *sample, cumulative, interval *Histogram) []byte {
	c, i := summary(cumulative, sm.unit), summary(interval, sm.unit)
	for k, q := range Quantiles {
		if k > 0 {
			dst = append(dst, ' ')
		}
		dst = append(appendPlain(append(dst, 'P'), 100*q), '(')
		dst = append(appendPlain(dst, i[k]), ',')
		dst = append(appendPlain(dst, c[k]), ')')
	}
	return dst
}

func appendBins(dst []byte, h *Histogram) []byte {
	for i, b := range h.Bins() {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(appendSix(dst, b.LowerBound), ',')
		dst = append(appendSix(dst, b.Width), ':')
		dst = strconv.AppendUint(dst, b.Count, 10)
	}
	return dst
}

// stop returns the length at which a piece that begins with dst is long enough.
func stop(dst []byte, limit int) int {
	if limit > math.MaxInt-len(dst) {
		return math.MaxInt
	}
	return len(dst) + max(limit, 1)
}
