package overload_test

import (
	"math"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/overload"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func configure(t *testing.T, s *overload.State, store *stats.Store, yaml string) error {
	t.Helper()
	m := &overloadv3.OverloadManager{}
	if _, err := config.Parse("o.yaml", []byte(yaml), m, config.Options{}); err != nil {
		t.Fatal(err)
	}
	return s.Configure(m, store.Root())
}

const connections = `{name: envoy.resource_monitors.global_downstream_max_connections, typed_config: {
	"@type": type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig,
	max_active_downstream_connections: 2}}`

func TestConnections(t *testing.T) {
	store := stats.NewStore()
	w := &event.Worker{Stats: store.Main()}
	s := overload.New()
	if err := configure(t, s, store, "resource_monitors: ["+connections+"]"); err != nil {
		t.Fatal(err)
	}
	s.SetMaxConnections(100) // the runtime does not change a monitor's limit
	for i, want := range []bool{true, true, false} {
		refused, ok := s.Admit(w)
		if ok != want || !ok && refused != stats.ListenerDownstreamGlobalCxOverflow {
			t.Errorf("connection %d: %v", i+1, ok)
		}
	}
	s.Release(w)
	if _, ok := s.Admit(w); !ok || s.Connections() != 2 {
		t.Error("a place that was given back is not free")
	}
}

// Many workers at once get exactly the limit.
func TestExactOverWorkers(t *testing.T) {
	s := overload.New()
	s.SetMaxConnections(1000)
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 8 {
		w := &event.Worker{Stats: stats.NewStore().Main()}
		wg.Go(func() {
			n := 0
			for range 500 {
				if _, ok := s.Admit(w); ok {
					n++
				}
			}
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Wait()
	if total != 1000 || s.Connections() != 1000 {
		t.Errorf("%d admitted, %d counted", total, s.Connections())
	}
}

func TestMarks(t *testing.T) {
	w := &event.Worker{Stats: stats.NewStore().Main()}
	s := overload.New()
	if _, limited := s.MaxConnections(); limited || !s.Stream(w) || !s.Grow(w, math.MaxInt) {
		t.Error("a new State refuses")
	}
	for _, c := range []struct {
		mark overload.Mark
		ask  func() bool
	}{
		{overload.StopRequests, func() bool { return s.Stream(w) }},
		{overload.StopGrowth, func() bool { return s.Grow(w, 1) }},
		{overload.StopConnections, func() bool { _, ok := s.Admit(w); return ok }},
	} {
		s.Set(c.mark, true)
		if c.ask() {
			t.Errorf("mark %d is not looked at", c.mark)
		}
		s.Set(c.mark, false)
		if !c.ask() {
			t.Errorf("mark %d stays", c.mark)
		}
	}
}

func TestConfigure(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"resource_monitors: [" + connections + "," + connections + "]", "resource_monitors[1].name: Duplicate resource monitor envoy.resource_monitors.global_downstream_max_connections"},
		{"resource_monitors: [{name: envoy.resource_monitors.bogus}]", "resource_monitors[0]: Didn't find a registered implementation for 'envoy.resource_monitors.bogus' with type URL: ''; allowed: a name together with a typed_config, whose @type says what it is"},
		{"resource_monitors: [{name: envoy.resource_monitors.fixed_heap}]", "resource_monitors[0]: envoy.resource_monitors.fixed_heap: not supported yet"},
		{"{resource_monitors: [" + connections + "], actions: [{name: x, triggers: [{name: x, threshold: {value: 1}}]}]}", "actions: not supported yet"},
		{"{resource_monitors: [" + connections + "], loadshed_points: [{name: x, triggers: [{name: x, threshold: {value: 1}}]}]}", "loadshed_points: not supported yet"},
		{"{resource_monitors: [" + connections + "], buffer_factory_config: {minimum_account_to_track_power_of_two: 10}}", "buffer_factory_config: not supported yet"},
	} {
		if err := configure(t, overload.New(), stats.NewStore(), c.yaml); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v", c.yaml, err)
		}
	}
	if err := overload.New().Configure(nil, nil); err != nil {
		t.Error(err)
	}
}
