package route_test

import (
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// compile reads a route configuration, without checking its fields by themselves.
func compile(t testing.TB, yaml string) (*route.Table, error) {
	t.Helper()
	return compileWith(t, yaml, route.Deps{
		Slot: func(string) *cluster.Slot { return nil }, Exists: func(name string) bool { return name != "none" }, Format: &format.Options{},
	})
}

func compileWith(t testing.TB, yaml string, d route.Deps) (*route.Table, error) {
	t.Helper()
	var rc routev3.RouteConfiguration
	if _, err := config.Parse("r.yaml", []byte(yaml), &rc, config.Options{SkipValidation: true}); err != nil {
		t.Fatal(err)
	}
	return route.Compile(&rc, d)
}

func table(t testing.TB, yaml string) *route.Table {
	t.Helper()
	x, err := compile(t, yaml)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// routes is a route configuration with one virtual host for all.
func routes(list ...string) string {
	return "{name: r, virtual_hosts: [{name: v, domains: ['*'], routes: [" + strings.Join(list, ", ") + "]}]}"
}

// answer is a route that answers itself: name, what it matches.
func answer(name, match string) string {
	return "{name: " + name + ", match: {" + match + "}, direct_response: {status: 200}}"
}

// headers makes headers of lines; the first is method, path and authority.
func headers(first string, lines ...string) *http.HeaderMap {
	var arena http.Arena
	arena.Init(&http.ArenaPool{})
	h := &http.HeaderMap{}
	h.Init(&arena)
	f := strings.SplitN(first, " ", 3)
	h.Add(http.Method, f[0])
	h.Add(http.Path, f[1])
	h.Add(http.Authority, f[2])
	h.Add(http.Scheme, "http")
	for _, l := range lines {
		k, v, _ := strings.Cut(l, ": ")
		h.AddName(strings.TrimSuffix(k, ":"), v)
	}
	return h
}

// lines are the headers behind the pseudo headers.
func lines(h *http.HeaderMap) (out []string) {
	for _, f := range h.All() {
		if f.Name[0] != ':' {
			out = append(out, f.Name+": "+f.Value)
		}
	}
	return out
}

// chosen is the name of the route that a request takes, "" if there is none.
func chosen(x *route.Table, h *http.HeaderMap) string {
	if e := x.Match(&route.Request{Headers: h}); e != nil {
		return e.RouteName
	}
	return ""
}

func worker(t testing.TB) *event.Worker {
	t.Helper()
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return event.New(event.Config{Index: 0, Name: "worker_0", Driver: d, Clock: clock.System(), Stats: stats.NewStore().Main()})
}

// info is a stream with these request headers.
func info(h *http.HeaderMap) *stream.Info {
	return &stream.Info{RequestHeaders: h, Code: 207, RouteName: "named"}
}
