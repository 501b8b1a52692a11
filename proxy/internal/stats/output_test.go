package stats_test

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	api "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/google/go-cmp/cmp"
)

// sized is a store with what Envoy 1.40 had when the expected pages were recorded: clusters with known response sizes.
func sized(t *testing.T) *stats.Store {
	t.Helper()
	s := stats.NewStore()
	w := s.NewShard("worker_0")
	sizes := func(name string, values ...uint64) {
		g := s.Root().Scope("cluster").Scope(name).Group(stats.RequestResponseSizes)
		for _, v := range values {
			w.Record(g.Histogram(stats.SizesUpstreamRsBodySize), v)
		}
	}
	values := slices.Concat(slices.Repeat([]uint64{3}, 7), slices.Repeat([]uint64{42}, 11), slices.Repeat([]uint64{250}, 3),
		slices.Repeat([]uint64{10}, 200), []uint64{499, 500, 501, 2500, 2499, 2549, 2600, 5000, 5099})
	sizes("h2", 1)
	sizes("h4", values...)
	s.Root().Scope("cluster.h2").Counter("upstream_cx_total")
	w.Inc(s.Root().Scope("cluster.h2").Counter("upstream_cx_total"))
	s.SetGauge(s.Root().Gauge("server.version"), 10376576)
	s.SetText(s.Root().Scope("listener_manager.lds").Text("version_text"), `v "q" 1`)
	s.Root().Scope("listener.admin").Histogram("connections_accepted_per_socket_event", api.Unspecified)
	collect(s)
	s.Flush()
	return s
}

// quantile lines of the cluster h4, cumulative; the interval is what the second line of a pair has.
const (
	h2Text = "P0(nan,1.05) P25(nan,1.05) P50(nan,1.05) P75(nan,1.05) P90(nan,1.05) P95(nan,1.05) P99(nan,1.05) P99.5(nan,1.05) " +
		"P99.9(nan,1.05) P100(nan,1.05)"
	h4Text = "P0(nan,3.0125) P25(nan,10.253731343283581) P50(nan,10.537313432835822) P75(nan,10.82587064676617) " +
		"P90(nan,10.99502487562189) P95(nan,252.5) P99(nan,2650) P99.5(nan,5033.333333333333) P99.9(nan,5066.666666666667) " +
		"P100(nan,5066.666666666667)"
	nulls = `{"cumulative":null,"interval":null}`
)

func repeat(n int, s string) string { return strings.Join(slices.Repeat([]string{s}, n), ",") }

