package stats_test

import (
	"fmt"
	"testing"

	api "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// BenchmarkRequest counts about what one request counts.
func BenchmarkRequest(b *testing.B) {
	s := stats.NewStore()
	c := s.Root().Scope("cluster.a").Group(stats.Cluster)
	h := s.Root().Scope("http.a").Group(stats.HCM)
	w := s.NewShard("w")
	for b.Loop() {
		w.Inc(h.Counter(stats.HCMDownstreamRqTotal))
		w.Inc(h.Counter(stats.HCMDownstreamRqHttp1Total))
		w.GaugeAdd(h.Gauge(stats.HCMDownstreamRqActive), 1)
		w.Add(h.Counter(stats.HCMDownstreamCxRxBytesTotal), 200)
		w.Inc(c.Counter(stats.ClusterUpstreamRqTotal))
		w.GaugeAdd(c.Gauge(stats.ClusterUpstreamRqActive), 1)
		w.Add(c.Counter(stats.ClusterUpstreamCxTxBytesTotal), 200)
		w.Add(c.Counter(stats.ClusterUpstreamCxRxBytesTotal), 1200)
		w.IncCode(c.Codes(stats.ClusterUpstreamRqCodes), 200)
		w.Inc(c.Counter(stats.ClusterUpstreamRqCompleted))
		w.Record(c.Histogram(stats.ClusterUpstreamRqTime), 3)
		w.GaugeSub(c.Gauge(stats.ClusterUpstreamRqActive), 1)
		w.Inc(h.Counter(stats.HCMDownstreamRqCompleted))
		w.Inc(h.Counter(stats.HCMDownstreamRq2xx))
		w.Add(h.Counter(stats.HCMDownstreamCxTxBytesTotal), 1200)
		w.GaugeSub(h.Gauge(stats.HCMDownstreamRqActive), 1)
		w.Record(h.Histogram(stats.HCMDownstreamRqTime), 3)
	}
}

func BenchmarkInc(b *testing.B) {
	s := stats.NewStore()
	c := s.Root().Scope("cluster.a").Group(stats.Cluster)
	w := s.NewShard("w")
	id := c.Counter(stats.ClusterUpstreamRqTotal)
	for b.Loop() {
		w.Inc(id)
	}
}

func BenchmarkRecord(b *testing.B) {
	s := stats.NewStore()
	w := s.NewShard("w")
	id := s.Root().Histogram("h", api.Milliseconds)
	v := uint64(0)
	for b.Loop() {
		w.Record(id, v&63)
		v++
	}
}

// many returns a store with ten thousand clusters, one in touched of which was used by two workers.
func many(touched int) *stats.Store {
	s := stats.NewStore()
	w := []*stats.Shard{s.NewShard("worker_0"), s.NewShard("worker_1")}
	for i := range 10000 {
		g := s.Root().Scope("cluster").Scope(fmt.Sprint("service-", i)).Group(stats.Cluster)
		s.SetGauge(g.Gauge(stats.ClusterMembershipTotal), 3)
		if i%touched == 0 {
			for _, w := range w {
				w.Inc(g.Counter(stats.ClusterUpstreamRqTotal))
				w.IncCode(g.Codes(stats.ClusterUpstreamRqCodes), 200)
				w.Record(g.Histogram(stats.ClusterUpstreamRqTime), 3)
			}
		}
	}
	collect(s)
	s.Flush()
	return s
}

func BenchmarkSnapshot10kTouched(b *testing.B) {
	s := many(1)
	w := s.Shards()[1]
	for b.Loop() {
		sn := s.Begin(w)
		w.Snapshot(sn)
		s.Collect(sn)
	}
}

func BenchmarkFlush10kTouched(b *testing.B) {
	s := many(1)
	for b.Loop() {
		s.Flush()
	}
}

func benchmarkOutput(b *testing.B, open func(s *stats.Store) stats.Output) {
	s := many(10)
	buf := make([]byte, 0, 1<<20)
	total := 0
	for b.Loop() {
		total = 0
		o, more := open(s), true
		for more {
			buf, more = o.Next(buf[:0], 1<<16)
			total += len(buf)
		}
	}
	b.ReportMetric(float64(total)/1e6, "MB")
}

func BenchmarkText10k(b *testing.B) {
	benchmarkOutput(b, func(s *stats.Store) stats.Output { return s.Text(stats.Query{}) })
}

func BenchmarkTextUsed10k(b *testing.B) {
	benchmarkOutput(b, func(s *stats.Store) stats.Output { return s.Text(stats.Query{UsedOnly: true}) })
}

func BenchmarkPrometheus10k(b *testing.B) {
	tg := newTagger(b, stats.TagConfig{})
	benchmarkOutput(b, func(s *stats.Store) stats.Output {
		o, _ := s.Prometheus(stats.Query{}, tg)
		return o
	})
}

func BenchmarkPrometheusUsed10k(b *testing.B) {
	tg := newTagger(b, stats.TagConfig{})
	benchmarkOutput(b, func(s *stats.Store) stats.Output {
		o, _ := s.Prometheus(stats.Query{UsedOnly: true}, tg)
		return o
	})
}

func BenchmarkTags(b *testing.B) {
	tg := newTagger(b, stats.TagConfig{})
	var tags []stats.Tag
	for b.Loop() {
		_, tags = tg.Extract("cluster.service-12.external.upstream_rq_200", tags[:0])
	}
}
