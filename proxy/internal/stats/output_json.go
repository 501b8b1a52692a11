package stats

import "strconv"

type jsonOutput struct {
	phases
	begun, ended    bool
	first, histOpen bool
}

// JSON returns the page of /stats?format=json.
func (s *Store) JSON(q Query) Output { return &jsonOutput{phases: newPhases(s, q), first: true} }

func (o *jsonOutput) Next(dst []byte, limit int) ([]byte, bool) {
	if o.ended {
		return dst, false
	}
	end := stop(dst, limit)
	o.begin(limit)
	if !o.begun {
		o.begun = true
		dst = append(dst, `{"stats":[`...)
	}
	for len(dst) < end && len(o.texts) > 0 {
		t := o.texts[0]
		o.texts = o.texts[1:]
		dst = appendString(append(appendString(append(o.comma(dst), `{"name":`...), t.name), `,"value":`...), t.value)
		dst = append(dst, '}')
	}
	for len(dst) < end {
		sm, more := o.next()
		switch {
		case sm == nil && more:
			return dst, true
		case sm == nil:
			o.ended = true
			return o.close(dst), false
		case o.hists:
			dst = o.histogram(o.openHistograms(dst), sm)
		default:
			dst = appendString(append(o.comma(dst), `{"name":`...), string(sm.name))
			dst = append(strconv.AppendUint(append(dst, `,"value":`...), sm.value, 10), '}')
		}
	}
	return dst, true
}

func (o *jsonOutput) comma(dst []byte) []byte {
	if o.first {
		o.first = false
		return dst
	}
	return append(dst, ',')
}

// openHistograms begins the last element of the array with the first histogram.
func (o *jsonOutput) openHistograms(dst []byte) []byte {
	if o.histOpen {
		return append(dst, ',')
	}
	o.histOpen = true
	dst = append(o.comma(dst), `{"histograms":`...)
	switch o.query.Buckets {
	case BucketsCumulative, BucketsDisjoint:
		return append(dst, '[')
	case BucketsDetailed:
		return append(appendQuantileNames(append(dst, `{"supported_percentiles":`...)), `,"details":[`...)
	}
	return append(appendQuantileNames(append(dst, `{"supported_quantiles":`...)), `,"computed_quantiles":[`...)
}

func (o *jsonOutput) close(dst []byte) []byte {
	if o.histOpen {
		switch o.query.Buckets {
		case BucketsCumulative, BucketsDisjoint:
			dst = append(dst, "]}"...)
		default:
			dst = append(dst, "]}}"...)
		}
	}
	return append(dst, "]}"...)
}

func (o *jsonOutput) histogram(dst []byte, sm *sample) []byte {
	cumulative, interval := sm.hist.split()
	dst = appendString(append(dst, `{"name":`...), string(sm.name))
	switch o.query.Buckets {
	case BucketsCumulative, BucketsDisjoint:
		return append(o.bucketValues(append(dst, `,"buckets":[`...), sm, cumulative, interval), "]}"...)
	case BucketsDetailed:
		dst = appendJSONBins(append(dst, `,"totals":[`...), cumulative)
		dst = appendJSONBins(append(dst, `],"intervals":[`...), interval)
		dst = append(dst, `],"percentiles":[`...)
	default:
		dst = append(dst, `,"values":[`...)
	}
	c, i := summary(cumulative, sm.unit), summary(interval, sm.unit)
	for k := range Quantiles {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(append(dst, `{"cumulative":`...), c[k])
		dst = append(appendJSON(append(dst, `,"interval":`...), i[k]), '}')
	}
	return append(dst, "]}"...)
}

func (o *jsonOutput) bucketValues(dst []byte, sm *sample, cumulative, interval *Histogram) []byte {
	limits := o.store.bucketsOf(string(sm.name))
	disjoint := o.query.Buckets == BucketsDisjoint
	c, i := counts(cumulative, limits, disjoint), counts(interval, limits, disjoint)
	for k, limit := range limits {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(append(dst, `{"upper_bound":`...), limit)
		dst = strconv.AppendUint(append(dst, `,"interval":`...), i[k], 10)
		dst = append(strconv.AppendUint(append(dst, `,"cumulative":`...), c[k], 10), '}')
	}
	return dst
}

func appendJSONBins(dst []byte, h *Histogram) []byte {
	for i, b := range h.Bins() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(append(dst, `{"lower_bound":`...), b.LowerBound)
		dst = appendJSON(append(dst, `,"width":`...), b.Width)
		dst = append(strconv.AppendUint(append(dst, `,"count":`...), b.Count, 10), '}')
	}
	return dst
}

func appendQuantileNames(dst []byte) []byte {
	for i, q := range Quantiles {
		dst = append(dst, "[,"[min(i, 1)])
		dst = appendJSON(dst, 100*q)
	}
	return append(dst, ']')
}
