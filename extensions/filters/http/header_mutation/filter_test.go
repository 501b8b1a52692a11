package header_mutation_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/header_mutation"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const routes = `
            typed_per_filter_config: {it: {"@type": PERROUTE, mutations: {request_mutations: [{append: {header: {key: x-last, value: rc}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}}]}}}
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /local}
                direct_response: {status: 418}
              - match: {prefix: /}
                route: {cluster: backend}
                typed_per_filter_config: {it: {"@type": PERROUTE, mutations: {request_mutations: [{append: {header: {key: x-last, value: route}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}}, {append: {header: {key: x-all, value: route}}}]}}}
`

const config = `
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
              most_specific_header_mutations_wins: SPECIFIC
              mutations:
                request_mutations: [{append: {header: {key: x-all, value: "%REQ(:METHOD)%"}}}, {remove: x-gone}]
                query_parameter_mutations:
                - {append: {record: {key: a, value: "1 2"}}}
                - {append: {record: {key: b, value: "2"}, action: OVERWRITE_IF_EXISTS_OR_ADD}}
                - {append: {record: {key: c, value: "3"}, action: ADD_IF_ABSENT}}
                - {append: {record: {key: d, value: "4"}, action: OVERWRITE_IF_EXISTS}}
                - {remove: e}
                formatters: [{name: q, typed_config: {"@type": type.googleapis.com/envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery}}]
                response_mutations: [{append: {header: {key: x-path, value: "%REQ_WITHOUT_QUERY(:PATH)%"}}}, {append: {header: {key: x-why, value: "%RESPONSE_CODE_DETAILS%"}}}, {remove_on_match: {key_matcher: {prefix: x-secret-}}}]
`

func start(t *testing.T, specific string) *proxytest.Proxy {
	rig := proxytest.HTTPFilter{
		Filter: header_mutation.Extension,
		Config: strings.ReplaceAll(config, "SPECIFIC", specific),
		Routes: strings.ReplaceAll(routes, "PERROUTE", "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute"),
	}
	p, _ := rig.Start(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-Secret-1", "no")
		_, _ = fmt.Fprint(w, q.URL.RequestURI(), " all=", q.Header["X-All"], " last=", q.Header["X-Last"], " gone=", q.Header["X-Gone"])
	})
	return p
}

func TestMutations(t *testing.T) {
	for specific, last := range map[string]string{"false": "rc", "true": "route"} {
		p := start(t, specific)
		a := p.Get("/p?b=9&x&c=9&b=8&e=5", "X-Gone", "1", "X-All", "mine")
		if want := "/p?x&c=9&a=1%202&b=2 all=[mine GET route] last=[" + last + "] gone=[]"; a.Body != want {
			t.Errorf("%s, want %s", a.Body, want)
		}
		if a.Header.Get("X-Path") != "/p" || a.Header.Get("X-Why") != "via_upstream" || a.Header.Get("X-Secret-1") != "" {
			t.Errorf("%v", a.Header)
		}
		if a = p.Get("/p?d=1"); !strings.HasPrefix(a.Body, "/p?a=1%202&b=2&c=3&d=4 ") {
			t.Error(a.Body)
		}
		if a = p.Get("/local"); a.Header.Get("X-Why") != "direct_response" {
			t.Errorf("%v", a.Header)
		}
	}
}
