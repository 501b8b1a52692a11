package contrib_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/internal/contrib"
)

func TestHas(t *testing.T) {
	for message, want := range map[string]bool{
		"envoy.extensions.filters.network.kafka_broker.v3.KafkaBroker":          true,
		"envoy.extensions.filters.network.postgres_proxy.v3alpha.PostgresProxy": true,
		"envoy.extensions.filters.network.sip_proxy.tra.v3alpha.TraService":     true,
		"envoy.extensions.vcl.v3alpha.VclSocketInterface":                       true,
		"envoy.extensions.config.v3alpha.KeyValueStoreXdsDelegateConfig":        true,
		"envoy.extensions.config.validators.minimum_clusters.v3.X":              false,
		"envoy.extensions.filters.network.kafka_brokers.v3.KafkaBroker":         false,
		"envoy.extensions.filters.http.router.v3.Router":                        false,
		"kafka": false,
		"":      false,
	} {
		if got := contrib.Has(message); got != want {
			t.Errorf("%s: %v", message, got)
		}
	}
	for message, want := range map[string]bool{"espv2.api.envoy.v11.http.service_control.FilterConfig": true, "istio.x.Y": true, "envoy.x.Y": false, "google.protobuf.Struct": false, "": false} {
		if got := contrib.Foreign(message); got != want {
			t.Errorf("%s: %v", message, got)
		}
	}
	if !slices.IsSortedFunc(contrib.Extensions(), func(a, b contrib.Extension) int { return strings.Compare(a.Package, b.Package) }) {
		t.Error("the table is not in order")
	}
}
