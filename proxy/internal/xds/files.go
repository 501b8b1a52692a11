// Package xds brings configuration in from outside: resource files (path_config_source) here; streams of a control plane later. It
// implements sub.Source. Subscriptions belong to the main loop; reading and decoding happen on goroutines of their own and come back
// by Post, so that a large update holds up neither the main loop nor a worker.
package xds

import (
	"errors"
	"fmt"
	"os"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/cespare/xxhash/v2"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// settle is how long a file that is written in place must be left alone before it is read.
const settle = 20 * time.Millisecond

// Files is the source of subscriptions to resource files.
type Files struct {
	Main    *event.Worker
	Store   *stats.Store
	Options config.Options
	// Watcher tells of changes of files.
	Watcher Watcher
	// Read reads a file; nil means the file system.
	Read func(path string) ([]byte, error)
	// Inline reads and decodes on the main loop, for the simulation.
	Inline bool
	// Log is told of updates that were rejected; nil: nobody.
	Log func(typeURL, path string, err error)
}

// Watcher tells of changes of files and folders.
type Watcher interface {
	// Watch calls changed, from any goroutine, when the file at path was replaced or written, or, for a folder, when something in
	// it was. whole says that the file is complete (it was moved into place). stop ends it; a call may still be under way.
	Watch(path string, folder bool, changed func(whole bool)) (stop func(), err error)
}

// ErrNotFile says that a configuration source is not a file.
var ErrNotFile = errors.New("only path_config_source is supported yet")

// Subscribe watches a file. owner: main loop.
func (f *Files) Subscribe(from *corev3.ConfigSource, typeURL string, names []string, st sub.Stats, cb sub.Callbacks) (sub.Subscription, error) {
	path, folder := from.GetPath(), "" //nolint:staticcheck // deprecated, still read by Envoy
	if p := from.GetPathConfigSource(); p != nil {
		path, folder = p.Path, p.GetWatchedDirectory().GetPath()
	}
	if path == "" {
		return nil, ErrNotFile
	}
	if _, err := os.Stat(path); err != nil && f.Read == nil {
		return nil, fmt.Errorf("paths must refer to an existing path in the system: '%s' does not exist", path)
	}
	s := &fileSub{f: f, path: path, typeURL: typeURL, stats: st, cb: cb, seen: map[string]uint64{}}
	s.SetNames(names)
	s.timer.Fn = s.load
	watched, isFolder := path, false
	if folder != "" {
		watched, isFolder = folder, true
	}
	stop, err := f.Watcher.Watch(watched, isFolder, func(whole bool) { f.Main.Post(func() { s.changed(whole) }) })
	if err != nil {
		return nil, fmt.Errorf("unable to watch %s: %w", watched, err)
	}
	s.stop = stop
	f.Main.Post(s.load)
	return s, nil
}

// fileSub is one subscription. owner: main loop.
type fileSub struct {
	f       *Files
	path    string
	typeURL string
	stats   sub.Stats
	cb      sub.Callbacks
	names   map[string]bool
	stop    func()
	timer   event.Timer
	seen    map[string]uint64 // hashes of the resources that were applied, by name
	loading bool
	again   bool
	closed  bool
}

// SetNames changes which resources are wanted, and reads the file again.
func (s *fileSub) SetNames(names []string) {
	s.names = nil
	if len(names) > 0 {
		s.names = make(map[string]bool, len(names))
		for _, n := range names {
			s.names[n] = true
		}
	}
	if s.stop != nil {
		s.f.Main.Post(s.load)
	}
}

// Close ends the subscription.
func (s *fileSub) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.f.Main.Remove(&s.timer)
	s.stop()
}

func (s *fileSub) changed(whole bool) {
	if s.closed {
		return
	}
	if whole {
		s.load()
		return
	}
	s.f.Main.Arm(&s.timer, settle)
}

// loaded is what a read gave.
type loaded struct {
	update *sub.Update
	hashes map[string]uint64
	err    error
}

// load reads and decodes the file, away from the main loop, and applies what it says. One load is under way at a time; changes that
// come meanwhile cause one more.
func (s *fileSub) load() {
	if s.closed {
		return
	}
	if s.loading {
		s.again = true
		return
	}
	s.loading = true
	s.f.Main.Stats.Inc(s.stats.Attempt)
	seen := s.seen
	if s.f.Inline {
		s.apply(s.read(seen))
		return
	}
	go func() {
		l := s.read(seen)
		s.f.Main.Post(func() { s.apply(l) })
	}()
}

