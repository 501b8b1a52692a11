package stats_test

import (
	"testing"

	api "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestReleasedGroupIsReused(t *testing.T) {
	s := stats.NewStore()
	w := s.NewShard("w")
	old := s.Root().Scope("cluster.old")
	g := old.Group(stats.Cluster)
	w.Inc(g.Counter(stats.ClusterUpstreamRqTotal))
	w.Record(g.Histogram(stats.ClusterUpstreamRqTime), 5)
	w.IncCode(g.Codes(stats.ClusterUpstreamRqCodes), 418)
	s.SetGauge(g.Gauge(stats.ClusterMembershipTotal), 3)
	s.SetGauge(g.Gauge(stats.ClusterVersion), 1<<63)
	collect(s)
	s.Flush()
	old.Release(stats.Cluster)
	if got := shown(s, "cluster.old"); got != "" {
		t.Errorf("a released group shows %s", got)
	}
	if again := old.Group(stats.Cluster); again == g {
		t.Error("ids are given out again before anybody cleared them")
	}
	old.Release(stats.Cluster)
	for range 4 {
		collect(s)
	}
	if n := s.Released(); n != 0 {
		t.Fatalf("%d groups have not come back", n)
	}
	new1, new2 := s.Root().Scope("cluster.n1").Group(stats.Cluster), s.Root().Scope("cluster.n2").Group(stats.Cluster)
	if new1 != g && new2 != g {
		t.Errorf("ids of the old group %v are not reused: %v, %v", g, new1, new2)
	}
	s.Flush()
	if got := used(s); got != "" {
		t.Errorf("the new groups begin with %s", got)
	}
}

// TestReleaseWaitsForGauges: a worker that still has a request of the old cluster keeps the ids from being reused.
func TestReleaseWaitsForGauges(t *testing.T) {
	s := stats.NewStore()
	w, other := s.NewShard("w"), s.NewShard("other")
	sc := s.Root().Scope("cluster.old")
	g := sc.Group(stats.Cluster)
	active, total := g.Gauge(stats.ClusterUpstreamRqActive), g.Counter(stats.ClusterUpstreamRqTotal)
	w.GaugeAdd(active, 1)
	sc.Release(stats.Cluster)
	for range 5 {
		collect(s)
	}
	if s.Released() != 1 {
		t.Fatal("the ids came back while a request was active")
	}
	w.Inc(total)
	other.GaugeSub(active, 1) // the request moved and ended on another thread
	for range 4 {
		collect(s)
	}
	if s.Released() != 0 {
		t.Fatal("the ids did not come back")
	}
}

// TestReleaseOfWhatTheMainLoopHolds: gauges that were set do not keep a group, those that the main loop counts itself do.
func TestReleaseOfWhatTheMainLoopHolds(t *testing.T) {
	s := stats.NewStore()
	sc := s.Root().Scope("cluster.old")
	g := sc.Group(stats.Cluster)
	s.SetGauge(g.Gauge(stats.ClusterMembershipTotal), 3)
	s.Main().GaugeAdd(g.Gauge(stats.ClusterUpstreamRqActive), 1)
	sc.Release(stats.Cluster)
	for range 5 {
		collect(s)
	}
	if s.Released() != 1 {
		t.Fatal("the ids came back while the main loop had a request")
	}
	s.Main().GaugeSub(g.Gauge(stats.ClusterUpstreamRqActive), 1)
	for range 4 {
		collect(s)
	}
	if s.Released() != 0 {
		t.Fatal("the ids did not come back")
	}
}

// TestReleaseSeesLateCounts: what is counted between the clearing and the second look does not leak into the next group.
func TestReleaseSeesLateCounts(t *testing.T) {
	s := stats.NewStore()
	w := s.NewShard("w")
	template := api.MustTemplate("t", api.Counter(0, "c"))
	sc := s.Root().Scope("old")
	c := sc.Group(template).Counter(0)
	sc.Release(template)
	for range 2 {
		collect(s) // seen at rest, then cleared
	}
	w.Inc(c)
	collect(s)
	if s.Released() != 1 {
		t.Fatal("a late count went unnoticed")
	}
	for range 4 {
		collect(s)
	}
	if s.Released() != 0 {
		t.Fatal("the id did not come back")
	}
	if s.Root().Scope("new").Group(template).Counter(0) != c {
		t.Fatal("the id is not reused")
	}
	collect(s)
	if got := string(stats.WriteAll(s.Text(stats.Query{}))); got != "new.c: 0\n" {
		t.Errorf("got %s", got)
	}
}

// TestReleaseWaitsForAllShards: a shard that does not answer holds the ids back, however often the others do.
func TestReleaseWaitsForAllShards(t *testing.T) {
	s := stats.NewStore()
	w := s.NewShard("w")
	stuck := s.NewShard("stuck")
	sc := s.Root().Scope("cluster.old")
	sc.Group(stats.Cluster)
	sc.Release(stats.Cluster)
	asked := s.Begin(stuck)
	for range 6 {
		sn := s.Begin(w)
		w.Snapshot(sn)
		s.Collect(sn)
	}
	if s.Released() != 1 {
		t.Fatal("the ids came back without the stuck shard")
	}
	stuck.Snapshot(asked)
	s.Collect(asked)
	for range 4 {
		collect(s)
	}
	if s.Released() != 0 {
		t.Fatal("the ids did not come back")
	}
}

func TestHolders(t *testing.T) {
	s := stats.NewStore()
	a, b := s.Root().Scope("http.p"), s.Root().Scope("http.p")
	a.Group(stats.HCM)
	b.Group(stats.HCM)
	a.Release(stats.HCM)
	if shown(s, "http.p.downstream_rq_total") == "" {
		t.Error("one of two holders released, and the group is gone")
	}
	b.Release(stats.HCM)
	b.Release(stats.HCM) // once too often
	if got := shown(s, "http.p."); got != "" {
		t.Errorf("all holders released: %s", got)
	}
}

func TestDropPrefix(t *testing.T) {
	s := stats.NewStore()
	sc := s.Root().Scope("listener.a")
	sc.Group(stats.Listener)
	sc.Group(stats.Listener)
	sc.Counter("x")
	sc.Text("t")
	s.Root().Counter("other")
	s.SetText(s.Root().Text("u"), "v")
	s.DropPrefix("listener.a.")
	if got := string(stats.WriteAll(s.Text(stats.Query{}))); got != "u: \"v\"\nother: 0\n" {
		t.Errorf("got %s", got)
	}
	for range 4 {
		collect(s)
	}
	if s.Released() != 0 {
		t.Error("the ids did not come back")
	}
}
