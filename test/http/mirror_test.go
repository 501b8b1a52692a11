package http_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// mirrors is the cluster of mirrors.
func mirrors(m scripttest.Mode) string {
	return "{name: sh, load_assignment: {cluster_name: sh, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM_1}}]}]}" + m.Cluster() + "}"
}

// mirrored is a proxy with one mirror policy; what the mirror's upstream gets is appended to got.
func mirrored(t *testing.T, m scripttest.Mode, policy string, got *[]string, up, sh func(r *scripttest.Call)) *scripttest.Proxy {
	route := "{match: {prefix: /}, route: {cluster: up, host_rewrite_literal: \"to.test:80\", request_mirror_policies: [" + policy + "]}}"
	return m.Start(t, scripttest.Config{Routes: []string{route}, Clusters: []string{mirrors(m)}},
		scripttest.Upstream{Serve: up}, scripttest.Upstream{Serve: func(r *scripttest.Call) {
			*got = append(*got, r.Head+"\r\n\r\n"+r.Body)
			if sh != nil {
				sh(r)
				return
			}
			r.Reply("200 OK", "mirror")
		}})
}

func TestMirrorHeads(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range map[string]struct {
			policy string
			send   string
			want   []string // lines; nil: there is no copy
		}{
			"suffix":      {"{cluster: sh}", scripttest.Request("/a"), []string{"GET /a HTTP/1.1", "host: to.test-shadow:80", "x-envoy-internal: true"}},
			"no suffix":   {"{cluster: sh, disable_shadow_host_suffix_append: true}", scripttest.Request("/a"), []string{"host: to.test:80"}},
			"host":        {"{cluster: sh, host_rewrite_literal: mirror.test}", scripttest.Request("/a"), []string{"host: mirror.test"}},
			"header":      {"{cluster_header: x-to}", scripttest.Request("/a", "x-to: sh"), []string{"host: to.test-shadow:80"}},
			"no header":   {"{cluster_header: x-to}", scripttest.Request("/a"), nil},
			"no cluster":  {"{cluster_header: x-to}", scripttest.Request("/a", "x-to: nowhere"), nil},
			"none of all": {"{cluster: sh, runtime_fraction: {default_value: {numerator: 0}}}", scripttest.Request("/a"), nil},
			"all of all":  {"{cluster: sh, runtime_fraction: {default_value: {numerator: 100}}}", scripttest.Request("/a"), []string{"GET /a HTTP/1.1"}},
			"mutations": {"{cluster: sh, request_headers_mutations: [{append: {header: {key: x-p, value: \"%REQ(:PATH)%\"}}}, {remove: x-rm}]}", scripttest.Request("/a", "x-rm: 1"),
				[]string{"x-p: /a", "-x-rm: 1"}},
			"body":   {"{cluster: sh}", "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc", []string{"content-length: 3", "abc"}},
			"chunks": {"{cluster: sh}", "POST /a HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", []string{"-content-length: 3", "abc"}},
		} {
			t.Run(name, func(t *testing.T) {
				var got []string
				p := mirrored(t, m, c.policy, &got, func(r *scripttest.Call) { r.Reply("200 OK", "main") }, nil)
				if a := p.Do(c.send); !strings.HasSuffix(a, "main") {
					t.Errorf("answer %q", a)
				}
				p.Settle()
				if (len(got) == 1) != (c.want != nil) {
					t.Fatalf("copies: %q", got)
				}
				for _, l := range c.want {
					text, absent := strings.CutPrefix(l, "-")
					if strings.Contains("\r\n"+got[0]+"\r\n", "\r\n"+text+"\r\n") == absent {
						t.Errorf("line %q of the copy: %q", l, got[0])
					}
				}
				n := uint64(len(got))
				p.Stats(map[string]uint64{"http.async-client.rq_total": n, "http.s.rq_total": 1, "cluster.sh.upstream_rq_200": n})
			})
		}
	})
}

