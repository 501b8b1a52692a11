package simtest

import (
	"io/fs"
	"maps"
	"slices"

	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

// files are resource files in memory, and what watches them.
type files struct {
	paths    []string // sorted
	versions map[string][]string
	now      map[string]string
	watches  []*watch
}

type watch struct {
	path    string
	changed func(whole bool)
}

var _ xds.Watcher = (*files)(nil)

func newFiles(versions map[string][]string, fill func(string) string) *files {
	f := &files{paths: slices.Sorted(maps.Keys(versions)), versions: map[string][]string{}, now: map[string]string{}}
	for _, path := range f.paths {
		for _, text := range versions[path] {
			f.versions[path] = append(f.versions[path], fill(text))
		}
		f.now[path] = f.versions[path][0]
	}
	return f
}

func (f *files) read(path string) ([]byte, error) {
	text, ok := f.now[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// Watch implements xds.Watcher.
func (f *files) Watch(path string, _ bool, changed func(whole bool)) (stop func(), err error) {
	w := &watch{path, changed}
	f.watches = append(f.watches, w)
	return func() {
		f.watches = slices.DeleteFunc(f.watches, func(o *watch) bool { return o == w })
	}, nil
}

// push moves a version of chance into the place of a file of chance.
func (f *files) push(r *rand.Source) {
	if len(f.paths) == 0 {
		return
	}
	path := f.paths[r.IntN(len(f.paths))]
	of := f.versions[path]
	f.now[path] = of[r.IntN(len(of))]
	for _, w := range slices.Clone(f.watches) {
		if w.path == path {
			w.changed(true)
		}
	}
}
