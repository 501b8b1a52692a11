package scripttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

func TestExchange(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{}.YAML(), scripttest.Upstream{Serve: func(r *scripttest.Call) {
		if r.Path() == "/later" {
			r.After(10*time.Second, func() { r.Reply("200 OK", "late") })
			return
		}
		r.Reply("200 OK", r.Body, "x-path: "+r.Path())
	}})
	got := p.Do("POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc")
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\nabc") || scripttest.HeaderOf(got, "x-path") != "/a" {
		t.Errorf("got %q", got)
	}
	c := p.Dial().Send(scripttest.Request("/later"))
	if got := c.Got(); got != "" {
		t.Errorf("too early: %q", got)
	}
	p.Pass(10 * time.Second)
	if got := c.Got(); !strings.HasSuffix(got, "late") {
		t.Errorf("got %q", got)
	}
	p.Stats(map[string]uint64{"http.s.downstream_rq_2xx": 2, "cluster.up.upstream_rq_200": 2, "http.s.downstream_cx_active": 2})
}
