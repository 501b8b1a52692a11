package xds_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// rig is a main loop that the test steps, and files that exist in the test only.
type rig struct {
	t     *testing.T
	main  *event.Worker
	store *stats.Store
	files *xds.Files
	clock *fakeClock
	disk  map[string]string
	reads int
	watch map[string]func(whole bool)
	warns []string
}

// fakeClock goes on by itself as little as the test takes, and by ahead. Every look at it costs tick.
type fakeClock struct {
	clock.Clock
	ahead, tick time.Duration
}

func (c *fakeClock) Mono() int64 {
	c.ahead += c.tick
	return c.Clock.Mono() + int64(c.ahead)
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, store: stats.NewStore(), clock: &fakeClock{Clock: clock.System()}, disk: map[string]string{}, watch: map[string]func(bool){}}
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	r.main = event.New(event.Config{Index: -1, Name: "main_thread", Driver: d, Clock: r.clock, Stats: r.store.Main()})
	r.files = &xds.Files{Main: r.main, Store: r.store, Inline: true, Watcher: r, Warn: func(s string) { r.warns = append(r.warns, s) },
		Read: func(path string) ([]byte, error) {
			r.reads++
			if s, ok := r.disk[path]; ok {
				return []byte(s), nil
			}
			return nil, errors.New("unable to read file: " + path)
		}}
	return r
}

// Watch implements xds.Watcher.
func (r *rig) Watch(path string, _ bool, changed func(whole bool)) (func(), error) {
	r.watch[path] = changed
	return func() { delete(r.watch, path) }, nil
}

// put writes a file and lets it be seen.
func (r *rig) put(path, text string) {
	r.disk[path] = text
	if f := r.watch[path]; f != nil {
		f(true)
	}
	r.settle()
}

// settle steps the main loop until it has nothing to do.
func (r *rig) settle() {
	for range 10000 {
		r.main.Step(false)
		if r.main.Idle() {
			return
		}
	}
	r.t.Fatal("the main loop does not come to rest")
}

func source(path string) *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: path}}}
}

func (r *rig) subscribe(path, typeURL string, cb sub.Callbacks, names ...string) (sub.Subscription, func(name string) uint64) {
	r.t.Helper()
	prefix := fmt.Sprintf("s%d", len(r.watch)+r.reads)
	st, _ := sub.NewStats(r.store.Root().Scope(prefix))
	s, err := r.files.Subscribe(source(path), typeURL, names, st, cb)
	if err != nil {
		r.t.Fatal(err)
	}
	return s, func(name string) uint64 { return r.stat(prefix + "." + name) }
}

// text is all statistics.
func (r *rig) text() string {
	r.store.Collect()
	return string(stats.WriteAll(r.store.Text(stats.Query{})))
}

func (r *rig) stat(name string) uint64 {
	for line := range strings.Lines(r.text()) {
		if k, v, _ := strings.Cut(strings.TrimSpace(line), ": "); k == name {
			var n uint64
			_, _ = fmt.Sscan(v, &n)
			return n
		}
	}
	r.t.Fatalf("there is no %s", name)
	return 0
}

// mirror is a consumer that holds what it was told, by name, and refuses what is called "bad".
type mirror struct {
	have     map[string]string
	told     []string // of the last update: name, "=" if it is the same, "-" if it is gone, "!" if it cannot be read
	same     int
	updates  int
	failures int
	lastErr  error
}

func (m *mirror) OnUpdate(u *sub.Update) error {
	if m.have == nil {
		m.have = map[string]string{}
	}
	m.updates++
	m.told, m.same = nil, u.Same
	var bad []string
	for _, x := range u.Resources {
		if err := m.take(&x); err != nil {
			bad = append(bad, x.Name)
		}
	}
	for _, n := range u.Removed {
		m.told = append(m.told, n+"-")
		delete(m.have, n)
	}
	if len(bad) > 0 {
		return errors.New("refused: " + strings.Join(bad, " "))
	}
	return nil
}

func (m *mirror) take(x *sub.Resource) error {
	switch {
	case x.Unchanged:
		m.told = append(m.told, x.Name+"=")
		return nil
	case x.Err != nil:
		m.told = append(m.told, x.Name+"!")
		m.lastErr = x.Err
		return x.Err
	}
	m.told = append(m.told, x.Name)
	value := ""
	switch b := x.Body.(type) {
	case *clusterv3.Cluster:
		value = b.GetAltStatName()
	case *endpointv3.ClusterLoadAssignment:
		value = fmt.Sprint(len(b.Endpoints))
	}
	if value == "bad" {
		return errors.New("it is bad")
	}
	m.have[x.Name] = value
	return nil
}

func (m *mirror) OnFailure(_ sub.Reason, err error) { m.failures, m.lastErr = m.failures+1, err }

// stepper is a mirror that takes steps.
type stepper struct {
	mirror
	steps int
}

func (m *stepper) OnUpdate(*sub.Update) error { panic("it takes steps") }

func (m *stepper) Begin(u *sub.Update) (func() (int, bool), func() error) {
	if m.have == nil {
		m.have = map[string]string{}
	}
	m.updates++
	at, bad := 0, 0
	return func() (int, bool) {
			refused := -1
			if at < len(u.Resources) {
				if m.take(&u.Resources[at]) != nil {
					refused, bad = at, bad+1
				}
			} else if i := at - len(u.Resources); i < len(u.Removed) {
				delete(m.have, u.Removed[i])
			}
			at++
			m.steps++
			return refused, at < len(u.Resources)+len(u.Removed)
		}, func() error {
			if bad > 0 {
				return fmt.Errorf("%d refused", bad)
			}
			return nil
		}
}

// clusters is a file: "name" or "name=value" each; "?" cannot be read, "name?" can be read in
// part, "name!" is of another type.
func clusters(version string, list ...string) string {
	var out []json.RawMessage
	for _, s := range list {
		name, value, _ := strings.Cut(s, "=")
		switch {
		case s == "?":
			out = append(out, json.RawMessage(`{"@type": "`+clusterType+`", "nonsense": 1}`))
		case strings.HasSuffix(s, "!"):
			out = append(out, json.RawMessage(`{"@type": "`+endpointType+`", "cluster_name": "`+strings.TrimSuffix(s, "!")+`"}`))
		case strings.HasSuffix(s, "?"):
			out = append(out, json.RawMessage(`{"@type": "`+clusterType+`", "name": "`+strings.TrimSuffix(s, "?")+`", "connect_timeout": "-1s"}`))
		default:
			out = append(out, json.RawMessage(fmt.Sprintf(`{"@type": %q, "name": %q, "alt_stat_name": %q}`, clusterType, name, value)))
		}
	}
	b, _ := json.Marshal(map[string]any{"version_info": version, "resources": out})
	return string(b)
}

// endpoints is a file of assignments with so many localities each.
func endpoints(version string, list map[string]int) string {
	var names []string
	for n := range list {
		names = append(names, n)
	}
	slices.Sort(names)
	var out []any
	for _, n := range names {
		out = append(out, map[string]any{"@type": endpointType, "cluster_name": n, "endpoints": make([]struct{}, list[n])})
	}
	b, _ := json.Marshal(map[string]any{"version_info": version, "resources": out})
	return string(b)
}
