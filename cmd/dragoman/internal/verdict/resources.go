package verdict

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// mostResourceFiles bounds the files of resources that are looked at for one bootstrap.
const mostResourceFiles = 1000

// isResources tells whether a file is a DiscoveryResponse: resources as xDS brings them, and no bootstrap.
func isResources(root *configfile.Value) bool {
	if root == nil || root.Get("resources") == nil {
		return false
	}
	return !slices.ContainsFunc(root.Keys, func(k string) bool {
		return !slices.Contains([]string{"resources", "version_info", "type_url", "nonce", "canary", "control_plane", "resource_errors", "versionInfo", "typeUrl", "controlPlane", "resourceErrors"}, k)
	})
}

// resourceFiles are the files of resources that a configuration names, and those that these name, as far as they are here: that one
// is not is a problem of whoever names it.
func resourceFiles(root *configfile.Value) (list []proxy.ResourceFile) {
	seen := map[string]bool{}
	var walk func(v *configfile.Value)
	visit := func(path string) {
		if path == "" || seen[path] || len(list) >= mostResourceFiles || strings.HasSuffix(strings.ToLower(path), ".pb_text") {
			return
		}
		seen[path] = true
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return
		}
		list = append(list, proxy.ResourceFile{Path: path, Data: data})
		if f, err := configfile.Of(path, data, configfile.Options{AllowUnknownFields: true}); err == nil && f.Form != configfile.Proto {
			walk(f.Root)
		}
	}
	walk = func(v *configfile.Value) {
		for i, x := range v.Items {
			if v.Kind == configfile.Map {
				switch k := v.Keys[i]; {
				case k == "path_config_source" || k == "pathConfigSource":
					visit(x.Str("path"))
				case strings.HasSuffix(k, "_config") || strings.HasSuffix(k, "_config_source") || k == "config_source" || strings.HasSuffix(k, "Config") ||
					strings.HasSuffix(k, "ConfigSource"): // the deprecated way
					if p := x.Str("path"); len(x.Keys) <= 2 && filepath.Ext(p) != "" && (len(x.Keys) == 1 || x.Get("resource_api_version") != nil) {
						visit(p)
					}
				}
			}
			walk(x)
		}
	}
	walk(root)
	return list
}

// reported takes over what there is to say of the file as a bootstrap, and of the files of resources that it names; or of the file as
// one of resources.
func (f *File) reported(r *proxy.Report, o proxy.LoadOptions, opts []proxy.Option) {
	if isResources(f.root) {
		f.isResources, f.OK = true, true
		f.take(proxy.CheckResources("", o, []proxy.ResourceFile{{Path: f.File, Data: o.Data}}, opts...))
		return
	}
	f.OK, f.Problems, f.More, f.Notes = r.OK(), r.Problems, r.More, r.Notes
	if f.root == nil {
		return
	}
	if files := resourceFiles(f.root); len(files) > 0 {
		f.take(proxy.CheckResources(f.File, o, files, opts...))
	}
}

func (f *File) take(r *proxy.Report) {
	f.Problems = append(f.Problems, r.Problems...)
	f.More += r.More
	f.Notes = append(f.Notes, r.Notes...)
	f.OK = f.OK && r.OK()
}
