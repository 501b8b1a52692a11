package stats

import (
	"bytes"
	"slices"
	"strconv"

	api "github.com/dragoman-proxy/dragoman/api/stats"
)

// promPrefix is what Envoy puts before every metric.
const promPrefix = "envoy_"

// textKind stands for text readouts among the kinds of this output.
const textKind api.Kind = 0xff

// promKinds is the order of the page.
var promKinds = [...]api.Kind{api.KindCounter, api.KindGauge, textKind, api.KindHistogram}

// promOutput writes one kind after the other, the metrics of each sorted by the name that is left without tags and the stats of a
// metric by their whole names. Both orders are token by token, as Envoy compares stat names.
type promOutput struct {
	store  *Store
	query  Query
	tagger *Tagger

	kind   int // position in promKinds
	walk   *familyWalker
	family *family
	entry  int // in the family
	titled bool
	metric []byte // the family's name as Prometheus has it
	name   []byte
}

// Prometheus returns the page of /stats/prometheus.
func (s *Store) Prometheus(q Query, tagger *Tagger) (Output, error) {
	if q.Buckets == BucketsDisjoint || q.Buckets == BucketsDetailed {
		return nil, ErrPrometheusBuckets
	}
	return &promOutput{store: s, query: q, tagger: tagger}, nil
}

func (o *promOutput) Next(dst []byte, limit int) ([]byte, bool) {
	for end := stop(dst, limit); len(dst) < end; {
		if o.family != nil && o.entry < o.family.size() {
			dst = o.write(dst, o.family.at(o.entry))
			o.entry++
			continue
		}
		if !o.nextFamily() {
			return dst, false
		}
	}
	return dst, true
}

// nextFamily moves on to the next metric, through all kinds.
func (o *promOutput) nextFamily() bool {
	for ; o.kind < len(promKinds); o.kind++ {
		if o.walk == nil {
			o.walk = newFamilyWalker(o.store, o.tagger, promKinds[o.kind], o.query)
		}
		if o.family = o.walk.next(); o.family != nil {
			o.entry, o.titled = 0, false
			o.metric = appendMetric(append(o.metric[:0], promPrefix...), o.family.name)
			return true
		}
		o.walk = nil
	}
	o.family = nil
	return false
}

func (o *promOutput) write(dst []byte, e promEntry) []byte {
	switch {
	case e.stat == nil: // a text readout or a rare code: it was checked when it was found
	case !o.store.shown(e.cell, e.hist, e.stat, o.query.UsedOnly):
		return dst
	case o.query.Filter != nil || o.store.reject != nil || e.stat.Kind == api.KindHistogram:
		o.name = append(append(o.name[:0], e.prefix...), e.stat.Name...)
		if !o.store.wants(o.name, o.query.Filter) {
			return dst
		}
	}
	if !o.titled {
		o.titled = true
		dst = append(append(append(append(dst, "# TYPE "...), o.metric...), ' '), o.typeName()...)
		dst = append(dst, '\n')
	}
	if promKinds[o.kind] == api.KindHistogram {
		return o.histogram(dst, e)
	}
	dst = append(append(append(append(dst, o.metric...), '{'), e.labels...), "} "...)
	v := e.value
	if e.stat != nil {
		v, _, _ = o.store.read(e.cell, e.hist, e.stat)
	}
	return append(strconv.AppendUint(dst, v, 10), '\n')
}

func (o *promOutput) typeName() string {
	switch promKinds[o.kind] {
	case api.KindCounter:
		return "counter"
	case api.KindHistogram:
		if o.summaries() {
			return "summary"
		}
		return "histogram"
	}
	return "gauge"
}

func (o *promOutput) summaries() bool {
	return o.query.Buckets == BucketsSummary || o.query.Buckets == BucketsNone
}

func (o *promOutput) histogram(dst []byte, e promEntry) []byte {
	cumulative, interval := o.store.flushed[e.hist+uint32(e.stat.At)].split()
	labels := e.labels
	if labels != "" {
		labels += ","
	}
	h := cumulative
	if o.summaries() {
		h = interval
		for k, v := range summary(h, e.stat.Unit) {
			dst = append(append(append(append(dst, o.metric...), '{'), labels...), `quantile="`...)
			dst = append(appendPlain(dst, Quantiles[k]), `"} `...)
			dst = append(appendExact(dst, v), '\n')
		}
	} else {
		limits := o.store.bucketsOf(string(o.name))
		c := counts(h, limits, false)
		for k, limit := range limits {
			dst = append(append(append(append(dst, o.metric...), "_bucket{"...), labels...), `le="`...)
			dst = append(appendExact(dst, limit), `"} `...)
			dst = append(strconv.AppendUint(dst, c[k], 10), '\n')
		}
		dst = append(append(append(append(dst, o.metric...), "_bucket{"...), labels...), `le="+Inf"} `...)
		dst = append(strconv.AppendUint(dst, h.Count(), 10), '\n')
	}
	sum := h.Sum()
	if e.stat.Unit == api.Percent {
		sum /= api.PercentScale
	}
	dst = append(append(append(append(dst, o.metric...), "_sum{"...), e.labels...), "} "...)
	dst = append(appendExact(dst, sum), '\n')
	dst = append(append(append(append(dst, o.metric...), "_count{"...), e.labels...), "} "...)
	return append(strconv.AppendUint(dst, h.Count(), 10), '\n')
}

// appendMetric writes a name with the characters that Prometheus allows.
func appendMetric[S string | []byte](dst []byte, name S) []byte {
	for i := range len(name) {
		c := name[i]
		if !isWord(c) {
			c = '_'
		}
		dst = append(dst, c)
	}
	return dst
}

// promLabels writes tags as labels without the braces.
func promLabels(tags []Tag) string {
	var out []byte
	for i, t := range tags {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendMetric(out, t.Name), `="`...)
		for k := range len(t.Value) {
			switch c := t.Value[k]; c {
			case '\\', '"':
				out = append(out, '\\', c)
			case '\n':
				out = append(out, `\n`...)
			default:
				out = append(out, c)
			}
		}
		out = append(out, '"')
	}
	return string(out)
}

// compareTokens compares two names token by token: a dot sorts before everything else.
func compareTokens[S string | []byte](a, b S) int {
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x != y {
			if x == '.' {
				return -1
			}
			if y == '.' {
				return 1
			}
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// sortEntries sorts the stats of one metric by their whole names.
func sortEntries(entries []promEntry) {
	full := func(e *promEntry) []byte {
		if e.stat == nil {
			return []byte(e.prefix)
		}
		return append([]byte(e.prefix), e.stat.Name...)
	}
	slices.SortFunc(entries, func(a, b promEntry) int {
		x, y := full(&a), full(&b)
		if bytes.Equal(x, y) {
			return 0
		}
		return compareTokens(x, y)
	})
}
