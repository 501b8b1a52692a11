package xds

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Notify is the Watcher of the operating system. It watches folders, so that files that are replaced by a rename are seen.
type Notify struct {
	mu      sync.Mutex
	w       *fsnotify.Watcher // nil before the first Watch
	folders map[string][]*watch
	closed  bool
	running sync.WaitGroup
}

// ErrClosed says that a Notify watches no more.
var ErrClosed = errors.New("the watching of files has ended")

type watch struct {
	path    string
	folder  bool
	changed func(whole bool)
}

// NewNotify returns a Watcher that watches nothing yet. Close ends it.
func NewNotify() *Notify { return &Notify{folders: map[string][]*watch{}} }

// Watch watches a file or a folder.
func (n *Notify) Watch(path string, folder bool, changed func(whole bool)) (func(), error) {
	path = filepath.Clean(path)
	dir := path
	if !folder {
		dir = filepath.Dir(path)
	}
	x := &watch{path: path, folder: folder, changed: changed}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	if n.w == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, err
		}
		n.w = w
		n.running.Go(func() { n.run(w) })
	}
	if len(n.folders[dir]) == 0 {
		if err := n.w.Add(dir); err != nil {
			return nil, err
		}
	}
	n.folders[dir] = append(n.folders[dir], x)
	return func() { n.drop(dir, x) }, nil
}

func (n *Notify) drop(dir string, x *watch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.folders[dir]
	for i := range list {
		if list[i] == x {
			n.folders[dir] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(n.folders[dir]) == 0 {
		delete(n.folders, dir)
		if !n.closed {
			_ = n.w.Remove(dir)
		}
	}
}

// Close ends all watches. No call comes after it, and its file descriptor and its goroutine are gone.
func (n *Notify) Close() {
	n.mu.Lock()
	w := n.w
	if n.closed {
		w = nil
	}
	n.closed = true
	n.mu.Unlock()
	if w != nil {
		_ = w.Close()
	}
	n.running.Wait()
}

func (n *Notify) run(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			// What is removed or moved away changes nothing: the last that was read stays in force, as in Envoy.
			if e.Op&(fsnotify.Create|fsnotify.Write) != 0 {
				in := filepath.Dir(e.Name)
				n.tell(func(dir string, x *watch) bool { return dir == in && x.concerns(e) })
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				n.tell(func(string, *watch) bool { return true }) // nobody knows what was lost
			}
		}
	}
}

// concerns tells whether an event in the folder of x is one that x waits for. In a watched folder only what appears counts, as in
// Envoy: a log file that grows there is no change of configuration.
func (x *watch) concerns(e fsnotify.Event) bool {
	return x.folder && e.Has(fsnotify.Create) || x.path == filepath.Clean(e.Name)
}

// tell calls those that pick chooses.
func (n *Notify) tell(pick func(dir string, x *watch) bool) {
	n.mu.Lock()
	var hit []*watch
	for dir, list := range n.folders {
		for _, x := range list {
			if pick(dir, x) {
				hit = append(hit, x)
			}
		}
	}
	n.mu.Unlock()
	for _, x := range hit {
		// A file that appears was either moved here, and is whole, or was created, and may still grow: nothing tells.
		x.changed(false)
	}
}
