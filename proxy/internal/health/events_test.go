package health_test

import (
	nethttp "net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

var timestamp = regexp.MustCompile(`"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"`)

// Events of one host, as Envoy 1.40 wrote them for the same answers.
func TestEvents(t *testing.T) {
	const (
		ejected = `"eject_unhealthy_event":{"failure_type":"ACTIVE","http_status_code":500},T`
		failed  = `T,"health_check_failure_event":{"failure_type":"ACTIVE","first_check":false,"http_status_code":500}`
		first   = `"add_healthy_event":{"first_check":true},T`
		again   = `"add_healthy_event":{"first_check":false},T`
		fair    = `T,"degraded_healthy_host":{}`
		good    = `T,"no_longer_degraded_host":{}`
		well    = `T+,"successful_health_check_event":{}`
		passive = `"eject_unhealthy_event":{"failure_type":"PASSIVE","http_status_code":0},T`
	)
	for _, c := range []struct {
		failures, success bool
		answers           string
		want              []string
	}{
		{false, false, "200 200 500 500 200 200", []string{first, ejected, again}},
		{true, false, "200 500 500", []string{first, ejected, failed, failed}},
		{false, true, "200 200 degraded", []string{first, well, well, fair}},
		{false, false, "degraded 200", []string{first, fair, good}},
		{false, false, "200 fail", []string{first, passive}},
		{false, false, "500", []string{strings.Replace(failed, "false", "true", 1)}},
	} {
		answers := make(chan string, 1)
		h := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			switch <-answers {
			case "500":
				w.WriteHeader(500)
			case "degraded":
				w.Header().Set("x-envoy-degraded", "true")
			}
		})
		r := newRig(t, func(o *health.Options) {
			o.HTTP, o.Healthy = &health.HTTP{Path: "/", Method: "GET"}, 2
			o.LogFailures, o.LogSuccess = c.failures, c.success
		})
		for i, a := range strings.Fields(c.answers) {
			n := len(r.results)
			if a == "fail" {
				r.c.FailNow(h)
				continue
			}
			answers <- a
			if i == 0 {
				r.add(h)
			} else {
				r.next()
			}
			r.run("a result", func() bool { return len(r.results) > n })
		}
		var want []string
		port := strconv.Itoa(int(h.Address.IP.Port()))
		for _, w := range c.want {
			w, after, _ := strings.Cut(w, "+")
			want = append(want, `{"health_checker_type":"HTTP","host":{"socket_address":{"protocol":"TCP","address":"127.0.0.1","port_value":`+port+
				`,"resolver_name":"","ipv4_compat":false,"network_namespace_filepath":""}},"cluster_name":"c",`+w+
				`,"locality":{"region":"","zone":"","sub_zone":""}`+after+"}\n")
		}
		got := append([]string(nil), r.lines...)
		for i := range got {
			got[i] = timestamp.ReplaceAllString(got[i], "T")
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.answers, d)
		}
	}
}

// What an event says of a host.
func TestEventHost(t *testing.T) {
	r := newRig(t, func(o *health.Options) { o.TCP = &health.TCP{} })
	h := host.New(network.Address{Path: "/nonexistent/<sock>"}, "")
	h.SetLocality(&host.Locality{Region: "r", Zone: "z"})
	h.SetMetadata(&host.Metadata{Spaces: map[string]map[string]any{"a": {"b": 1.0, "<": []any{"x"}}}})
	r.check(h)
	want := []string{`{"health_checker_type":"TCP","host":{"pipe":{"path":"/nonexistent/<sock>","mode":0}},"cluster_name":"c",T,` +
		`"health_check_failure_event":{"failure_type":"NETWORK","first_check":true,"http_status_code":0},` +
		`"metadata":{"filter_metadata":{"a":{"<":["x"],"b":1}},"typed_filter_metadata":{}},"locality":{"region":"r","zone":"z","sub_zone":""}}` + "\n"}
	for i := range r.lines {
		r.lines[i] = timestamp.ReplaceAllString(r.lines[i], "T")
	}
	if d := cmp.Diff(want, r.lines); d != "" {
		t.Error(d)
	}
}
