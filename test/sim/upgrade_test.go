package sim_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// What goes through a tunnel arrives whole on both sides, however long it takes: the route's timeout is not for it.
func TestUpgrades(t *testing.T) {
	upgrading := strings.NewReplacer("codec_type: AUTO", "codec_type: AUTO\n          upgrade_configs: [{upgrade_type: sim}]").Replace(config(simtest.HTTP1))
	o := simtest.Options{Pipeline: 2, Upgrades: true, Stats: map[string]uint64{}}
	games(t, 50, simtest.Proxy(upgrading, 2), o)
	happened(t, o.Stats, "http.h1.downstream_cx_upgrades_total", "cluster.b.upstream_cx_connect_fail")
}
