package stats_test

import (
	"testing"

	api "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// TestIndices checks that an index constant stands for the name that it spells, at the places where a shift by one would do most
// harm: the ends of templates and of blocks.
func TestIndices(t *testing.T) {
	for _, tc := range []struct {
		template *api.Template
		kind     api.Kind
		at       int
		name     string
	}{
		{stats.Cluster, api.KindCounter, int(stats.ClusterUpstreamRqTotal), "upstream_rq_total"},
		{stats.Cluster, api.KindGauge, int(stats.ClusterWarmingState), "warming_state"},
		{stats.Cluster, api.KindGauge, int(stats.ClusterCircuitBreakersHighRqRetryOpen), "circuit_breakers.high.rq_retry_open"},
		{stats.Cluster, api.KindCounter, int(stats.ClusterUpstreamRqCodes) + 1, "upstream_rq_2xx"},
		{stats.Cluster, api.KindCounter, int(stats.ClusterUpstreamRqCodes) + int(api.CodeSlot(200)), "upstream_rq_200"},
		{stats.Cluster, api.KindCounter, int(stats.ClusterUpstreamRqCodes) + int(api.CodeSlot(501)), "upstream_rq_501"},
		{stats.Cluster, api.KindCounter, int(stats.ClusterExternal) + int(stats.ClusterCodesUpstreamRqCompleted), "external.upstream_rq_completed"},
		{stats.Cluster, api.KindCounter, int(stats.ClusterHTTP2) + int(stats.HTTP2TxReset), "http2.tx_reset"},
		{stats.Cluster, api.KindHistogram, int(stats.ClusterUpstreamRqTime), "upstream_rq_time"},
		{stats.HCM, api.KindCounter, int(stats.HCMRsTooLarge), "rs_too_large"},
		{stats.SSL, api.KindCounter, int(stats.SSLVersion(0x0304)), "versions.TLSv1.3"},
		{stats.SSL, api.KindCounter, int(stats.SSLCipher(0xffff)), "ciphers.unknown_ssl_cipher"},
		{stats.SSL, api.KindCounter, int(stats.SSLCurve(4588)), "curves.X25519MLKEM768"},
		{stats.SSL, api.KindCounter, int(stats.SSLSigalg(0x0203)), "sigalgs.ecdsa_sha1"},
	} {
		found := ""
		for _, st := range tc.template.Stats() {
			if int(st.At) == tc.at && st.Kind == tc.kind {
				found = st.Name
			}
		}
		if found != tc.name {
			t.Errorf("%s %d is %q, want %q", tc.template.Name(), tc.at, found, tc.name)
		}
	}
}

// TestHotCellsShareAPage checks the layout that the templates promise: what a request counts in a cluster lies in one page.
func TestHotCellsShareAPage(t *testing.T) {
	const page = 32
	for _, at := range []int{
		int(stats.ClusterUpstreamRqTotal), int(stats.ClusterUpstreamRqActive), int(stats.ClusterUpstreamCxTxBytesTotal),
		int(stats.ClusterUpstreamRqCodes) + 1, int(stats.ClusterUpstreamRqCodes) + int(api.CodeSlot(200)),
		int(stats.ClusterUpstreamRqCodes) + int(api.CodeSlot(503)),
	} {
		if at >= page {
			t.Errorf("cell %d is not in the first page", at)
		}
	}
	if int(stats.ClusterExternal)%page != 0 {
		t.Errorf("the external block begins at %d", stats.ClusterExternal)
	}
}
