package lb_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

// zone is a place with so many hosts, the first ones ill.
type zone struct {
	name     string
	all, ill int
}

func zoneSet(list ...zone) lb.HostSet {
	var all []*host.Host
	var at []lb.LocalitySet
	for _, z := range list {
		hs := hosts(make([]uint32, z.all))
		for i, h := range hs {
			h.Hostname = z.name
			h.SetFlag(host.FailedEDSHealth, i < z.ill)
		}
		s := lb.NewHostSet(hs)
		at = append(at, lb.LocalitySet{Place: &host.Locality{Zone: z.name}, Hosts: hs, Healthy: s.Healthy, Degraded: s.Degraded})
		all = append(all, hs...)
	}
	s := lb.NewHostSet(all)
	s.Localities = at
	return s
}

// What the real Envoy does with the same clusters: the proxy is in z1.
func TestZones(t *testing.T) {
	two := []zone{{"z1", 1, 0}, {"z2", 1, 0}}
	always := lb.Zones{MinSize: 1, Enabled: 100}
	for _, c := range []struct {
		name        string
		local, pool []zone
		zones       lb.Zones
		panic       float64
		want        map[string]float64
		state       lb.ZoneState
		outcomes    map[lb.Outcome]float64
	}{
		{"as much load as hosts", two, two, always, 50, map[string]float64{"z1": 1}, 0, map[lb.Outcome]float64{lb.ZoneDirect: 1}},
		{"more load than hosts", []zone{{"z1", 2, 0}, {"z2", 1, 0}}, []zone{{"z1", 1, 0}, {"z2", 2, 0}}, always, 50,
			map[string]float64{"z1": .5, "z2": .5}, 0, map[lb.Outcome]float64{lb.ZoneSampled: .5, lb.ZoneCross: .5}},
		{"two others", []zone{{"z1", 3, 0}, {"z2", 1, 0}, {"z3", 1, 0}}, []zone{{"z1", 1, 0}, {"z2", 2, 0}, {"z3", 3, 0}}, always, 50,
			map[string]float64{"z1": .278, "z2": .722 * 2 / 7, "z3": .722 * 5 / 7}, 0, map[lb.Outcome]float64{lb.ZoneSampled: .278, lb.ZoneCross: .722}},
		{"too small", two, two, lb.Zones{MinSize: 6, Enabled: 100}, 50, map[string]float64{"z1": .5, "z2": .5}, lb.ZoneTooSmall, map[lb.Outcome]float64{lb.Normal: 1}},
		{"just large enough", two, []zone{{"z1", 3, 0}, {"z2", 3, 0}}, lb.Zones{MinSize: 6, Enabled: 100}, 50, map[string]float64{"z1": 1}, 0, map[lb.Outcome]float64{lb.ZoneDirect: 1}},
		{"a place without proxies", two, []zone{{"z1", 1, 0}, {"z2", 1, 0}, {"z3", 1, 0}}, always, 50,
			map[string]float64{"z1": .667, "z3": .333}, 0, map[lb.Outcome]float64{lb.ZoneSampled: .667, lb.ZoneCross: .333}},
		{"proxies in one place", []zone{{"z1", 1, 0}}, two, always, 50, map[string]float64{"z1": .5, "z2": .5}, 0, map[lb.Outcome]float64{lb.Normal: 1}},
		{"hosts in one place", two, []zone{{"z1", 2, 0}}, always, 50, map[string]float64{"z1": 1}, 0, map[lb.Outcome]float64{lb.Normal: 1}},
		{"no hosts here", two, []zone{{"z2", 1, 0}, {"z3", 1, 0}}, always, 50, map[string]float64{"z3": 1}, 0, map[lb.Outcome]float64{lb.ZoneCross: 1}},
		{"no proxies here", []zone{{"z2", 1, 0}, {"z3", 1, 0}}, two, always, 50, map[string]float64{"z1": .5, "z2": .5}, lb.ZoneNotHere, map[lb.Outcome]float64{lb.Normal: 1}},
		{"ill hosts here", two, []zone{{"z1", 2, 1}, {"z2", 2, 0}}, always, 50, map[string]float64{"z1": .667, "z2": .333}, 0, map[lb.Outcome]float64{lb.ZoneSampled: .667, lb.ZoneCross: .333}},
		{"all ill here", two, []zone{{"z1", 2, 2}, {"z2", 4, 0}}, always, 50, map[string]float64{"z2": 1}, 0, map[lb.Outcome]float64{lb.ZoneCross: 1}},
		{"proxies in panic", []zone{{"z1", 3, 2}, {"z2", 2, 1}}, two, always, 50, map[string]float64{"z1": .5, "z2": .5}, 0, map[lb.Outcome]float64{lb.LocalNotOK: 1}},
		{"of which none is due", []zone{{"z1", 3, 2}, {"z2", 2, 1}}, two, always, 10, map[string]float64{"z1": 1}, 0, map[lb.Outcome]float64{lb.ZoneDirect: 1}},
		{"half of the time", two, two, lb.Zones{MinSize: 1, Enabled: 50}, 50, map[string]float64{"z1": .75, "z2": .25}, 0, map[lb.Outcome]float64{lb.ZoneDirect: .5, lb.Normal: .5}},
		{"never", two, two, lb.Zones{MinSize: 1}, 50, map[string]float64{"z1": .5, "z2": .5}, 0, map[lb.Outcome]float64{lb.Normal: 1}},
		{"forced", []zone{{"z1", 3, 0}, {"z2", 1, 0}}, []zone{{"z1", 1, 0}, {"z2", 3, 0}}, lb.Zones{MinSize: 1, Enabled: 100, Force: true, ForceSize: 1}, 50,
			map[string]float64{"z1": 1}, 0, map[lb.Outcome]float64{lb.ZoneDirect: 1}},
		{"too few to be forced", []zone{{"z1", 3, 0}, {"z2", 1, 0}}, []zone{{"z1", 1, 0}, {"z2", 3, 0}}, lb.Zones{MinSize: 1, Enabled: 100, Force: true, ForceSize: 2}, 50,
			map[string]float64{"z1": .333, "z2": .667}, 0, map[lb.Outcome]float64{lb.ZoneSampled: .333, lb.ZoneCross: .667}},
		{"forced, proxies in one place", []zone{{"z1", 3, 0}}, []zone{{"z1", 1, 0}, {"z2", 3, 0}}, lb.Zones{MinSize: 1, Enabled: 100, Force: true, ForceSize: 1}, 50,
			map[string]float64{"z1": 1}, 0, map[lb.Outcome]float64{lb.ZoneDirect: 1}},
		{"forced, none here", []zone{{"z3", 1, 0}}, two, lb.Zones{MinSize: 1, Enabled: 100, Force: true, ForceSize: 1}, 50,
			map[string]float64{"z1": .5, "z2": .5}, lb.ZoneNotHere, map[lb.Outcome]float64{lb.Normal: 1}},
		{"a place in two pieces", two, []zone{{"z1", 1, 0}, {"z2", 1, 0}, {"z1", 1, 0}}, always, 50, map[string]float64{"z1": 1}, 0, map[lb.Outcome]float64{lb.ZoneDirect: 1}},
		{"hosts in panic", two, []zone{{"z1", 2, 2}, {"z2", 2, 1}}, always, 50, map[string]float64{"z1": .5, "z2": .5}, 0, map[lb.Outcome]float64{lb.Panic: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			local := zoneSet(c.local...)
			tab := lb.NewTable(&lb.Options{Policy: lb.RoundRobin{}, PanicThreshold: c.panic, Zoned: true, Zones: c.zones}, []lb.HostSet{zoneSet(c.pool...)},
				&lb.Near{Here: host.Locality{Zone: "z1"}, Local: &local, MinSize: -1, Enabled: -1})
			if tab.Zone != c.state {
				t.Errorf("state %d, want %d", tab.Zone, c.state)
			}
			const n = 6000
			var l lb.Local
			got, outcomes := map[string]int{}, map[lb.Outcome]int{}
			ctx := &lb.Context{W: worker(3)}
			for range n {
				h, o := tab.Pick(&l, ctx)
				got[h.Hostname]++
				outcomes[o]++
			}
			near(t, got, c.want, n)
			for o, share := range c.outcomes {
				if x := float64(outcomes[o]) / n; x < share*0.9 || x > share*1.1 {
					t.Errorf("outcome %d has %.3f, want %.3f (%v)", o, x, share, outcomes)
				}
			}
			if allocs := testing.AllocsPerRun(100, func() { tab.Pick(&l, ctx) }); allocs != 0 {
				t.Errorf("%v allocations", allocs)
			}
		})
	}
}

