package stats

import (
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
	store *Store
	query Query

	labels *labelIndex
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
	return &promOutput{store: s, query: q, labels: newLabelIndex(s, tagger)}, nil
}

func (o *promOutput) Next(dst []byte, limit int) ([]byte, bool) {
	skipped := limit / workShare
	for end := stop(dst, limit); len(dst) < end && skipped >= 0; {
		if o.family != nil && o.entry < o.family.size() {
			skipped--
			dst = o.write(dst, o.family.at(o.entry))
			o.entry++
			continue
		}
		if !o.prepare(limit) {
			return dst, true
		}
		if !o.nextFamily() {
			return dst, false
		}
	}
	return dst, true
}

// prepare does a part of the work that comes before the metrics of a kind and reports whether there is nothing left of it.
func (o *promOutput) prepare(limit int) bool {
	groups := limit / prepareShare
	if !o.labels.step(groups) {
		return false
	}
	if o.walk == nil && o.kind < len(promKinds) {
		o.walk = newFamilyWalker(o.store, o.labels, promKinds[o.kind], o.query)
	}
	return o.walk == nil || o.walk.step(groups)
}

// prepareShare is how many bytes of output stand for the work on one group, so that the limit of a piece bounds both.
const prepareShare = 256

// nextFamily moves on to the next metric of the kind, and at its end to the next kind, which has to be prepared first.
func (o *promOutput) nextFamily() bool {
	if o.kind < len(promKinds) {
		if o.family = o.walk.next(); o.family != nil {
			o.entry, o.titled = 0, false
			o.metric = appendMetric(append(o.metric[:0], promPrefix...), o.family.name)
			return true
		}
		o.walk = nil
		o.kind++
	}
	return o.kind < len(promKinds)
}

func (o *promOutput) write(dst []byte, e promEntry) []byte {
	switch {
	case e.again:
		return dst
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
	v := o.value(e)
	for k := o.entry + 1; o.family.bundle == nil && k < len(o.family.mix) && o.family.mix[k].again; k++ {
		v += o.value(o.family.mix[k])
	}
	return append(strconv.AppendUint(dst, v, 10), '\n')
}

func (o *promOutput) value(e promEntry) uint64 {
	if e.stat == nil {
		return e.value
	}
	v, _, _ := o.store.read(e.cell, e.hist, e.stat)
	return v
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

// appendLabels writes tags as labels without the braces.
func appendLabels(out []byte, tags []Tag) []byte {
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
	return out
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

// sortEntries sorts the stats of one metric by their whole names, and marks those that another one of the same name precedes.
func sortEntries(entries []promEntry) {
	slices.SortStableFunc(entries, func(a, b promEntry) int { return compareTokens(a.name(), b.name()) })
	for i := 1; i < len(entries); i++ {
		entries[i].again = entries[i].name() == entries[i-1].name()
	}
}

func (e *promEntry) name() string {
	if e.stat == nil {
		return e.prefix
	}
	return e.prefix + e.stat.Name
}
