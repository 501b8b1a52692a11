package config

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Every message that an extension of Envoy may be configured by has a description that can be used.
func TestAbsentMessages(t *testing.T) {
	s, n := newSchema(), 0
	for _, line := range strings.Split(strings.TrimSpace(knownTypes), "\n") {
		words := strings.Fields(line)
		for _, m := range words[1:] {
			if s.absentMessage("envoy."+words[0]+"."+m) == nil {
				t.Errorf("envoy.%s.%s has no description", words[0], m)
			}
			n++
		}
	}
	if n < 500 {
		t.Errorf("%d messages", n)
	}
	if s.absentMessage("envoy.no.such.Message") != nil || readAbsent([]byte("x")).message("a.B") != nil {
		t.Error("a message of nowhere")
	}
}

// The rules by description say what the generated validators say, but for how messages in messages are named.
func TestRulesByDescription(t *testing.T) {
	for _, c := range []struct{ message, json string }{
		{"envoy.config.core.v3.Http2ProtocolOptions", `{}`},
		{"envoy.config.core.v3.Http2ProtocolOptions", `{"initialStreamWindowSize": 5, "maxConcurrentStreams": 0, "maxOutboundFrames": 0, "customSettingsParameters": [{"identifier": 70000}], "connectionKeepalive": {"interval": "0.0001s", "timeout": "0s"}}`},
		{"envoy.config.cluster.v3.Cluster", `{"name": "", "connectTimeout": "0s", "lbPolicy": 77, "ringHashLbConfig": {"minimumRingSize": "9000000", "hashFunction": 5}, "healthChecks": [{}, {"timeout": "0s", "httpHealthCheck": {}}]}`},
		{"envoy.config.cluster.v3.Cluster", `{"name": "a", "type": 3, "edsClusterConfig": {"edsConfig": {}}, "outlierDetection": {"interval": "0s", "maxEjectionPercent": 101}, "lbSubsetConfig": {"fallbackPolicy": 9}}`},
		{"envoy.config.cluster.v3.Cluster", `{"name": "a", "circuitBreakers": {"thresholds": [{"priority": 4, "retryBudget": {"budgetPercent": {"value": 101}}}]}, "upstreamBindConfig": {"sourceAddress": {"address": "", "protocol": 7}}, "filters": [{}]}`},
		{"envoy.config.endpoint.v3.ClusterLoadAssignment", `{"endpoints": [{"priority": 129, "loadBalancingWeight": 0, "lbEndpoints": [{"loadBalancingWeight": 0, "endpoint": {"address": {"pipe": {"mode": 600}}}}]}], "policy": {"overprovisioningFactor": 0, "endpointStaleAfter": "0s"}}`},
		{"envoy.config.route.v3.RouteConfiguration", `{"virtualHosts": [{"name": "", "domains": [], "requireTls": 9, "routes": [{"match": {"headers": [{"name": "a\nb"}]}, "route": {"cluster": "", "priority": 9, "hashPolicy": [{}], "rateLimits": [{"stage": 11}]}, "requestHeadersToAdd": [{"header": {"key": "", "value": "a\nb"}}]}, {"match": {"prefix": "/"}, "directResponse": {"status": 99}}]}], "internalOnlyHeaders": ["a\u0000"]}`},
		{"envoy.config.route.v3.RouteConfiguration", `{"virtualHosts": [{"name": "a", "domains": ["a", ""], "routes": [{"match": {"safeRegex": {}}, "redirect": {"responseCode": 9, "hostRedirect": "a\n"}}, {"match": {"prefix": "/", "queryParameters": [{"name": ""}]}, "route": {"cluster": "a", "retryPolicy": {"retryBackOff": {"baseInterval": "0s"}, "rateLimitedRetryBackOff": {"resetHeaders": []}}, "upgradeConfigs": [{"upgradeType": "a\n"}]}}]}]}`},
		{"envoy.config.accesslog.v3.AccessLog", `{"filter": {"andFilter": {"filters": [{"notHealthCheckFilter": {}}]}}}`},
		{"envoy.config.accesslog.v3.AccessLog", `{"filter": {"responseFlagFilter": {"flags": ["XX"]}}}`},
		{"envoy.config.accesslog.v3.AccessLog", `{"filter": {"statusCodeFilter": {"comparison": {"op": 7}}}}`},
		{"envoy.config.listener.v3.Listener", `{"address": {"socketAddress": {"address": "a"}}, "drainType": 9, "connectionBalanceConfig": {}, "listenerFilters": [{"filterDisabled": {"orMatch": {"rules": [{"anyMatch": true}]}}}], "filterChains": [{"filterChainMatch": {"destinationPort": 0, "prefixRanges": [{"addressPrefix": "", "prefixLen": 129}], "sourcePorts": [0, 70000]}}]}`},
		{"envoy.config.bootstrap.v3.Bootstrap", `{"statsFlushInterval": "0.0001s", "node": {}, "layeredRuntime": {"layers": [{}]}, "overloadManager": {"resourceMonitors": [{}], "actions": [{"triggers": [{"name": "a", "threshold": {"value": 2}}]}]}, "statsConfig": {"histogramBucketSettings": [{"buckets": [0, 5, 5]}]}}`},
	} {
		mt, err := protoregistry.GlobalTypes.FindMessageByURL(c.message)
		if err != nil {
			t.Fatal(err)
		}
		m := mt.New().Interface()
		if err := protojson.Unmarshal([]byte(c.json), m); err != nil {
			t.Fatalf("%s: %v", c.message, err)
		}
		s := newSchema()
		want := walker{schema: s, limit: DefaultMaxErrors, errs: &Errors{}}
		want.tryValidate(m, "")
		got := walker{schema: s, limit: DefaultMaxErrors, errs: &Errors{}}
		got.rules(proto.Clone(m).ProtoReflect(), "", 0)
		a, b := told(want.errs), told(got.errs)
		for _, x := range a {
			if !slices.Contains(b, x) {
				t.Errorf("%s: not told: %s", c.message, x)
			}
		}
		for _, x := range b {
			if !slices.Contains(a, x) {
				t.Errorf("%s: only told by description: %s", c.message, x)
			}
		}
		if c.json != `{}` && len(a) == 0 {
			t.Errorf("%s: nothing is wrong", c.message)
		}
	}
}

// told lists errors without the names of messages, and without the allowed names of enums.
func told(e *Errors) (out []string) {
	for _, x := range e.List {
		_, reason, _ := strings.Cut(x.Msg, "ValidationError.")
		if reason == "" {
			reason = x.Msg
		}
		out = append(out, x.Path+": "+reason)
	}
	return out
}
