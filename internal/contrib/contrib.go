// Package contrib knows the extensions of Envoy's contrib build, which Envoy's own build does not have: to say of a configuration that
// names one why Envoy refuses it, too. It is a table that never changes, for any goroutine; no proxy reads it.
package contrib

import "strings"

// extensions are the packages of messages below envoy.extensions, without their versions, with what there is to say about them.
var extensions = []Extension{
	{"bootstrap.hyperscan", "Hyperscan, regular expressions"},
	{"compression.compressor.igzip", "ISA-L igzip, compression"},
	{"compression.qatzip", "Intel QAT, compression"},
	{"compression.qatzstd", "Intel QAT, compression"},
	{"config", "store of xDS configurations"},
	{"filters.common.workload_discovery", "Istio, discovery of workloads"},
	{"filters.http.alpn", "Istio, ALPN of upstream connections"},
	{"filters.http.checksum", "checksums of bodies"},
	{"filters.http.dynamo", "DynamoDB"},
	{"filters.http.golang", "plugins in Go"},
	{"filters.http.istio_stats", "Istio, telemetry"},
	{"filters.http.language", "detection of languages"},
	{"filters.http.peer_metadata", "Istio, telemetry"},
	{"filters.http.squash", "Squash debugger"},
	{"filters.http.sxg", "signed exchanges"},
	{"filters.listener.postgres_inspector", "PostgreSQL"},
	{"filters.network.client_ssl_auth", "authentication by a list of certificates"},
	{"filters.network.generic_proxy.codecs.kafka", "Kafka"},
	{"filters.network.golang", "plugins in Go"},
	{"filters.network.kafka_broker", "Kafka"},
	{"filters.network.kafka_mesh", "Kafka"},
	{"filters.network.metadata_exchange", "Istio, telemetry"},
	{"filters.network.mysql_proxy", "MySQL"},
	{"filters.network.peer_metadata", "Istio, telemetry"},
	{"filters.network.postgres_proxy", "PostgreSQL"},
	{"filters.network.rocketmq_proxy", "RocketMQ"},
	{"filters.network.sip_proxy", "SIP"},
	{"load_balancing_policies.peak_ewma", "load balancing by latency"},
	{"matching.input_matchers.hyperscan", "Hyperscan, regular expressions"},
	{"network.connection_balance.dlb", "Intel DLB, balance of connections"},
	{"private_key_providers.cryptomb", "Intel CryptoMB, private keys"},
	{"private_key_providers.kae", "Kunpeng, private keys"},
	{"private_key_providers.qat", "Intel QAT, private keys"},
	{"private_key_providers.sgx", "Intel SGX, private keys"},
	{"regex_engines.hyperscan", "Hyperscan, regular expressions"},
	{"router.cluster_specifier.golang", "plugins in Go"},
	{"stat_sinks.kafka", "Kafka"},
	{"stat_sinks.wasm_filter", "WebAssembly"},
	{"tap_sinks.udp_sink", "taps over UDP"},
	{"transport_sockets.istio_internal_upstream", "Istio, ambient mode"},
	{"upstreams.http.tcp.golang", "plugins in Go"},
	{"vcl", "VPP's sockets"},
}

// Extension is one of the contrib build's.
type Extension struct {
	Package string // of its messages, without "envoy.extensions." and the version
	About   string
}

// Extensions lists all. The caller must not change them.
func Extensions() []Extension { return extensions }

const prefix = "envoy.extensions."

// Has tells whether a message, by its full name, belongs to one of them.
func Has(message string) bool {
	rest, ok := strings.CutPrefix(message, prefix)
	if !ok {
		return false
	}
	for _, x := range extensions {
		if below, ok := strings.CutPrefix(rest, x.Package+"."); ok && (version(below) || strings.Contains(x.Package, ".")) {
			return true
		}
	}
	return false
}

// version tells whether the next step of a name is a version: v3, v3alpha.
func version(s string) bool { return len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9' }

// Foreign tells whether a message belongs to none of the APIs that Envoy's own build knows by their names: to a fork, or to a product.
func Foreign(message string) bool {
	for _, api := range []string{"envoy.", "google.", "xds.", "udpa.", "opentelemetry.", "validate.", "cel."} {
		if strings.HasPrefix(message, api) {
			return false
		}
	}
	return message != ""
}
