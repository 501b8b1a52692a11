// Package runtime is Envoy's runtime configuration: layers of keys and values of which the last that sets a key wins.
//
// It owns the layers and the current Snapshot. A Loader belongs to the main loop; Snapshot, Uint, Integer, Fraction and Enabled may
// be called from any thread and cost one load and one look into a map. A Snapshot is immutable. Files are read while a layer is
// made or reloaded, never while a request is served.
package runtime

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// FeaturePrefix is that of the switches for changes of behaviour.
const FeaturePrefix = "envoy.reloadable_features."

// Limits of a runtime; what is beyond them is an error of the layer.
const (
	// MaxKeys bounds the keys of one layer.
	MaxKeys = 1 << 16
	// MaxValueBytes bounds a value, and a file of a disk layer.
	MaxValueBytes = 64 << 10
	// maxDepth bounds the folders of a disk layer.
	maxDepth = 16
)

// Values are what one layer sets.
type Values map[string]Value

// Layer is one source of values. owner: main loop.
type Layer struct {
	Name   string
	values Values
	admin  bool
	disk   *diskLayer
	remote *bootstrapv3.RuntimeLayer_RtdsLayer // its values come from outside
	// absent: the folder is not there, which is no error; failed: it could not be read. Such layers are left out.
	absent, failed bool
}

// Snapshot is all layers at one moment.
type Snapshot struct {
	layers []string
	each   []Values // by layer, not changed any more
	final  Values
}

// Loader owns the layers. owner: main loop, but for the questions.
type Loader struct {
	layers  []*Layer
	current atomic.Pointer[Snapshot]
	store   *stats.Store
	stats   astats.GroupBase
	// OnChange is called with every new snapshot.
	OnChange func(*Snapshot)

	deprecated int // uses of deprecated fields; owner: the main loop
}

// Snapshot returns the current state. Safe from any thread.
func (l *Loader) Snapshot() *Snapshot { return l.current.Load() }

// Uint returns a key as a number, def if it is not set or no whole number. Safe from any thread.
func (l *Loader) Uint(key string, def uint64) uint64 { return l.current.Load().Uint(key, def) }

// Double returns a key as a number, def if it is none. Safe from any thread.
func (l *Loader) Double(key string, def float64) float64 { return l.current.Load().Double(key, def) }

// Integer is Uint, by the name that access logs know.
func (l *Loader) Integer(key string, def uint64) uint64 { return l.current.Load().Uint(key, def) }

// Bool returns a key as a truth value, def if it is none. Safe from any thread.
func (l *Loader) Bool(key string, def bool) bool { return l.current.Load().Bool(key, def) }

// Fraction returns a key as a fraction, the given one if it is not set. Safe from any thread.
func (l *Loader) Fraction(key string, numerator, denominator uint64) (n, d uint64) {
	return l.current.Load().Fraction(key, numerator, denominator)
}

// Enabled tells whether a feature that is on for a fraction is on for this random number. Safe from any thread.
func (l *Loader) Enabled(key string, numerator, random, denominator uint64) bool {
	return l.current.Load().Enabled(key, numerator, random, denominator)
}

// Len returns the number of keys. Safe from any thread.
func (l *Loader) Len() int { return len(l.current.Load().final) }

// Get returns the value of a key.
func (s *Snapshot) Get(key string) (Value, bool) {
	v, ok := s.final[key]
	return v, ok
}

// Uint returns a key as a whole number, def if it is none.
func (s *Snapshot) Uint(key string, def uint64) uint64 {
	if v, ok := s.final[key]; ok && v.kind == number && v.whole {
		return v.uint
	}
	return def
}

// Double returns a key as a number, def if it is none.
func (s *Snapshot) Double(key string, def float64) float64 {
	if v, ok := s.final[key]; ok && v.kind == number {
		return v.double
	}
	return def
}

// Bool returns a key as a truth value, def if it is none.
func (s *Snapshot) Bool(key string, def bool) bool {
	if v, ok := s.final[key]; ok && v.kind == boolean {
		return v.bool
	}
	return def
}

// Fraction returns a key as a fraction: as it is written, or, for a whole number, as a percentage of at most 100.
func (s *Snapshot) Fraction(key string, numerator, denominator uint64) (n, d uint64) {
	v, ok := s.final[key]
	switch {
	case ok && v.kind == fraction:
		return v.uint, v.denominator
	case ok && v.kind == number && v.whole:
		return min(v.uint, 100), 100
	}
	return numerator, denominator
}

