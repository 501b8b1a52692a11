package sim_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// Bodies are kept for retries as a route asks for it: in little memory, with the client held back, or in a file.
func TestKeptBodies(t *testing.T) {
	for name, metadata := range map[string]string{"memory": "memory_bytes: 2000", "file": "memory_bytes: 500, file_bytes: 60000"} {
		for up, upName := range protocols {
			for down, downName := range protocols {
				t.Run(name+", "+downName+" to "+upName, func(t *testing.T) {
					keeping := strings.Replace(config(up), `route: {cluster: b, timeout: 80s}`, `
                metadata: {filter_metadata: {dragoman.retry: {`+metadata+`}}}
                route:
                  cluster: b
                  timeout: 80s
                  retry_policy: {retry_on: "5xx,reset,connect-failure,gateway-error", num_retries: 2, per_try_timeout: 20s}`, 1)
					seen := map[string]uint64{}
					games(t, 40, simtest.Proxy(keeping, 2), simtest.Options{Protocol: down, Upstream: up, Pipeline: 2, Retries: 2, Stats: seen})
					happened(t, seen, "cluster.b.upstream_rq_retry", "cluster.b.upstream_rq_retry_success", "http.h1.downstream_flow_control_paused_reading_total")
					if name == "memory" {
						happened(t, seen, "cluster.b.dragoman.retry_abandoned.memory_limit")
					} else {
						happened(t, seen, "cluster.b.dragoman.retry_buffer.files", "cluster.b.dragoman.retry_abandoned.file_limit")
					}
				})
			}
		}
	}
}
