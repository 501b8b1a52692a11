package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// New makes the runtime that a bootstrap describes. serviceCluster is the node's cluster, for disk layers that append it. Errors
// name the field below layered_runtime. As in Envoy the values are loaded once while building and once when the proxy has its
// configuration (Reload). Beside an error it is what there is without the layers that are wrong.
func New(p *bootstrapv3.LayeredRuntime, serviceCluster string, store *stats.Store) (*Loader, error) {
	l := &Loader{store: store, stats: store.Root().Scope("runtime").Group(stats.Runtime)}
	var errs config.Errors
	names := map[string]bool{}
	for i, y := range p.GetLayers() {
		layer, err := l.layer(y, serviceCluster)
		if names[y.GetName()] {
			errs.Collect(fmt.Sprintf("layers[%d].name", i), errors.New("Duplicate layer name: "+y.GetName())) //nolint:staticcheck // Envoy's text
		}
		names[y.GetName()] = true
		if errs.Collect(fmt.Sprintf("layers[%d]", i), err) {
			l.layers = append(l.layers, layer)
		}
	}
	l.load()
	return l, errs.Err()
}

func (l *Loader) layer(y *bootstrapv3.RuntimeLayer, serviceCluster string) (*Layer, error) {
	layer := &Layer{Name: y.GetName()}
	switch x := y.GetLayerSpecifier().(type) {
	case *bootstrapv3.RuntimeLayer_StaticLayer:
		v, err := FromStruct(x.StaticLayer)
		if err != nil {
			return nil, config.At("static_layer", err)
		}
		layer.values = v
	case *bootstrapv3.RuntimeLayer_DiskLayer_:
		if root := x.DiskLayer.GetSymlinkRoot(); !strings.Contains(root, "/") { // what is watched is the folder that it is in
			return nil, &config.Error{Path: "disk_layer.symlink_root", Msg: strings.TrimSpace("invalid file path " + root)}
		}
		layer.disk = newDiskLayer(x.DiskLayer, serviceCluster)
	case *bootstrapv3.RuntimeLayer_AdminLayer_:
		for _, other := range l.layers {
			if other.admin {
				return nil, &config.Error{Path: "admin_layer", Msg: "Too many admin layers specified in LayeredRuntime, at most one may be specified"}
			}
		}
		layer.admin = true
	case *bootstrapv3.RuntimeLayer_RtdsLayer_:
		layer.remote = x.RtdsLayer
	default:
		return nil, &config.Error{Msg: "a layer needs one of static_layer, disk_layer, admin_layer"}
	}
	return layer, nil
}

// Remote is a layer whose values come from outside: what it is called here, where it stands in the bootstrap, and the resource that it
// is and where that comes from.
type Remote struct {
	Layer    string
	Index    int
	Resource string
	From     *corev3.ConfigSource
}

// Remotes returns the layers whose values come from outside. Replace gives them theirs.
func (l *Loader) Remotes() (list []Remote) {
	for i, y := range l.layers {
		if y.remote != nil {
			list = append(list, Remote{Layer: y.Name, Index: i, Resource: y.remote.GetName(), From: y.remote.GetRtdsConfig()})
		}
	}
	return list
}

// Watched returns what to watch: the links below which the values of disk layers are. When one is replaced, call Reload.
func (l *Loader) Watched() (links []string) {
	for _, y := range l.layers {
		if y.disk != nil {
			links = append(links, y.disk.link)
		}
	}
	return links
}

// diskLayer is a folder whose files are values.
type diskLayer struct{ link, root string }

func newDiskLayer(p *bootstrapv3.RuntimeLayer_DiskLayer, serviceCluster string) *diskLayer {
	root := filepath.Join(p.GetSymlinkRoot(), p.GetSubdirectory())
	if p.GetAppendServiceCluster() {
		root = filepath.Join(root, serviceCluster)
	}
	return &diskLayer{link: p.GetSymlinkRoot(), root: root}
}

func (d *diskLayer) read() (Values, error) {
	out := Values{}
	return out, out.folder(d.root, "", 1)
}

// folder reads the files below dir; their paths below the root, with dots between, are the keys.
func (vs Values) folder(dir, prefix string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("Walk recursion depth exceeded %d", maxDepth) //nolint:staticcheck // Envoy's text
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // follows links, which ConfigMaps are made of
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has just gone
			}
			return err
		}
		key := prefix + e.Name()
		switch {
		case info.IsDir():
			if err := vs.folder(path, key+".", depth+1); err != nil {
				return err
			}
		case !info.Mode().IsRegular():
		case info.Size() > MaxValueBytes:
			return fmt.Errorf("%s: a runtime value is longer than %d bytes", path, MaxValueBytes)
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := vs.set(key, ParseText(withoutComments(string(data)))); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutComments drops lines that begin with '#' and white space at the end.
func withoutComments(s string) string {
	if strings.Contains(s, "#") {
		lines := strings.Split(s, "\n")
		kept := lines[:0]
		for _, l := range lines {
			if !strings.HasPrefix(l, "#") {
				kept = append(kept, l)
			}
		}
		s = strings.Join(kept, "\n")
	}
	return strings.TrimRight(s, " \t\r\n\v\f")
}
