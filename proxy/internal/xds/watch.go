package xds

import (
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Notify is the Watcher of the operating system. It watches folders, so that files that are replaced by a rename are seen.
type Notify struct {
	mu      sync.Mutex
	w       *fsnotify.Watcher
	folders map[string][]*watch
}

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
	if n.w == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, err
		}
		n.w = w
		go n.run(w)
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
		if n.w != nil {
			_ = n.w.Remove(dir)
		}
	}
}

// Close ends all watches.
func (n *Notify) Close() {
	n.mu.Lock()
	w := n.w
	n.w = nil
	n.mu.Unlock()
	if w != nil {
		_ = w.Close()
	}
}

func (n *Notify) run(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if e.Op&(fsnotify.Create|fsnotify.Write|fsnotify.Rename) != 0 {
				n.tell(e)
			}
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
		}
	}
}

func (n *Notify) tell(e fsnotify.Event) {
	n.mu.Lock()
	var hit []*watch
	for _, x := range n.folders[filepath.Dir(e.Name)] {
		// In a folder only what appears counts, as in Envoy: a log file that grows there is no change of configuration.
		if x.folder && e.Has(fsnotify.Create) || x.path == filepath.Clean(e.Name) {
			hit = append(hit, x)
		}
	}
	n.mu.Unlock()
	for _, x := range hit {
		// A file that appears was either moved here, and is whole, or was created, and may still grow: nothing tells.
		x.changed(false)
	}
}
