package http_test

import (
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// around sends a request at each of many moments around the one at which the upstream ends the connection that it would use, and adds
// up the statistics. each gets the request's outcome, and how often the upstream has seen it.
func around(t *testing.T, m scripttest.Mode, c scripttest.Config, message string, end func(r *scripttest.Call), each func(a scripttest.Response, seen int)) (stats map[string]uint64) {
	t.Helper()
	const idle = 5 * time.Second
	stats = map[string]uint64{}
	for late := -200 * time.Microsecond; late < 1400*time.Microsecond; late += 80 * time.Microsecond {
		seen := 0
		p := m.Start(t, c, scripttest.Upstream{Serve: func(r *scripttest.Call) {
			if r.Path() == "/second" {
				seen++
			}
			r.Reply("200 OK", "ok")
			if r.N == 1 {
				r.After(idle, func() { end(r) })
			}
		}})
		cl := p.Dial().Send(scripttest.Request("/first"))
		p.Pass(idle - 50*time.Millisecond + late) // Send has let 50 ms pass
		cl.Send(message)
		p.Pass(time.Second)
		if p.Stat("cluster.up.dragoman.lost.acknowledged") == 0 {
			each(cl.Response(), seen)
		} else if a := cl.Response(); a.Status == 200 && seen != 1 {
			t.Errorf("seen %d times: %+v", seen, a)
		}
		for _, name := range []string{"resent", "lost.unsent", "lost.unacknowledged", "lost.acknowledged", "reuse.closed", "reuse.reset"} {
			stats[name] += p.Stat("cluster.up.dragoman." + name)
		}
		stats["retries"] += p.Stat("cluster.up.upstream_rq_retry")
	}
	return stats
}

var ends = map[string]func(r *scripttest.Call){
	"fin":   func(r *scripttest.Call) { r.Close() },
	"reset": func(r *scripttest.Call) { r.Reset() },
}

// A request that can be sent again does not notice that the upstream has just given its connection up. It is served once.
func TestClosedWhileUsed(t *testing.T) {
	resent := map[string]uint64{}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for how, end := range ends {
			t.Run(how, func(t *testing.T) {
				stats := around(t, m, scripttest.Config{}, scripttest.Request("/second"), end, func(a scripttest.Response, seen int) {
					if a.Status != 200 || seen != 1 {
						t.Errorf("seen %d times: %+v", seen, a)
					}
				})
				resent[how] += stats["resent"]
				if stats["retries"] != 0 {
					t.Errorf("%v", stats)
				}
			})
		}
	})
	if resent["fin"] == 0 || resent["reset"] == 0 {
		t.Errorf("sent again: %v", resent)
	}
}

// few runs a test in two modes only: what differs between modes is behind it.
func few(t *testing.T, f func(t *testing.T, m scripttest.Mode)) {
	for _, m := range []scripttest.Mode{{Down: scripttest.H1, Up: scripttest.H1}, {Down: scripttest.H2C, Up: scripttest.H2C}} {
		t.Run(m.String(), func(t *testing.T) { f(t, m) })
	}
}

// A request that might have been read, or whose body is gone, is not sent again: it is answered as Envoy does.
func TestClosedWhileUsedUnsafe(t *testing.T) {
	off := scripttest.Config{Bootstrap: []string{"layered_runtime: {layers: [{name: s, static_layer: {dragoman.reloadable_features.resend_unacknowledged: false}}]}"}}
	few(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range map[string]struct {
			config  scripttest.Config
			message string
		}{
			"post with a body": {scripttest.Config{}, scripttest.Message("POST", "/second", "body")},
			"turned off":       {off, scripttest.Request("/second")},
		} {
			t.Run(name, func(t *testing.T) {
				failed := 0
				stats := around(t, m, c.config, c.message, ends["fin"], func(a scripttest.Response, seen int) {
					switch a.Status {
					case 503:
						failed++
						if seen != 0 || a.Body != "upstream connect error or disconnect/reset before headers. reset reason: connection termination" {
							t.Errorf("seen %d times: %+v", seen, a)
						}
					case 200:
						if seen != 1 {
							t.Errorf("seen %d times", seen)
						}
					default:
						t.Errorf("got %+v", a)
					}
				})
				if stats["resent"] != 0 || failed == 0 {
					t.Errorf("%d failed, %v", failed, stats)
				}
			})
		}
	})
}

// The body is there where the route keeps it for retries, though these are not for resets.
func TestClosedWhileUsedWithBody(t *testing.T) {
	few(t, func(t *testing.T, m scripttest.Mode) {
		for name, route := range map[string]string{
			"Envoy's buffer": `{match: {prefix: /}, route: {cluster: up, retry_policy: {retry_on: retriable-4xx}}}`,
			"held back":      `{match: {prefix: /}, metadata: {filter_metadata: {dragoman.retry: {}}}, route: {cluster: up, retry_policy: {retry_on: retriable-4xx}}}`,
		} {
			t.Run(name, func(t *testing.T) {
				c := scripttest.Config{Routes: []string{route}}
				stats := around(t, m, c, scripttest.Message("PUT", "/second", "body"), ends["reset"], func(a scripttest.Response, seen int) {
					if a.Status != 200 || seen != 1 {
						t.Errorf("seen %d times: %+v", seen, a)
					}
				})
				if stats["resent"] == 0 {
					t.Errorf("%v", stats)
				}
			})
		}
	})
}

// A policy that retries such failures has its way, with its counters.
func TestClosedWhileUsedWithPolicy(t *testing.T) {
	few(t, func(t *testing.T, m scripttest.Mode) {
		c := scripttest.Config{Routes: []string{`{match: {prefix: /}, route: {cluster: up, retry_policy: {retry_on: reset}}}`}}
		stats := around(t, m, c, scripttest.Request("/second"), ends["fin"], func(a scripttest.Response, seen int) {
			if a.Status != 200 || seen != 1 {
				t.Errorf("seen %d times: %+v", seen, a)
			}
		})
		if stats["resent"] != 0 || stats["retries"] == 0 {
			t.Errorf("%v", stats)
		}
	})
}
