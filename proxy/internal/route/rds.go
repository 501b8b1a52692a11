package route

import (
	"errors"
	"fmt"
	"log/slog"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// RouteType is the type URL of route configurations.
const RouteType = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"

// RDS shares route configurations that come from outside: listeners that name the same one from the same source use one Slot and
// one subscription. owner: main loop.
type RDS struct {
	Main   *event.Worker
	Store  *stats.Store
	Source sub.Source
	Deps   Deps
	// Changed is told of each applied configuration, for /config_dump, and with a nil one when nobody uses it any more; nil: nobody.
	// packed is its serialized and compressed form, if the source had one.
	Changed func(name, version string, rc *routev3.RouteConfiguration, packed []byte)
	// Log is the application log of Envoy's component "rds"; nil: none.
	Log *slog.Logger

	subs map[string]*rdsSub
}

// rdsSub is one configuration's subscription.
type rdsSub struct {
	r       *RDS
	slot    *Slot
	name    string
	handle  sub.Subscription
	uses    int
	waiting []func()
	came    bool
	// building is the table that is being built; nil: none.
	building *Builder
	stats    astats.GroupBase // stats.RDS
	release  func()           // of the stats
}

// Get returns the slot of a route configuration, subscribing to it on first use. ready is called (never inline) when the first
// version has come or will not come for now. release gives the use up.
func (r *RDS) Get(from *corev3.ConfigSource, name string, scope astats.Scope, ready func()) (slot *Slot, release func(), err error) {
	if r.Source == nil {
		return nil, nil, errors.New("rds.config_source: there is no source of configuration")
	}
	src, err := proto.MarshalOptions{Deterministic: true}.Marshal(from)
	if err != nil {
		return nil, nil, err
	}
	key := name + "\x00" + string(src)
	s := r.subs[key]
	if s == nil {
		s = &rdsSub{r: r, slot: &Slot{Name: name}, name: name}
		own := scope.Scope("rds").Scope(name)
		st, release := sub.NewStats(own)
		s.stats = own.Group(stats.RDS)
		s.release = func() {
			release()
			own.Release(stats.RDS)
		}
		if s.handle, err = r.Source.Subscribe(from, RouteType, []string{name}, st, s); err != nil {
			s.release()
			return nil, nil, err
		}
		if r.subs == nil {
			r.subs = map[string]*rdsSub{}
		}
		r.subs[key] = s
	}
	s.uses++
	if ready != nil {
		s.waiting = append(s.waiting, ready)
		if s.came {
			s.tell()
		}
	}
	gone := false
	return s.slot, func() {
		if gone {
			return
		}
		gone = true
		if s.uses--; s.uses == 0 {
			s.handle.Close()
			s.release()
			s.slot.Store(nil)
			if s.building != nil {
				s.building.Abandon()
			}
			delete(r.subs, key)
			if r.Changed != nil {
				r.Changed(name, "", nil, nil)
			}
		}
	}, nil
}

// OnUpdate compiles the configuration and swaps it in. A bad one leaves the old in place.
func (s *rdsSub) OnUpdate(u *sub.Update) error { return sub.Apply(s, u) }

// Begin implements sub.Stepper: a step is one virtual host.
func (s *rdsSub) Begin(u *sub.Update) (step func() (int, bool), finish func() error) {
	x := &rdsUpdate{s: s, u: u}
	x.err = x.begin()
	return x.step, x.finish
}

// rdsUpdate is an update that is being applied.
type rdsUpdate struct {
	s   *rdsSub
	u   *sub.Update
	b   *Builder // nil: there is nothing to build
	err error
	// ignored: all that is said is that the routes are gone, which is not believed, as in Envoy.
	ignored bool
}

// begin looks at what has come.
func (x *rdsUpdate) begin() (err error) {
	s := x.s
	if len(x.u.Resources) == 0 {
		if x.ignored = len(x.u.Removed) > 0; x.ignored {
			return nil
		}
		s.count(stats.RDSUpdateEmpty) // what is not spoken of stays
		return nil
	}
	r := &x.u.Resources[0]
	switch rc, ok := r.Body.(*routev3.RouteConfiguration); {
	case r.Err != nil && r.Name == "":
		return r.Placed(r.Err)
	case r.Name != s.name:
		return r.Placed(config.At("name", fmt.Errorf("Unexpected RDS configuration (expecting %s): %s", s.name, r.Name))) //nolint:staticcheck // Envoy's text
	case r.Unchanged:
		return nil
	case r.Err != nil:
		return r.Named(r.Err)
	case !ok:
		return fmt.Errorf("RDS resource %s is no RouteConfiguration", r.Name)
	default:
		x.b, err = NewBuilder(rc, s.r.Deps, s.slot.Load())
		s.building = x.b
		return r.Named(err)
	}
}

func (x *rdsUpdate) step() (refused int, more bool) {
	if x.err == nil && x.b != nil {
		more, x.err = x.b.Step()
		x.err = x.u.Resources[0].Named(x.err)
	}
	if x.err != nil && len(x.u.Resources) > 0 {
		return 0, false
	}
	return -1, more
}

func (x *rdsUpdate) finish() error {
	s := x.s
	if s.building = nil; x.ignored {
		return nil
	}
	if x.err != nil {
		s.arrived() // who waits for the first one waits no longer
		if s.r.Log != nil {
			s.r.Log.Warn("rds: route config '" + s.name + "' rejected: " + x.err.Error())
		}
		return x.err
	}
	if x.b != nil {
		t := x.b.Table()
		t.Version = x.u.Version
		s.slot.Store(t)
		s.count(stats.ReloadsConfigReload)
		s.r.Store.SetGauge(s.stats.Gauge(stats.ReloadsConfigReloadTimeMs), uint64(s.r.Main.Wall()/1e6))
		if s.r.Changed != nil {
			s.r.Changed(s.name, x.u.Version, x.b.rc, x.u.Resources[0].Packed)
		}
	}
	s.arrived()
	return nil
}

func (s *rdsSub) count(i astats.CounterIndex) { s.r.Main.Stats.Inc(s.stats.Counter(i)) }

// OnFailure goes on without routes: requests get 404.
func (s *rdsSub) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		s.arrived()
	}
}

func (s *rdsSub) arrived() {
	s.came = true
	s.tell()
}

func (s *rdsSub) tell() {
	list := s.waiting
	s.waiting = nil
	for _, f := range list {
		f()
	}
}