// Enabled tells whether a feature that is on for a fraction is on for this random number.
func (s *Snapshot) Enabled(key string, numerator, random, denominator uint64) bool {
	n, d := s.Fraction(key, numerator, denominator)
	return d > 0 && random%d < n
}

// Features returns the switches that are set, Envoy's and our own, by name.
func (s *Snapshot) Features() map[string]bool {
	out := map[string]bool{}
	for k, v := range s.final {
		if v.kind == boolean && strings.Contains(k, ".reloadable_features.") {
			out[k] = v.bool
		}
	}
	return out
}

// Layers returns the names of the layers, the weakest first.
func (s *Snapshot) Layers() []string { return s.layers }

// Keys returns all keys, sorted.
func (s *Snapshot) Keys() []string { return slices.Sorted(maps.Keys(s.final)) }

// InLayer returns what the i-th layer says of a key, "" if nothing.
func (s *Snapshot) InLayer(i int, key string) string { return s.each[i][key].Raw }

// Modify changes the admin layer: an empty value takes a key away. It fails if there is no such layer or a bound is reached.
func (l *Loader) Modify(changes map[string]string) error {
	var a *Layer
	for _, y := range l.layers {
		if y.admin {
			a = y
		}
	}
	if a == nil {
		return ErrNoAdminLayer
	}
	next := maps.Clone(a.values)
	if next == nil {
		next = Values{}
	}
	for k, text := range changes {
		if text == "" {
			delete(next, k)
			continue
		}
		if err := next.set(k, ParseText(text)); err != nil {
			return err
		}
	}
	a.values = next
	l.publish()
	return nil
}

// Replace gives a layer other values, as a discovery service does.
func (l *Loader) Replace(name string, v Values) bool {
	for _, y := range l.layers {
		if y.Name == name {
			y.values = v
			l.publish()
			return true
		}
	}
	return false
}

// Reload reads the disk layers again.
func (l *Loader) Reload() { l.load() }

// load reads what is on disk and makes a new snapshot.
func (l *Loader) load() {
	for _, y := range l.layers {
		if y.disk == nil {
			continue
		}
		var err error
		y.values, err = y.disk.read()
		y.absent = errors.Is(err, fs.ErrNotExist)
		y.failed = err != nil && !y.absent
	}
	l.publish()
}

// publish makes the layers' values the current snapshot.
func (l *Loader) publish() {
	s := &Snapshot{final: Values{}}
	disks, overrides, failed := 0, 0, false
	for _, y := range l.layers {
		if y.absent || y.failed {
			failed = failed || y.failed
			continue
		}
		s.layers = append(s.layers, y.Name)
		s.each = append(s.each, y.values)
		maps.Copy(s.final, y.values)
		if y.disk != nil {
			disks++
		}
		if y.admin {
			overrides += len(y.values)
		}
	}
	l.current.Store(s)
	if failed {
		l.inc(stats.RuntimeLoadError)
	} else {
		l.inc(stats.RuntimeLoadSuccess)
	}
	if disks > 1 {
		l.inc(stats.RuntimeOverrideDirExists)
	} else {
		l.inc(stats.RuntimeOverrideDirNotExists)
	}
	l.gauge(stats.RuntimeNumKeys, len(s.final))
	l.gauge(stats.RuntimeNumLayers, len(s.layers))
	l.gauge(stats.RuntimeAdminOverridesActive, min(overrides, 1))
	if l.OnChange != nil {
		l.OnChange(s)
	}
}

// CountDeprecated counts a use of a deprecated field in what came after the start, as Envoy does: that of a bootstrap is not counted.
func (l *Loader) CountDeprecated() {
	l.deprecated++
	l.inc(stats.RuntimeDeprecatedFeatureUse)
	l.gauge(stats.RuntimeDeprecatedFeatureSeenSinceProcessStart, l.deprecated)
}

func (l *Loader) inc(i astats.CounterIndex) { l.store.Main().Inc(l.stats.Counter(i)) }

func (l *Loader) gauge(i astats.GaugeIndex, n int) { l.store.SetGauge(l.stats.Gauge(i), uint64(n)) }
