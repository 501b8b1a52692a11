package http_test

import (
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// noWindow is a SETTINGS frame after which the streams of a client have no window (RFC 9113, section 6.9.2).
const noWindow = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00"

// A response that has ended waits for the client's window as long as the most specific of three fields says, of which the route's idle_timeout is none.
func TestFlushTimeout(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		m.Not(t, !m.Down.Streams(), "there are no windows")
		for name, c := range map[string]struct {
			hcm   []string
			route string
			after time.Duration // 0: never
		}{
			"by default":                {nil, "", 300 * time.Second},
			"stream_idle_timeout":       {[]string{"stream_idle_timeout: 7s"}, "", 7 * time.Second},
			"the route's idle_timeout":  {[]string{"stream_idle_timeout: 7s"}, "idle_timeout: 5s", 7 * time.Second},
			"stream_flush_timeout":      {[]string{"stream_idle_timeout: 7s", "stream_flush_timeout: 4s"}, "idle_timeout: 5s", 4 * time.Second},
			"flush_timeout":             {[]string{"stream_flush_timeout: 4s"}, "idle_timeout: 5s, flush_timeout: 3s", 3 * time.Second},
			"flush_timeout of 0":        {[]string{"stream_flush_timeout: 4s"}, "flush_timeout: 0s", 0},
			"idle_timeout of 0":         {[]string{"stream_idle_timeout: 7s"}, "idle_timeout: 0s", 7 * time.Second},
			"stream_flush_timeout of 0": {[]string{"stream_flush_timeout: 0s"}, "idle_timeout: 5s", 0},
		} {
			t.Run(name, func(t *testing.T) {
				route := "{match: {prefix: /}, route: {cluster: up"
				if c.route != "" {
					route += ", " + c.route
				}
				p := m.Start(t, scripttest.Config{HCM: c.hcm, Routes: []string{route + "}}"}}, scripttest.Upstream{})
				cl := p.Dial().Raw(noWindow).Send(scripttest.Request("/"))
				for _, wait := range []time.Duration{c.after - 300*time.Millisecond, 600 * time.Millisecond} {
					if c.after == 0 {
						wait = 1000 * time.Second
					}
					if a := cl.Response(); a.Status != 200 || a.Body != "" || a.Broken {
						t.Fatalf("got %+v", a)
					}
					p.Pass(wait)
				}
				if a := cl.Response(); a.Broken != (c.after > 0) {
					t.Errorf("got %+v", a)
				} else if a.Broken && a.Code != http2.ErrCodeInternal && a.Code != http2.ErrCodeNo {
					t.Errorf("reset with %v", a.Code)
				}
				if c.after > 0 {
					p.Stats(map[string]uint64{"http2.tx_flush_timeout": 1})
				}
			})
		}
	})
}
