package route_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

func retryMetadata(t *testing.T, m map[string]any) *corev3.Metadata {
	t.Helper()
	if m == nil {
		return nil
	}
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{route.RetryNamespace: s}}
}

func TestRetryBuffer(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		vhost, route m
		want         *route.RetryBuffer
		err          string
	}{
		"none":               {nil, nil, nil, ""},
		"on":                 {nil, m{}, &route.RetryBuffer{}, ""},
		"said":               {nil, m{"hold_client": true}, &route.RetryBuffer{}, ""},
		"all":                {nil, m{"memory_bytes": 1, "file_bytes": 1 << 53, "file_folder": "/x"}, &route.RetryBuffer{MemoryBytes: 1, FileBytes: 1 << 53, FileFolder: "/x"}, ""},
		"virtual host":       {m{"memory_bytes": 5}, nil, &route.RetryBuffer{MemoryBytes: 5}, ""},
		"the route replaces": {m{"memory_bytes": 5}, m{"file_bytes": 7}, &route.RetryBuffer{FileBytes: 7}, ""},
		"the route ends it":  {m{"memory_bytes": 5}, m{"hold_client": false}, nil, ""},
		"off with more":      {nil, m{"hold_client": false, "file_bytes": 7}, nil, "hold_client: nothing else"},
		"not a boolean":      {nil, m{"hold_client": "yes"}, nil, "hold_client: yes is neither"},
		"zero bytes":         {nil, m{"memory_bytes": 0}, nil, "memory_bytes: 0 is not a number of bytes"},
		"too many bytes":     {nil, m{"file_bytes": 1<<53 + 2}, nil, "file_bytes: "},
		"a fraction":         {nil, m{"file_bytes": 1.5}, nil, "file_bytes: 1.5 is not"},
		"text":               {nil, m{"file_bytes": "1"}, nil, "file_bytes: 1 is not"},
		"not a path":         {nil, m{"file_bytes": 1, "file_folder": true}, nil, "file_folder: true is not a path"},
		"folder for nothing": {nil, m{"file_folder": "/x"}, nil, "file_folder: file_bytes is not set"},
		"unknown":            {nil, m{"hold": true}, nil, "metadata.filter_metadata[dragoman.retry].hold: there is no such field"},
	} {
		t.Run(name, func(t *testing.T) {
			rc := &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{
				Name: "v", Domains: []string{"*"}, Metadata: retryMetadata(t, c.vhost),
				Routes: []*routev3.Route{{
					Match:    &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
					Action:   &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
					Metadata: retryMetadata(t, c.route),
				}},
			}}}
			table, err := route.Compile(rc, route.Deps{
				Slot: func(string) *cluster.Slot { return nil }, Exists: func(string) bool { return true }, Format: &format.Options{},
			})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var arena http.Arena
			arena.Init(&http.ArenaPool{})
			var h http.HeaderMap
			h.Init(&arena)
			h.Add(http.Method, "GET")
			h.Add(http.Path, "/")
			h.Add(http.Authority, "a")
			e := table.Match(&route.Request{Headers: &h})
			if e == nil {
				t.Fatal("no route")
			}
			if diff := cmp.Diff(c.want, e.RetryBuffer); diff != "" {
				t.Error(diff)
			}
		})
	}
}