func TestText(t *testing.T) {
	s := sized(t)
	s.Flush() // nothing came in the last interval
	filter := regexp.MustCompile("rs_body_size|cx_total|version|admin.conn")
	head := "listener_manager.lds.version_text: \"v \"q\" 1\"\ncluster.h2.upstream_cx_total: 1\nserver.version: 10376576\n"
	none := "listener.admin.connections_accepted_per_socket_event: No recorded values\n"
	for _, tc := range []struct {
		name  string
		query stats.Query
		want  string
	}{
		{"all", stats.Query{}, head + "cluster.h2.upstream_rs_body_size: " + h2Text + "\ncluster.h4.upstream_rs_body_size: " + h4Text + "\n" + none},
		{"used", stats.Query{UsedOnly: true}, head + "cluster.h2.upstream_rs_body_size: " + h2Text +
			"\ncluster.h4.upstream_rs_body_size: " + h4Text + "\n"},
		{"counters", stats.Query{Types: stats.CountersOnly}, "cluster.h2.upstream_cx_total: 1\n"},
		{"gauges", stats.Query{Types: stats.GaugesOnly}, "server.version: 10376576\n"},
		{"texts", stats.Query{Types: stats.TextsOnly}, "listener_manager.lds.version_text: \"v \"q\" 1\"\n"},
		{"cumulative", stats.Query{Types: stats.HistogramsOnly, UsedOnly: true, Buckets: stats.BucketsCumulative},
			"cluster.h2.upstream_rs_body_size: B0.5(0,0) B1(0,1) B5(0,1) B10(0,1) B25(0,1) B50(0,1) B100(0,1) B250(0,1) B500(0,1) " +
				"B1000(0,1) B2500(0,1) B5000(0,1) B10000(0,1) B30000(0,1) B60000(0,1) B300000(0,1) B600000(0,1) B1.8e+06(0,1) B3.6e+06(0,1)\n" +
				"cluster.h4.upstream_rs_body_size: B0.5(0,0) B1(0,0) B5(0,7) B10(0,207) B25(0,207) B50(0,218) B100(0,218) B250(0,221) " +
				"B500(0,224) B1000(0,224) B2500(0,227) B5000(0,230) B10000(0,230) B30000(0,230) B60000(0,230) B300000(0,230) " +
				"B600000(0,230) B1.8e+06(0,230) B3.6e+06(0,230)\n"},
		{"disjoint", stats.Query{Types: stats.HistogramsOnly, UsedOnly: true, Buckets: stats.BucketsDisjoint},
			"cluster.h2.upstream_rs_body_size: B0.5(0,0) B1(0,1) B5(0,0) B10(0,0) B25(0,0) B50(0,0) B100(0,0) B250(0,0) B500(0,0) " +
				"B1000(0,0) B2500(0,0) B5000(0,0) B10000(0,0) B30000(0,0) B60000(0,0) B300000(0,0) B600000(0,0) B1.8e+06(0,0) B3.6e+06(0,0)\n" +
				"cluster.h4.upstream_rs_body_size: B0.5(0,0) B1(0,0) B5(0,7) B10(0,200) B25(0,0) B50(0,11) B100(0,0) B250(0,3) B500(0,3) " +
				"B1000(0,0) B2500(0,3) B5000(0,3) B10000(0,0) B30000(0,0) B60000(0,0) B300000(0,0) B600000(0,0) B1.8e+06(0,0) B3.6e+06(0,0)\n"},
		{"detailed", stats.Query{Types: stats.HistogramsOnly, UsedOnly: true, Buckets: stats.BucketsDetailed},
			"cluster.h2.upstream_rs_body_size:\n  totals=1,0.1:1\n  intervals=\n  summary=" + h2Text +
				"\ncluster.h4.upstream_rs_body_size:\n  totals=3,0.1:7, 10,1:200, 42,1:11, 250,10:3, 490,10:1, 500,10:2, 2400,100:1, " +
				"2500,100:2, 2600,100:1, 5000,100:2\n  intervals=\n  summary=" + h4Text + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.query.Filter = filter
			if d := cmp.Diff(tc.want, string(stats.WriteAll(s.Text(tc.query)))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestInterval(t *testing.T) {
	s := sized(t)
	w := s.Shards()[1]
	g := s.Root().Scope("cluster.h2").Group(stats.RequestResponseSizes)
	w.Record(g.Histogram(stats.SizesUpstreamRsBodySize), 1)
	collect(s)
	s.Flush()
	want := "cluster.h2.upstream_rs_body_size: P0(1.05,1.0333333333333334) P25(1.05,1.0333333333333334) P50(1.05,1.0333333333333334) " +
		"P75(1.05,1.0666666666666667) P90(1.05,1.0666666666666667) P95(1.05,1.0666666666666667) P99(1.05,1.0666666666666667) " +
		"P99.5(1.05,1.0666666666666667) P99.9(1.05,1.0666666666666667) P100(1.05,1.0666666666666667)\n"
	if d := cmp.Diff(want, shown(s, "h2.upstream_rs_body")); d != "" {
		t.Error(d)
	}
}

func TestJSON(t *testing.T) {
	s := sized(t)
	s.Flush()
	counters := `{"name":"cluster.h2.upstream_cx_total","value":1},{"name":"server.version","value":10376576}`
	h2 := func(key string) string {
		return `{"name":"cluster.h2.upstream_rs_body_size",` + key + `[` + repeat(10, `{"cumulative":1.05,"interval":null}`) + `]}`
	}
	admin := `{"name":"listener.admin.connections_accepted_per_socket_event",`
	const quantiles = `[0,25,50,75,90,95,99,99.5,99.9,100]`
	for _, tc := range []struct {
		name, filter string
		query        stats.Query
		want         string
	}{
		{"counters and gauges", "cx_total|server.version", stats.Query{}, `{"stats":[` + counters + `]}`},
		{"nothing", "nothing", stats.Query{}, `{"stats":[]}`},
		{"texts", "", stats.Query{Types: stats.TextsOnly}, `{"stats":[{"name":"listener_manager.lds.version_text","value":"v \"q\" 1"}]}`},
		{"summary", "h2.*(rs_body|cx_total)|server.version|admin.conn", stats.Query{}, `{"stats":[` + counters +
			`,{"histograms":{"supported_quantiles":` + quantiles + `,"computed_quantiles":[` + h2(`"values":`) + `,` + admin + `"values":[` +
			repeat(10, nulls) + `]}]}}]}`},
		{"detailed", "h2.upstream_rs_body|admin.conn", stats.Query{Types: stats.HistogramsOnly, Buckets: stats.BucketsDetailed},
			`{"stats":[{"histograms":{"supported_percentiles":` + quantiles + `,"details":[` +
				h2(`"totals":[{"lower_bound":1,"width":0.1,"count":1}],"intervals":[],"percentiles":`) + `,` + admin +
				`"totals":[],"intervals":[],"percentiles":[` + repeat(10, nulls) + `]}]}}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.query.Filter = regexp.MustCompile(tc.filter)
			if d := cmp.Diff(tc.want, string(stats.WriteAll(s.JSON(tc.query)))); d != "" {
				t.Error(d)
			}
		})
	}
	cumulative := string(stats.WriteAll(s.JSON(stats.Query{Buckets: stats.BucketsCumulative, Filter: regexp.MustCompile("h4.upstream_rs_body")})))
	for _, part := range []string{`{"stats":[{"histograms":[{"name":"cluster.h4.upstream_rs_body_size","buckets":[{"upper_bound":0.5,`,
		`{"upper_bound":60000,"interval":0,"cumulative":230},{"upper_bound":3e+05,"interval":0,"cumulative":230},`,
		`{"upper_bound":3600000,"interval":0,"cumulative":230}]}]}]}`} {
		if !strings.Contains(cumulative, part) {
			t.Errorf("no %s in\n%s", part, cumulative)
		}
	}
	detailed := string(stats.WriteAll(s.JSON(stats.Query{Buckets: stats.BucketsDetailed, Filter: regexp.MustCompile("h4.upstream_rs_body")})))
	if part := `{"lower_bound":490.00000000000006,"width":10,"count":1}`; !strings.Contains(detailed, part) {
		t.Errorf("no %s in\n%s", part, detailed)
	}
}

const promH2 = `# TYPE envoy_cluster_upstream_rs_body_size histogram
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="0.5"} 0
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="1"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="5"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="10"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="25"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="50"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="100"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="250"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="500"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="1000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="2500"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="5000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="10000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="30000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="60000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="300000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="600000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="1800000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="3600000"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="+Inf"} 1
envoy_cluster_upstream_rs_body_size_sum{envoy_cluster_name="h2"} 1.0476190476190476719153821250075
envoy_cluster_upstream_rs_body_size_count{envoy_cluster_name="h2"} 1
`

const promSummary = `# TYPE envoy_cluster_upstream_rs_body_size summary
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.25"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.5"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.75"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.9"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.95"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.99"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.995"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="0.999"} nan
envoy_cluster_upstream_rs_body_size{envoy_cluster_name="h2",quantile="1"} nan
envoy_cluster_upstream_rs_body_size_sum{envoy_cluster_name="h2"} 0
envoy_cluster_upstream_rs_body_size_count{envoy_cluster_name="h2"} 0
`

func TestPrometheus(t *testing.T) {
	s := sized(t)
	s.Flush()
	tg := newTagger(t, stats.TagConfig{})
	head := "# TYPE envoy_cluster_upstream_cx_total counter\nenvoy_cluster_upstream_cx_total{envoy_cluster_name=\"h2\"} 1\n" +
		"# TYPE envoy_server_version gauge\nenvoy_server_version{} 10376576\n"
	text := "# TYPE envoy_listener_manager_lds_version_text gauge\n" +
		`envoy_listener_manager_lds_version_text{text_value="v \"q\" 1"} 0` + "\n"
	for _, tc := range []struct {
		name  string
		query stats.Query
		want  string
	}{
		{"default", stats.Query{}, head + promH2},
		{"types do not matter", stats.Query{Types: stats.CountersOnly}, head + promH2},
		{"with texts", stats.Query{Texts: true}, head + text + promH2},
		{"summary", stats.Query{Buckets: stats.BucketsSummary}, head + promSummary},
		{"none is a summary", stats.Query{Buckets: stats.BucketsNone}, head + promSummary},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.query.Filter = regexp.MustCompile("h2.upstream_rs_body_size|server.version|cx_total|version_text")
			o, err := s.Prometheus(tc.query, tg)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, string(stats.WriteAll(o))); d != "" {
				t.Error(d)
			}
		})
	}
	for _, b := range []stats.Buckets{stats.BucketsDisjoint, stats.BucketsDetailed} {
		if _, err := s.Prometheus(stats.Query{Buckets: b}, tg); !errors.Is(err, stats.ErrPrometheusBuckets) {
			t.Errorf("buckets %d: error %v", b, err)
		}
	}
}

// TestOrder has names whose order depends on how they are compared: byte by byte for text, token by token for Prometheus.
func TestOrder(t *testing.T) {
	s := stats.NewStore()
	for _, c := range []string{"q.m-n", "q.m.n", "q.m", "q.m_n", "a0", "a-b", "a"} {
		s.Root().Scope("cluster").Scope(c).Group(api.MustTemplate("t", api.Counter(0, "rq")))
	}
	s.Root().Counter("cluster_manager.x")
	collect(s)
	wantText := "cluster.a-b.rq: 0\ncluster.a.rq: 0\ncluster.a0.rq: 0\ncluster.q.m-n.rq: 0\ncluster.q.m.n.rq: 0\ncluster.q.m.rq: 0\n" +
		"cluster.q.m_n.rq: 0\ncluster_manager.x: 0\n"
	if d := cmp.Diff(wantText, string(stats.WriteAll(s.Text(stats.Query{})))); d != "" {
		t.Error(d)
	}
	const label = `{envoy_cluster_name=`
	wantProm := "# TYPE envoy_cluster_m_n_rq counter\nenvoy_cluster_m_n_rq" + label + "\"q\"} 0\n" + // m.n
		"# TYPE envoy_cluster_m_rq counter\nenvoy_cluster_m_rq" + label + "\"q\"} 0\n" +
		"# TYPE envoy_cluster_m_n_rq counter\nenvoy_cluster_m_n_rq" + label + "\"q\"} 0\n" + // m-n
		"# TYPE envoy_cluster_m_n_rq counter\nenvoy_cluster_m_n_rq" + label + "\"q\"} 0\n" + // m_n
		"# TYPE envoy_cluster_rq counter\nenvoy_cluster_rq" + label + "\"a\"} 0\nenvoy_cluster_rq" + label + "\"a-b\"} 0\n" +
		"envoy_cluster_rq" + label + "\"a0\"} 0\n" +
		"# TYPE envoy_cluster_manager_x counter\nenvoy_cluster_manager_x{} 0\n"
	if d := cmp.Diff(wantProm, page(t, s, newTagger(t, stats.TagConfig{}))); d != "" {
		t.Error(d)
	}
}

// TestMixedMetric has a metric that two kinds of groups and a single stat share, under prefixes that begin with one another.
func TestMixedMetric(t *testing.T) {
	s := stats.NewStore()
	rbac := api.MustTemplate("rbac", api.Counter(0, "allowed"), api.Counter(1, "seen"))
	s.Root().Scope("http.ing.rbac.rsp").Group(rbac)
	s.Root().Scope("http.ing.rbac").Group(rbac)
	s.Root().Scope("http.ing.rbac.zz").Group(api.MustTemplate("other", api.Counter(0, "seen")))
	s.Root().Counter("http.ing.rbac.rs.seen")
	want := `# TYPE envoy_http_rbac_allowed counter
envoy_http_rbac_allowed{envoy_http_conn_manager_prefix="ing"} 0
envoy_http_rbac_allowed{envoy_rbac_http_prefix="rsp",envoy_http_conn_manager_prefix="ing"} 0
# TYPE envoy_http_rbac_seen counter
envoy_http_rbac_seen{envoy_rbac_http_prefix="rs",envoy_http_conn_manager_prefix="ing"} 0
envoy_http_rbac_seen{envoy_rbac_http_prefix="rsp",envoy_http_conn_manager_prefix="ing"} 0
envoy_http_rbac_seen{envoy_http_conn_manager_prefix="ing"} 0
envoy_http_rbac_seen{envoy_rbac_http_prefix="zz",envoy_http_conn_manager_prefix="ing"} 0
`
	if d := cmp.Diff(want, page(t, s, newTagger(t, stats.TagConfig{}))); d != "" {
		t.Error(d)
	}
}

// TestPieces writes each page in small pieces and compares it with the whole.
func TestPieces(t *testing.T) {
	s := sized(t)
	s.Root().Scope("cluster.x").Group(stats.Cluster)
	collect(s)
	tg := newTagger(t, stats.TagConfig{})
	for name, open := range map[string]func() stats.Output{
		"text": func() stats.Output { return s.Text(stats.Query{}) },
		"json": func() stats.Output { return s.JSON(stats.Query{}) },
		"prometheus": func() stats.Output {
			o, err := s.Prometheus(stats.Query{Texts: true}, tg)
			if err != nil {
				t.Fatal(err)
			}
			return o
		},
	} {
		whole, o := stats.WriteAll(open()), open()
		var got []byte
		pieces := 0
		for more := true; more; pieces++ {
			var piece []byte
			piece, more = o.Next(nil, 100)
			got = append(got, piece...)
			if len(piece) > 3000 {
				t.Errorf("%s: a piece of %d bytes", name, len(piece))
			}
		}
		if d := cmp.Diff(string(whole), string(got)); d != "" || pieces < 10 {
			t.Errorf("%s: %d pieces: %s", name, pieces, d)
		}
		if rest, more := o.Next(nil, 1); more || len(rest) > 0 {
			t.Errorf("%s: %q after the end", name, rest)
		}
	}
}

func TestMatcherAndBuckets(t *testing.T) {
	s := sized(t)
	s.SetMatcher(func(name []byte) bool { return strings.HasPrefix(string(name), "server.") })
	s.SetBuckets(func(name string) []float64 {
		if strings.HasPrefix(name, "cluster.h2.") {
			return []float64{10, 100}
		}
		return nil
	})
	if got := shown(s, "server"); got != "" {
		t.Errorf("rejected stats: %s", got)
	}
	o, err := s.Prometheus(stats.Query{Filter: regexp.MustCompile("server|h2.upstream_rs_body")}, newTagger(t, stats.TagConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	want := `# TYPE envoy_cluster_upstream_rs_body_size histogram
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="10"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="100"} 1
envoy_cluster_upstream_rs_body_size_bucket{envoy_cluster_name="h2",le="+Inf"} 1
envoy_cluster_upstream_rs_body_size_sum{envoy_cluster_name="h2"} 1.0476190476190476719153821250075
envoy_cluster_upstream_rs_body_size_count{envoy_cluster_name="h2"} 1
`
	if d := cmp.Diff(want, string(stats.WriteAll(o))); d != "" {
		t.Error(d)
	}
}

func TestLatch(t *testing.T) {
	s := stats.NewStore()
	w := s.NewShard("w")
	c, g, h := s.Root().Counter("c"), s.Root().Gauge("g"), s.Root().Histogram("h", api.Milliseconds)
	s.Root().Counter("unused")
	latch := func() (out []string) {
		collect(s)
		s.Flush()
		s.Latch(func(sm *stats.Sample) {
			switch sm.Kind {
			case api.KindHistogram:
				out = append(out, string(sm.Name), itoa(sm.Cumulative.Count()), itoa(sm.Interval.Count()))
			default:
				out = append(out, string(sm.Name), itoa(sm.Value), itoa(sm.Delta))
			}
		})
		return out
	}
	w.Add(c, 5)
	w.GaugeAdd(g, 2)
	w.Record(h, 1)
	if d := cmp.Diff([]string{"c", "5", "5", "g", "2", "0", "h", "1", "1"}, latch()); d != "" {
		t.Error(d)
	}
	w.Add(c, 3)
	w.Record(h, 1)
	if d := cmp.Diff([]string{"c", "8", "3", "g", "2", "0", "h", "2", "1"}, latch()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"c", "8", "0", "g", "2", "0", "h", "2", "0"}, latch()); d != "" {
		t.Error(d)
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]stats.Types{"": stats.AllTypes, "All": stats.AllTypes, "Counters": stats.CountersOnly,
		"Gauges": stats.GaugesOnly, "Histograms": stats.HistogramsOnly, "TextReadouts": stats.TextsOnly} {
		if got, ok := stats.ParseTypes(in); got != want || !ok {
			t.Errorf("type %q is %v, %v", in, got, ok)
		}
	}
	for in, want := range map[string]stats.Buckets{"": stats.BucketsUnset, "none": stats.BucketsNone, "cumulative": stats.BucketsCumulative,
		"disjoint": stats.BucketsDisjoint, "detailed": stats.BucketsDetailed, "summary": stats.BucketsSummary} {
		if got, ok := stats.ParseBuckets(in); got != want || !ok {
			t.Errorf("buckets %q is %v, %v", in, got, ok)
		}
	}
	if _, ok := stats.ParseTypes("counters"); ok {
		t.Error("type counters is accepted")
	}
	if _, ok := stats.ParseBuckets("x"); ok {
		t.Error("buckets x is accepted")
	}
}

func itoa(v uint64) string { return strconv.FormatUint(v, 10) }
