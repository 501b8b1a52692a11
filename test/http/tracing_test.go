package http_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// why is the character of a request's id that says why it is traced.
func why(t *testing.T, answer string) string {
	t.Helper()
	_, head, _ := strings.Cut(answer, "\r\n\r\n")
	id := scripttest.HeaderOf(head, "x-request-id")
	if len(id) != 36 {
		return id
	}
	return id[14:15]
}

func TestTraceReasons(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		const id, edge = "x-request-id: 6d8c3a1e-7d4c-Xa2b-9c1d-0123456789ab", "use_remote_address: true, preserve_external_request_id: true"
		with := func(x string) string { return strings.Replace(id, "X", x, 1) }
		for name, c := range map[string]struct {
			hcm, route string
			send       []string
			want       string
			counter    string
		}{
			"off":                     {"via: x", "", []string{with("9")}, "9", ""},
			"off, at the edge":        {edge, "", []string{with("9")}, "4", ""},
			"always":                  {"tracing: {}", "", []string{with("4")}, "9", "random_sampling"},
			"never":                   {"tracing: {random_sampling: {value: 0}}", "", []string{with("4")}, "4", "not_traceable"},
			"it says so itself":       {"tracing: {random_sampling: {value: 0}}", "", []string{with("a")}, "a", "service_forced"},
			"not at the edge":         {edge + ", tracing: {random_sampling: {value: 0}}", "", []string{with("a")}, "4", "not_traceable"},
			"the client's wish":       {"tracing: {random_sampling: {value: 0}}", "", []string{with("4"), "x-client-trace-id: 1"}, "b", "client_enabled"},
			"a wish that is not kept": {"tracing: {random_sampling: {value: 0}, client_sampling: {value: 0}}", "", []string{with("4"), "x-client-trace-id: 1"}, "4", "not_traceable"},
			"none at all":             {"tracing: {overall_sampling: {value: 0}}", "", []string{with("9")}, "4", "not_traceable"},
			"no id":                   {"tracing: {}", "", []string{"x-request-id: foo"}, "foo", "not_traceable"},
			"by the route":            {"tracing: {}", ", tracing: {random_sampling: {numerator: 0}}", []string{with("4")}, "4", "not_traceable"},
			"nothing in the id": {`tracing: {}, request_id_extension: {typed_config: {"@type": type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig, ` +
				`pack_trace_reason: false}}`, "", []string{with("4")}, "4", "random_sampling"},
			"not by the id": {`tracing: {random_sampling: {value: 0}}, request_id_extension: {typed_config: {"@type": ` +
				`type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig, use_request_id_for_trace_sampling: false}}`, "", []string{with("4")}, "4", "random_sampling"},
		} {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{HCM: []string{c.hcm}, Routes: []string{"{match: {prefix: /}, route: {cluster: up}" + c.route + "}"}}, echo)
				if got := why(t, p.Get("/", c.send...)); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				want := map[string]uint64{}
				for _, n := range []string{"client_enabled", "not_traceable", "random_sampling", "service_forced"} {
					want["http.s.tracing."+n] = 0
				}
				if c.counter != "" {
					want["http.s.tracing."+c.counter] = 1
				}
				p.Stats(want)
			})
		}
	})
}

func TestDecorators(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		const named = "{match: {prefix: /}, route: {cluster: up}, decorator: {operation: op}}"
		const quiet = "{match: {prefix: /}, route: {cluster: up}, decorator: {operation: op, propagate: false}}"
		for name, c := range map[string]struct {
			listener, route string
			send            []string
			up, down        string
		}{
			"in":                       {"traffic_direction: INBOUND", named, nil, "", "op"},
			"in, by the client's name": {"traffic_direction: INBOUND", named, []string{"x-envoy-decorator-operation: mine"}, "", ""},
			"in, quiet":                {"traffic_direction: INBOUND", quiet, nil, "", ""},
			"out":                      {"traffic_direction: OUTBOUND", named, nil, "op", ""},
		} {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{HCM: []string{"tracing: {}"}, Listener: []string{c.listener}, Routes: []string{c.route}}, echo)
				got := p.Get("/", c.send...)
				_, head, _ := strings.Cut(got, "\r\n\r\n")
				up := scripttest.HeaderOf(head, "x-envoy-decorator-operation")
				if down := scripttest.HeaderOf(got, "x-envoy-decorator-operation"); up != c.up || down != c.down {
					t.Errorf("upstream %q, client %q, want %q, %q", up, down, c.up, c.down)
				}
			})
		}
	})
}
