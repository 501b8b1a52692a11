package stats_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	api "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/google/go-cmp/cmp"
)

// collect takes a snapshot of every shard on the caller's thread.
func collect(s *stats.Store) {
	var all []*stats.ShardSnapshot
	for _, sh := range s.Shards()[1:] {
		if sn := s.Begin(sh); sn != nil {
			sh.Snapshot(sn)
			all = append(all, sn)
		}
	}
	s.Collect(all...)
}

// shown returns the lines of /stats whose names contain part.
func shown(s *stats.Store, part string) string {
	var out []string
	for line := range strings.Lines(string(stats.WriteAll(s.Text(stats.Query{})))) {
		if strings.Contains(line, part) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestShardsAddUp(t *testing.T) {
	s := stats.NewStore()
	sc := s.Root().Scope("a")
	c, g, h := sc.Counter("c"), sc.Gauge("g"), sc.Histogram("h", api.Milliseconds)
	for i := range 3 {
		sh := s.NewShard(fmt.Sprint("worker_", i))
		sh.Inc(c)
		sh.Add(c, 10)
		sh.GaugeAdd(g, int64(i))
		sh.Record(h, 5)
	}
	last := s.Shards()[3]
	last.GaugeSub(g, 2)
	s.SetGauge(g, 40)
	collect(s)
	s.Flush()
	q := "(5.025,5.025) P25(5.025,5.025) P50(5.05,5.05) P75(5.075,5.075) P90(5.075,5.075) P95(5.075,5.075) P99(5.075,5.075) " +
		"P99.5(5.075,5.075) P99.9(5.075,5.075) P100(5.075,5.075)"
	if d := cmp.Diff("a.c: 33\na.g: 41\na.h: P0"+q+"\n", shown(s, "a.")); d != "" {
		t.Error(d)
	}
	s.CloseShard(last)
	collect(s)
	if got := shown(s, "a.c") + shown(s, "a.g"); got != "a.c: 33\na.g: 41\n" {
		t.Errorf("after a shard was closed: %s", got)
	}
	if s.Begin(last) != nil {
		t.Error("a closed shard can be asked for a snapshot")
	}
}

func TestGauges(t *testing.T) {
	s := stats.NewStore()
	g := s.Root().Gauge("g")
	w := s.NewShard("w")
	if got := used(s); got != "" {
		t.Errorf("an untouched gauge is used: %q", got)
	}
	w.GaugeAdd(g, 3)
	w.GaugeSub(g, 3)
	collect(s)
	if got := used(s); got != "g: 0\n" {
		t.Errorf("a gauge that came back to zero: %q", got)
	}
	w.GaugeSub(g, 1)
	collect(s)
	if got := used(s); got != "g: 0\n" {
		t.Errorf("a gauge below zero: %q", got)
	}
	for _, v := range []uint64{1<<64 - 1, 1 << 63, 1<<63 - 1, 13237225503670494420, 0} {
		other := s.Root().Gauge(fmt.Sprint("v", v))
		s.SetGauge(other, v)
		if got, want := shown(s, fmt.Sprint("v", v)), fmt.Sprintf("v%d: %d\n", v, v); got != want {
			t.Errorf("got %swant %s", got, want)
		}
	}
}

func used(s *stats.Store) string { return string(stats.WriteAll(s.Text(stats.Query{UsedOnly: true}))) }

func TestCodes(t *testing.T) {
	s := stats.NewStore()
	g := s.Root().Scope("cluster.a").Group(stats.Cluster)
	w := s.NewShard("w")
	id := g.Codes(stats.ClusterUpstreamRqCodes)
	for _, code := range []int{200, 200, 404, 418, 599, 100, 600, 99, 0, -1} {
		w.IncCode(id, code)
	}
	collect(s)
	want := `cluster.a.upstream_rq_100: 1
cluster.a.upstream_rq_1xx: 1
cluster.a.upstream_rq_200: 2
cluster.a.upstream_rq_2xx: 2
cluster.a.upstream_rq_404: 1
cluster.a.upstream_rq_418: 1
cluster.a.upstream_rq_4xx: 2
cluster.a.upstream_rq_599: 1
cluster.a.upstream_rq_5xx: 1
cluster.a.upstream_rq_unknown: 4
`
	if d := cmp.Diff(want, used(s)); d != "" {
		t.Error(d)
	}
	o, err := s.Prometheus(stats.Query{UsedOnly: true}, newTagger(t, stats.TagConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	const metric = `envoy_cluster_upstream_rq{envoy_response_code="418",envoy_cluster_name="a"} 1`
	if got := string(stats.WriteAll(o)); !strings.Contains(got, metric) {
		t.Errorf("no %s in\n%s", metric, got)
	}
}

func TestMarkers(t *testing.T) {
	s := stats.NewStore()
	g := s.Root().Scope("cluster.a").Group(stats.Cluster)
	h2 := stats.Cluster.Block(g, stats.ClusterHTTP2)
	collect(s)
	if got := shown(s, "http2."); got != "" {
		t.Errorf("codec stats before the first connection: %s", got)
	}
	s.Main().Inc(h2.Counter(stats.HTTP2InUse))
	s.Main().Inc(h2.Counter(stats.HTTP2TxReset))
	collect(s)
	if got := shown(s, "cluster.a.http2.tx_reset"); got != "cluster.a.http2.tx_reset: 1\n" {
		t.Errorf("got %s", got)
	}
	if got := strings.Count(shown(s, "cluster.a.http2."), "\n"); got != 33 {
		t.Errorf("%d codec stats, want 33", got)
	}
}

// TestZeroIDs counts through ids that nobody gave out: nothing is shown, and nothing else changes.
func TestZeroIDs(t *testing.T) {
	s := stats.NewStore()
	c := s.Root().Counter("c")
	w := s.NewShard("w")
	var zero api.GroupBase
	for i := range api.MaxTemplateCells {
		w.Inc(zero.Counter(api.CounterIndex(i)))
	}
	w.GaugeAdd(zero.Gauge(7), 3)
	w.Record(zero.Histogram(api.MaxTemplateHistograms-1), 3)
	w.IncCode(zero.Codes(0), 418)
	w.Inc(api.CounterID(stats.MaxCells))
	w.Inc(api.CounterID(1<<32 - 1))
	w.Record(api.HistogramID(1<<32-1), 1)
	w.Inc(c)
	s.SetGauge(0, 1)
	s.SetGauge(api.GaugeID(stats.MaxCells), 1)
	s.SetText(0, "x")
	s.SetText(9, "x")
	collect(s)
	s.Flush()
	if got := string(stats.WriteAll(s.Text(stats.Query{}))); got != "c: 1\n" {
		t.Errorf("got %s", got)
	}
	if b := stats.Cluster.Block(zero, stats.ClusterHTTP1); b != zero {
		t.Errorf("a block of the zero group is %v", b)
	}
}

func TestResetCounters(t *testing.T) {
	s := stats.NewStore()
	c, g := s.Root().Counter("c"), s.Root().Gauge("g")
	w := s.NewShard("w")
	w.Add(c, 5)
	w.GaugeAdd(g, 2)
	collect(s)
	s.ResetCounters()
	if got := used(s); got != "c: 0\ng: 2\n" {
		t.Errorf("after the reset: %s", got)
	}
	w.Inc(c)
	collect(s)
	if got := used(s); got != "c: 1\ng: 2\n" {
		t.Errorf("one later: %s", got)
	}
}

func TestSameNameOnce(t *testing.T) {
	s := stats.NewStore()
	a := s.Root().Scope("x").Counter("upstream_rq_total")
	b := s.Root().Counter("x.upstream_rq_total")
	if a != b {
		t.Errorf("ids %d and %d for one name", a, b)
	}
	g := s.Root().Scope("cluster.x").Group(stats.Cluster)
	if again := s.Root().Scope("cluster").Scope("x.").Group(stats.Cluster); again != g {
		t.Errorf("groups %v and %v for one prefix", g, again)
	}
	c := s.Root().Counter("cluster.x.upstream_rq_total")
	s.Main().Inc(c)
	s.Main().Inc(g.Counter(stats.ClusterUpstreamRqTotal))
	collect(s)
	if got := shown(s, "cluster.x.upstream_rq_total"); got != "cluster.x.upstream_rq_total: 2\n" {
		t.Errorf("a name that is in a group and by itself: %s", got)
	}
	const metric = "\nenvoy_cluster_upstream_rq_total{envoy_cluster_name=\"x\"} "
	if got := page(t, s, newTagger(t, stats.TagConfig{})); strings.Count(got, metric) != 1 || !strings.Contains(got, metric+"2\n") {
		t.Errorf("a name that is in a group and by itself, as a metric:\n%s", got)
	}
}

// TestSilentShard checks that a shard that was asked and does not answer keeps its last values and holds nobody up.
func TestSilentShard(t *testing.T) {
	s := stats.NewStore()
	c := s.Root().Counter("c")
	w := s.NewShard("w")
	w.Inc(c)
	collect(s)
	w.Inc(c)
	asked := s.Begin(w)
	if s.Begin(w) != nil {
		t.Error("a second request while the first is open")
	}
	s.Collect()
	if got := used(s); got != "c: 1\n" {
		t.Errorf("got %s", got)
	}
	if silent := s.Silent(); len(silent) != 1 || silent[0] != w {
		t.Errorf("silent shards %v", silent)
	}
	w.Snapshot(asked)
	s.Collect(asked)
	if got := used(s); got != "c: 2\n" || len(s.Silent()) != 0 {
		t.Errorf("after the answer: %s, silent %v", got, s.Silent())
	}
}

func TestSnapshotInSteps(t *testing.T) {
	s := stats.NewStore()
	w := s.NewShard("w")
	for i := range 100 {
		g := s.Root().Scope(fmt.Sprintf("cluster.c%d", i)).Group(stats.Cluster)
		w.Inc(g.Counter(stats.ClusterUpstreamRqTotal))
		w.Record(g.Histogram(stats.ClusterUpstreamRqTime), 1)
	}
	sn, steps := s.Begin(w), 1
	for !w.SnapshotSome(sn, 10) {
		steps++
	}
	s.Collect(sn)
	if n := strings.Count(shown(s, "upstream_rq_total: 1\n"), "\n"); n != 100 || steps < 10 {
		t.Errorf("%d counters in %d steps", n, steps)
	}
}

// TestHotPathsDoNotAllocate: once a stat was touched, counting it costs no memory.
func TestHotPathsDoNotAllocate(t *testing.T) {
	s := stats.NewStore()
	g := s.Root().Scope("cluster.a").Group(stats.Cluster)
	w := s.NewShard("w")
	count := func() {
		w.Inc(g.Counter(stats.ClusterUpstreamRqTotal))
		w.Add(g.Counter(stats.ClusterUpstreamCxRxBytesTotal), 100)
		w.GaugeAdd(g.Gauge(stats.ClusterUpstreamRqActive), 1)
		w.GaugeSub(g.Gauge(stats.ClusterUpstreamRqActive), 1)
		w.IncCode(g.Codes(stats.ClusterUpstreamRqCodes), 200)
		w.IncCode(g.Codes(stats.ClusterUpstreamRqCodes), 418)
		w.Record(g.Histogram(stats.ClusterUpstreamRqTime), 3)
		w.Record(g.Histogram(stats.ClusterUpstreamRqTime), 7000)
		w.Settle()
	}
	count()
	if n := testing.AllocsPerRun(100, count); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRace runs shards, registration, snapshots, removal and output side by side; the race detector is the judge, and no count may
// be lost.
func TestRace(t *testing.T) {
	const workers, rounds, groups = 4, 50, 40
	s := stats.NewStore()
	total := s.Root().Counter("total")
	type work struct {
		g    api.GroupBase
		snap *stats.ShardSnapshot
	}
	in, out := make([]chan work, workers), make(chan *stats.ShardSnapshot, workers)
	var wg sync.WaitGroup
	for i := range workers {
		sh := s.NewShard(fmt.Sprint("worker_", i))
		in[i] = make(chan work, 1)
		wg.Go(func() {
			for m := range in[i] {
				if m.snap != nil {
					sh.Snapshot(m.snap)
					out <- m.snap
					continue
				}
				sh.Inc(total)
				sh.Inc(m.g.Counter(stats.ClusterUpstreamRqTotal))
				sh.GaugeAdd(m.g.Gauge(stats.ClusterUpstreamRqActive), 1)
				sh.Record(m.g.Histogram(stats.ClusterUpstreamRqTime), 5)
				sh.GaugeSub(m.g.Gauge(stats.ClusterUpstreamRqActive), 1)
			}
		})
	}
	shards := s.Shards()[1:]
	for r := range rounds {
		for k := range groups {
			sc := s.Root().Scope(fmt.Sprintf("cluster.c%d_%d", r, k))
			g := sc.Group(stats.Cluster)
			for i := range workers {
				in[i] <- work{g: g}
			}
			if k%2 == 0 {
				sc.Release(stats.Cluster)
			}
		}
		var snaps []*stats.ShardSnapshot
		for i := range workers {
			in[i] <- work{snap: s.Begin(shards[i])}
		}
		for range workers {
			snaps = append(snaps, <-out)
		}
		s.Collect(snaps...)
		s.Flush()
		stats.WriteAll(s.Text(stats.Query{UsedOnly: true}))
	}
	for i := range workers {
		close(in[i])
	}
	wg.Wait()
	collect(s)
	if got, want := shown(s, "total: "), fmt.Sprintf("total: %d\n", workers*rounds*groups); !strings.HasSuffix(got, want) {
		t.Errorf("got %s want %s", got, want)
	}
	if n := strings.Count(shown(s, "upstream_rq_total: 4\n"), "\n"); n != rounds*groups/2 {
		t.Errorf("%d clusters have all their requests, want %d", n, rounds*groups/2)
	}
}

// TestMemoryOfUntouchedClusters holds the promise that a cluster costs nothing until it is used.
func TestMemoryOfUntouchedClusters(t *testing.T) {
	const clusters, limit = 10000, 200
	s := stats.NewStore()
	w := s.NewShard("w")
	names := make([]string, clusters)
	for i := range names {
		names[i] = fmt.Sprintf("outbound|8080||service-%d.default.svc.cluster.local", i)
	}
	before := heap()
	for _, n := range names {
		s.Root().Scope("cluster").Scope(n).Group(stats.Cluster)
	}
	each := (heap() - before) / clusters
	t.Logf("%d bytes a cluster", each)
	if each > limit {
		t.Errorf("an untouched cluster costs %d bytes, want at most %d", each, limit)
	}
	collect(s)
	runtime.KeepAlive(w)
	runtime.KeepAlive(names)
	runtime.KeepAlive(s)
}

// TestMemoryOfALoadedCluster bounds what a cluster costs after the main loop has set what it sets, before any traffic.
func TestMemoryOfALoadedCluster(t *testing.T) {
	const clusters, limit = 10000, 700
	s := stats.NewStore()
	s.NewShard("w")
	before := heap()
	for i := range clusters {
		g := s.Root().Scope("cluster").Scope(fmt.Sprintf("outbound|8080||service-%d.default.svc.cluster.local", i)).Group(stats.Cluster)
		s.SetGauge(g.Gauge(stats.ClusterMembershipTotal), 3)
		s.SetGauge(g.Gauge(stats.ClusterMembershipHealthy), 3)
		s.SetGauge(g.Gauge(stats.ClusterMaxHostWeight), 1)
		s.Main().Inc(g.Counter(stats.ClusterMembershipChange))
		s.Main().Inc(g.Counter(stats.ClusterUpdateSuccess))
	}
	collect(s)
	each := (heap() - before) / clusters
	t.Logf("%d bytes a cluster", each)
	if each > limit {
		t.Errorf("a loaded cluster costs %d bytes, want at most %d", each, limit)
	}
	runtime.KeepAlive(s)
}

// TestMemoryOfATouchedCluster logs and bounds what a request to each of many clusters costs a worker.
func TestMemoryOfATouchedCluster(t *testing.T) {
	const clusters, limit = 1000, 2600
	s := stats.NewStore()
	w := s.NewShard("w")
	groups := make([]api.GroupBase, clusters)
	for i := range groups {
		groups[i] = s.Root().Scope("cluster").Scope(fmt.Sprint(i)).Group(stats.Cluster)
	}
	before := heap()
	for _, g := range groups {
		w.Inc(g.Counter(stats.ClusterUpstreamRqTotal))
		w.IncCode(g.Codes(stats.ClusterUpstreamRqCodes), 200)
		w.IncCode(stats.Cluster.Block(g, stats.ClusterExternal).Codes(stats.ClusterCodesUpstreamRq), 200)
		w.Record(g.Histogram(stats.ClusterUpstreamRqTime), 3)
		w.Settle()
	}
	each := (heap() - before) / clusters
	t.Logf("%d bytes a touched cluster and worker", each)
	if each > limit {
		t.Errorf("a touched cluster costs %d bytes, want at most %d", each, limit)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(groups)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
