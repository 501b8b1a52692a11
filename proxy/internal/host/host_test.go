package host_test

import (
	"net/netip"
	"testing"
	"unsafe"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// The layout keeps what requests count on a cache line of its own, and a host small.
func TestLayout(t *testing.T) {
	if n := unsafe.Sizeof(host.Host{}); n != 192 {
		t.Errorf("a host takes %d bytes, want 192", n)
	}
	if n := unsafe.Offsetof(host.Host{}.Stats); n != 128 {
		t.Errorf("the counters begin at %d, want 128", n)
	}
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		flags    host.Flag
		want     host.Health
		excluded bool
		text     string
	}{
		{0, host.Healthy, false, "healthy"},
		{host.Removed, host.Healthy, false, "healthy"},
		{host.ActiveHCTimeout, host.Healthy, false, "/active_hc_timeout"},
		{host.FailedActiveHC, host.Unhealthy, false, "/failed_active_hc"},
		{host.FailedActiveHC | host.PendingActiveHC, host.Unhealthy, true, "/failed_active_hc/pending_active_hc"},
		{host.FailedOutlierCheck | host.DegradedActiveHC, host.Unhealthy, false, "/failed_outlier_check/degraded_active_hc"},
		{host.DegradedEDSHealth, host.Degraded, false, "/degraded_eds_health"},
		{host.EDSStatusDraining, host.Unhealthy, true, "/eds_status_draining"},
	} {
		h := host.New(network.AddrFrom(netip.MustParseAddrPort("10.0.0.1:80")), "")
		if c.flags != 0 && !h.SetFlag(c.flags, true) || h.SetFlag(c.flags, true) {
			t.Error("SetFlag does not tell changes")
		}
		if h.Health() != c.want || h.Excluded() != c.excluded || string(h.AppendFlags(nil)) != c.text {
			t.Errorf("%s: got %v, %v, %s", c.text, h.Health(), h.Excluded(), h.AppendFlags(nil))
		}
		h.SetFlag(c.flags, false)
		if h.Health() != host.Healthy {
			t.Error("flags do not go away")
		}
	}
}