// With fail_traffic_on_panic nothing is sent if too few proxies are healthy, and runtime keys go before the configuration.
func TestZonesFailAndRuntime(t *testing.T) {
	pool, ill := []zone{{"z1", 1, 0}, {"z2", 1, 0}}, zoneSet(zone{"z1", 3, 2}, zone{"z2", 2, 1})
	well := zoneSet(pool...)
	near := func(local *lb.HostSet, size, enabled int64) *lb.Near {
		return &lb.Near{Here: host.Locality{Zone: "z1"}, Local: local, MinSize: size, Enabled: enabled}
	}
	o := &lb.Options{Policy: lb.Random{}, PanicThreshold: 50, FailOnPanic: true, Zoned: true, Zones: lb.Zones{MinSize: 1, Enabled: 100}}
	for _, c := range []struct {
		near *lb.Near
		want map[string]bool
	}{
		{near(&ill, -1, -1), map[string]bool{"none": true}},
		{near(&well, -1, -1), map[string]bool{"z1": true}},
		{near(&well, 3, -1), map[string]bool{"z1": true, "z2": true}},
		{near(&well, 2, -1), map[string]bool{"z1": true}},
		{near(&well, -1, 0), map[string]bool{"z1": true, "z2": true}},
		{near(&well, -1, 1000), map[string]bool{"z1": true}},
		{nil, map[string]bool{"z1": true, "z2": true}},
	} {
		got := map[string]bool{}
		for name := range picks(lb.NewTable(o, []lb.HostSet{zoneSet(pool...)}, c.near), &lb.Context{W: worker(1)}, 200) {
			got[name] = true
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v: %s", c.near, d)
		}
	}
}

// Requests go by the weights of hosts if the basis says so.
func TestZonesByWeight(t *testing.T) {
	local, pool := zoneSet(zone{"z1", 1, 0}, zone{"z2", 1, 0}), zoneSet(zone{"z1", 1, 0}, zone{"z2", 1, 0})
	pool.Hosts[1].SetWeight(3)
	n := &lb.Near{Here: host.Locality{Zone: "z1"}, Local: &local, MinSize: -1, Enabled: -1}
	tab := lb.NewTable(&lb.Options{Policy: lb.RoundRobin{}, PanicThreshold: 50, Zoned: true, Zones: lb.Zones{MinSize: 1, Enabled: 100, ByWeight: true}}, []lb.HostSet{pool}, n)
	near(t, picks(tab, &lb.Context{W: worker(1)}, 4000), map[string]float64{"z1": .5, "z2": .5}, 4000)
}