// The client neither waits for a mirror nor hears of it.
func TestMirrorIsNotWaitedFor(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, sh := range map[string]func(r *scripttest.Call){
			"silent": func(*scripttest.Call) {},
			"fails":  func(r *scripttest.Call) { r.Reset() },
			"long":   func(r *scripttest.Call) { r.Reply("200 OK", strings.Repeat("x", 1<<20)) },
			"error":  func(r *scripttest.Call) { r.Reply("500 Internal Server Error", "") },
		} {
			t.Run(name, func(t *testing.T) {
				var got []string
				p := mirrored(t, m, "{cluster: sh}", &got, func(r *scripttest.Call) { r.Reply("200 OK", "main") }, sh)
				cl := p.Dial()
				for range 2 {
					if a := cl.Send("POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc").Got(); !strings.HasSuffix(a, "main") {
						t.Errorf("answer %q", a)
					}
				}
				p.Pass(16 * time.Second) // the route's timeout is the copy's too
				p.Stats(map[string]uint64{"cluster.sh.upstream_rq_active": 0, "http.s.downstream_rq_2xx": 2})
			})
		}
	})
}

// A client that leaves before its request is whole takes the copy with it; one that leaves after it does not.
func TestMirrorClientLeaves(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, send := range map[string]string{"early": "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nabc", "late": scripttest.Request("/")} {
			var got []string
			p := mirrored(t, m, "{cluster: sh}", &got, func(*scripttest.Call) {}, func(r *scripttest.Call) { r.After(time.Second, func() { r.Reply("200 OK", "") }) })
			cl := p.Dial().Send(send)
			p.Stats(map[string]uint64{"cluster.sh.upstream_rq_active": 1})
			cl.Close()
			p.Pass(2 * time.Second)
			want := map[string]uint64{"early": 0, "late": 1}[name]
			p.Stats(map[string]uint64{"cluster.sh.upstream_rq_active": 0, "cluster.sh.upstream_rq_200": want})
		}
	})
}

// A mirror that cannot be reached gets nothing, and takes no part of the request along.
func TestMirrorUnreachable(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		route := "{match: {prefix: /}, route: {cluster: up, request_mirror_policies: [{cluster: sh}]}}"
		p := m.Start(t, scripttest.Config{Routes: []string{route}, Listener: []string{"per_connection_buffer_limit_bytes: 1024"},
			Clusters: []string{strings.Replace(mirrors(m), "{name: sh", "{name: sh, connect_timeout: 60s, per_connection_buffer_limit_bytes: 1024", 1)}},
			scripttest.Upstream{Serve: func(r *scripttest.Call) { r.Reply("200 OK", "main") }}, scripttest.Upstream{Down: true})
		cl := p.Dial().Send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 8192\r\n\r\n" + strings.Repeat("x", 8192))
		if got := cl.Got(); !strings.HasSuffix(got, "main") {
			t.Errorf("got %q", got)
		}
	})
}

func TestMirrorLevels(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		sh2 := "{name: sh2, load_assignment: {cluster_name: sh2, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM_2}}]}]}" + m.Cluster() + "}"
		for name, c := range map[string]struct {
			config scripttest.Config
			want   []string
		}{
			"route, and not the host": {scripttest.Config{Routes: []string{"{match: {prefix: /}, route: {cluster: up, request_mirror_policies: [{cluster: sh}]}}"},
				VirtualHost: []string{"request_mirror_policies: [{cluster: sh2}]"}}, []string{"sh"}},
			"virtual host": {scripttest.Config{VirtualHost: []string{"request_mirror_policies: [{cluster: sh2}]"}, RouteConfig: []string{"request_mirror_policies: [{cluster: sh}]"}},
				[]string{"sh2"}},
			"all routes": {scripttest.Config{RouteConfig: []string{"request_mirror_policies: [{cluster: sh}]"}}, []string{"sh"}},
			"several":    {scripttest.Config{RouteConfig: []string{"request_mirror_policies: [{cluster: sh}, {cluster: sh2}]"}}, []string{"sh", "sh2"}},
		} {
			t.Run(name, func(t *testing.T) {
				c.config.Clusters = []string{mirrors(m), sh2}
				p := m.Start(t, c.config, scripttest.Upstream{}, scripttest.Upstream{}, scripttest.Upstream{})
				p.Get("/")
				p.Settle()
				var got []string
				for _, name := range []string{"sh", "sh2"} {
					if p.Stat("cluster."+name+".upstream_rq_total") == 1 {
						got = append(got, name)
					}
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
			})
		}
	})
}
