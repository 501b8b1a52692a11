package server

import (
	"errors"

	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/runtime"
)

// serveRuntime answers /runtime: all keys with what each layer says.
func (s *Server) serveRuntime(_ *admin.Request, done func(*admin.Response)) {
	snap := s.runtime.Snapshot()
	done(&admin.Response{Code: 200, ContentType: admin.JSON, Body: s.page(func(w *admin.Writer) { runtimePage(w, snap) })})
}

func runtimePage(w *admin.Writer, snap *runtime.Snapshot) {
	list := func(n int, indent string, text func(i int) string) {
		for i := range n {
			if i > 0 {
				w.Text(",")
			}
			w.Text("\n" + indent + " ")
			w.Buf = config.AppendString(w.Buf, text(i))
		}
		if n > 0 {
			w.Text("\n" + indent)
		}
	}
	layers := snap.Layers()
	w.Text("{\n \"layers\": [")
	list(len(layers), " ", func(i int) string { return layers[i] })
	w.Text("],\n \"entries\": {")
	keys := snap.Keys()
	for i, k := range keys {
		if i > 0 {
			w.Text(",")
		}
		w.Text("\n  ")
		w.Buf = config.AppendString(w.Buf, k)
		w.Text(": {\n   \"final_value\": ")
		v, _ := snap.Get(k)
		w.Buf = config.AppendString(w.Buf, v.Raw)
		w.Text(",\n   \"layer_values\": [")
		list(len(layers), "   ", func(i int) string { return snap.InLayer(i, k) })
		w.Text("]\n  }")
		if !w.Item() {
			return
		}
	}
	if len(keys) > 0 {
		w.Text("\n ")
	}
	w.Text("}\n}\n")
}

// serveRuntimeModify answers /runtime_modify.
func (s *Server) serveRuntimeModify(r *admin.Request, done func(*admin.Response)) {
	if len(r.Query) == 0 {
		done(admin.Fail(400, "usage: /runtime_modify?key1=value1&key2=value2&keyN=valueN\n"+
			"       or send the parameters as form values\n"+
			"use an empty value to remove a previously added override"))
		return
	}
	changes := map[string]string{}
	for k, v := range r.Query {
		changes[k] = v[len(v)-1]
	}
	switch err := s.runtime.Modify(changes); {
	case errors.Is(err, runtime.ErrNoAdminLayer):
		done(admin.Fail(503, err.Error()))
	case err != nil:
		done(admin.Fail(400, err.Error()))
	default:
		done(admin.OK("OK\n"))
	}
}