// read decodes the file. It touches nothing of s that changes.
func (s *fileSub) read(seen map[string]uint64) loaded {
	readFile := s.f.Read
	if readFile == nil {
		readFile = os.ReadFile
	}
	data, err := readFile(s.path)
	if err != nil {
		return loaded{err: err}
	}
	opts := s.f.Options
	opts.SkipValidation = true // each resource is checked below, if it changed
	resp, _, err := config.ParseDiscoveryResponse(s.path, data, opts)
	if err != nil {
		return loaded{err: err}
	}
	u := &sub.Update{Version: resp.Version, Full: true}
	hashes := make(map[string]uint64, len(resp.Resources))
	for _, r := range resp.Resources {
		res, hash, err := s.decode(r, seen)
		if err != nil {
			return loaded{err: err}
		}
		hashes[res.Name] = hash
		u.Resources = append(u.Resources, res)
	}
	return loaded{update: u, hashes: hashes}
}

// decode turns one resource into its message, unless it is the same as in the last update that was applied.
func (s *fileSub) decode(a xdstype.Any, seen map[string]uint64) (sub.Resource, uint64, error) {
	hash := xxhash.Sum64(a.Value)
	res := sub.Resource{}
	if xdstype.Name(a.TypeURL) == xdstype.Name(xdstype.DeltaResource) {
		w, err := xdstype.ParseResource(a.Value)
		if err != nil {
			return res, 0, err
		}
		res.Name, res.Version, res.TTL, a = w.Name, w.Version, w.TTL, w.Any
	}
	if got, want := xdstype.Name(a.TypeURL), xdstype.Name(s.typeURL); got != want {
		return res, 0, fmt.Errorf("Type URL %s does not match %s", a.TypeURL, s.typeURL) //nolint:staticcheck // like Envoy's text
	}
	if name, ok := nameOf(a); ok && res.Name == "" {
		res.Name = name
	}
	if old, ok := seen[res.Name]; ok && old == hash {
		res.Unchanged = true
		return res, hash, nil
	}
	msg, _, err := config.Unpack(&anypb.Any{TypeUrl: s.typeURL, Value: a.Value}, s.f.Options.Resolver)
	if err != nil {
		return res, 0, err
	}
	if err := config.Validate(msg, s.f.Options.Resolver, ""); err != nil {
		return res, 0, fmt.Errorf("%s: %w", res.Name, err)
	}
	res.Body = msg
	return res, hash, nil
}

// nameOf reads field 1 of a resource, which is its name in clusters, endpoints, listeners, routes and secrets.
func nameOf(a xdstype.Any) (string, bool) { return xdstype.StringField(a.Value, 1) }

func (s *fileSub) apply(l loaded) {
	s.loading = false
	if s.closed {
		return
	}
	defer func() {
		if s.again {
			s.again = false
			s.load()
		}
	}()
	st := s.f.Main.Stats
	if l.err != nil {
		st.Inc(s.stats.Failure)
		s.log(l.err)
		s.cb.OnFailure(sub.Rejected, l.err)
		return
	}
	u := l.update
	if s.names != nil {
		kept := u.Resources[:0]
		for _, r := range u.Resources {
			if s.names[r.Name] {
				kept = append(kept, r)
			}
		}
		u.Resources = kept
	}
	start := s.f.Main.Clock().Mono()
	if err := s.cb.OnUpdate(u); err != nil {
		// What was rejected must be looked at again even if the file is written back to what it was.
		clear(s.seen)
		st.Inc(s.stats.Rejected)
		s.log(err)
		return
	}
	s.seen = l.hashes
	st.Inc(s.stats.Success)
	st.Record(s.stats.Duration, uint64(s.f.Main.Clock().Mono()-start)/1e6)
	s.f.Store.SetGauge(s.stats.Time, uint64(s.f.Main.Wall()/1e6))
	s.f.Store.SetGauge(s.stats.Version, xxhash.Sum64String(u.Version))
	s.f.Store.SetText(s.stats.VersionText, u.Version)
}

func (s *fileSub) log(err error) {
	if s.f.Log != nil {
		s.f.Log(s.typeURL, s.path, err)
	}
}
