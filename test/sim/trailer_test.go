package sim_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// withTrailers lets trailers through where HTTP/1 is spoken.
func withTrailers(upstream simtest.Protocol) string {
	text := strings.Replace(config(upstream), "codec_type: AUTO", "codec_type: AUTO\n          http_protocol_options: {enable_trailers: true}", 1)
	if upstream == simtest.HTTP1 {
		text = strings.Replace(text, "connect_timeout: 5s", `connect_timeout: 5s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http_protocol_options: {enable_trailers: true}}`, 1)
	}
	return text
}

// Trailers arrive behind the body that they belong to, and nowhere else.
func TestTrailers(t *testing.T) {
	for down, name := range protocols {
		for up, upName := range protocols {
			t.Run(name+" to "+upName, func(t *testing.T) {
				o := simtest.Options{Protocol: down, Upstream: up, Pipeline: 2, Trailers: true, Stats: map[string]uint64{}}
				games(t, 25, simtest.Proxy(withTrailers(up), 2), o)
				happened(t, o.Stats, "http.h1.downstream_rq_2xx")
			})
		}
	}
}

// A proxy that drops trailers is found out.
func TestLostTrailersAreFound(t *testing.T) {
	for seed := range uint64(100) {
		o := simtest.Options{Weather: simtest.Fair, Pipeline: 2, Trailers: true}
		if err := simtest.Play(seed, simtest.Proxy(config(simtest.HTTP1), 2), o); err != nil && strings.Contains(err.Error(), "trailer") {
			return
		}
	}
	t.Error("not found")
}
