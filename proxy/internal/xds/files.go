// Package xds brings configuration in from outside: from resource files (path_config_source), and from control planes over gRPC, for
// all types on one stream (ads) or for each subscription on its own (api_config_source), in state of the world or in deltas. It
// implements sub.Source. Subscriptions belong to the main loop; reading and decoding happen on goroutines of their own and come back
// by Post, and what they bring is applied in small steps, so that a large update holds up neither the main loop nor a worker.
package xds

import (
	"fmt"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

const (
	// settle is how long a file must be left alone before it is read: it may be written in place, bit by bit.
	settle = 20 * time.Millisecond
	// maxSettle bounds the wait for a file that is never left alone.
	maxSettle = 200 * time.Millisecond
	// echo is how long after a reading a change of a file may be the late news of one that was read already: whoever writes a file causes
	// several events, and on a busy machine they come one by one.
	echo = time.Second
	// keepScratch is how long memory is kept for the next change of a file.
	keepScratch = 2 * time.Second
	// applyBudget is how long the main loop applies an update before it looks at what else there is to do. A step is not divided.
	applyBudget = 300 * time.Microsecond
)

// Files is the source of subscriptions to resource files. Those to the same file share what is read of it.
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
	// Warn is told of updates that failed or were rejected, in Envoy's words; nil: nobody.
	Warn func(text string)

	open  map[fileKey]*file
	loads sync.WaitGroup
}

// Watcher tells of changes of files and folders.
type Watcher interface {
	// Watch calls changed, from any goroutine, when the file at path was replaced or written, or, for a folder, when something in
	// it was. whole says that the file is complete (it was moved into place). stop ends it; a call may still be under way.
	Watch(path string, folder bool, changed func(whole bool)) (stop func(), err error)
}

// Subscribe watches a file. The source was checked. owner: main loop.
func (f *Files) Subscribe(from *corev3.ConfigSource, typeURL string, names []string, st sub.Stats, cb sub.Callbacks) (sub.Subscription, error) {
	k := fileKey{path: from.GetPath(), typeURL: typeURL} //nolint:staticcheck // deprecated, still read by Envoy
	if p := from.GetPathConfigSource(); p != nil {
		k.path, k.folder = p.Path, p.GetWatchedDirectory().GetPath()
	}
	if err := f.checkPath(k.path); err != nil {
		return nil, err
	}
	x := f.open[k]
	if x == nil {
		var err error
		if x, err = f.openFile(k); err != nil {
			return nil, err
		}
	}
	s := &fileSub{file: x, stats: st, cb: cb, names: names}
	x.add(s)
	return s, nil
}

func (f *Files) openFile(k fileKey) (*file, error) {
	x := &file{f: f, key: k}
	x.timer.Fn = x.load
	x.rest.Fn = x.forgetScratch
	x.goOn = x.run
	watched, isFolder := k.path, false
	if k.folder != "" {
		watched, isFolder = k.folder, true
	}
	stop, err := f.Watcher.Watch(watched, isFolder, func(whole bool) { f.Main.Post(func() { x.changed(whole) }) })
	if err != nil {
		return nil, fmt.Errorf("unable to watch %s: %w", watched, err)
	}
	x.stop = stop
	if f.open == nil {
		f.open = map[fileKey]*file{}
	}
	f.open[k] = x
	return x, nil
}

// Close waits for files that are being read. The main loop has ended, or applies nothing any more.
func (f *Files) Close() { f.loads.Wait() }

func (f *Files) warn(text string) {
	if f.Warn != nil {
		f.Warn(text)
	}
}

// fileSub is one subscription. owner: main loop.
type fileSub struct {
	file  *file
	stats sub.Stats
	cb    sub.Callbacks
	names []string // none: all
	// last is what of the file was applied last, for a single name; more holds it for more names.
	last   *entry
	more   map[string]*entry
	due    bool // it waits to be shown what was read
	seen   bool // it was shown something before
	closed bool
}

// SetNames changes which resources are wanted.
func (s *fileSub) SetNames(names []string) {
	s.names, s.last, s.more = names, nil, nil
	s.file.want(s)
}

// Close ends the subscription.
func (s *fileSub) Close() {
	if !s.closed {
		s.closed = true
		s.file.remove(s)
	}
}

// applied tells whether e is what was applied last under its name.
func (s *fileSub) applied(e *entry) bool { return s.last == e || s.more[e.name] == e }

// keep notes that e was applied, forget that it was not.
func (s *fileSub) keep(e *entry) {
	if len(s.names) == 1 {
		s.last = e
		return
	}
	if s.more == nil {
		s.more = map[string]*entry{}
	}
	s.more[e.name] = e
}

func (s *fileSub) forget(e *entry) {
	if s.last == e {
		s.last = nil
	}
	delete(s.more, e.name)
}
