package route_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// changed applies what a route says about request headers.
func changed(t *testing.T, yaml string, sent ...string) []string {
	t.Helper()
	h := headers("GET /a a", sent...)
	e := table(t, yaml).Match(&route.Request{Headers: h})
	if e == nil {
		t.Fatal("no route")
	}
	w := worker(t)
	if e.ClusterHeaders != nil {
		e.ClusterHeaders.Apply(w, h, info(h))
	}
	if e.RequestHeaders != nil {
		e.RequestHeaders.Apply(w, h, info(h))
	}
	return lines(h)
}

func TestHeaderChanges(t *testing.T) {
	for name, c := range map[string]struct {
		add, remove string
		sent, want  []string
	}{
		"add":                 {"{header: {key: X-A, value: v}}", "", []string{"x-a: u"}, []string{"x-a: u", "x-a: v"}},
		"if absent":           {"{header: {key: x-a, value: v}, append_action: ADD_IF_ABSENT}", "", nil, []string{"x-a: v"}},
		"if absent, present":  {"{header: {key: x-a, value: v}, append_action: ADD_IF_ABSENT}", "", []string{"x-a: u"}, []string{"x-a: u"}},
		"overwrite":           {"{header: {key: x-a, value: v}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}", "", []string{"x-a: u", "x-a: w"}, []string{"x-a: v"}},
		"overwrite, absent":   {"{header: {key: x-a, value: v}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}", "", nil, []string{"x-a: v"}},
		"only overwrite":      {"{header: {key: x-a, value: v}, append_action: OVERWRITE_IF_EXISTS}", "", []string{"x-a: u"}, []string{"x-a: v"}},
		"nothing to replace":  {"{header: {key: x-a, value: v}, append_action: OVERWRITE_IF_EXISTS}", "", nil, nil},
		"the old append":      {"{header: {key: x-a, value: v}, append: false}", "", []string{"x-a: u"}, []string{"x-a: v"}},
		"format":              {`{header: {key: x-a, value: "%REQ(:PATH)% %RESPONSE_CODE% 100%%"}}`, "", nil, []string{"x-a: /a 207 100%"}},
		"nothing to say":      {`{header: {key: x-a, value: "%REQ(X-NONE)%"}}`, "", nil, nil},
		"keep what is empty":  {`{header: {key: x-a, value: "%REQ(X-NONE)%"}, keep_empty_value: true}`, "", nil, []string{"x-a: "}},
		"raw is not read":     {"{header: {key: x-a, raw_value: YWI=}}", "", nil, nil},
		"remove":              {"", "X-A", []string{"x-a: 1", "x-b: 2", "x-a: 3"}, []string{"x-b: 2"}},
		"remove, then add":    {"{header: {key: x-a, value: v}}", "x-a", []string{"x-a: u"}, []string{"x-a: v"}},
		"values are old":      {`{header: {key: x-a, value: v}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}, {header: {key: x-b, value: "%REQ(X-A)%"}}`, "", []string{"x-a: u"}, []string{"x-a: v", "x-b: u"}},
		"absence is old":      {"{header: {key: x-a, value: v}}, {header: {key: x-a, value: w}, append_action: ADD_IF_ABSENT}", "", nil, []string{"x-a: v", "x-a: w"}},
		"presence is old":     {"{header: {key: x-a, value: v}}, {header: {key: x-a, value: w}, append_action: OVERWRITE_IF_EXISTS}", "", nil, []string{"x-a: v"}},
		"replacing is first":  {"{header: {key: x-a, value: v}}, {header: {key: x-a, value: w}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}", "", []string{"x-a: u"}, []string{"x-a: w", "x-a: v"}},
		"a well-known header": {"{header: {key: Content-Type, value: a/b}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}", "referer", []string{"referer: r", "content-type: c"}, []string{"content-type: a/b"}},
	} {
		got := changed(t, "{virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: up}, request_headers_to_add: ["+c.add+
			"], request_headers_to_remove: ["+c.remove+"]}]}]}", c.sent...)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestHeaderLevels(t *testing.T) {
	const set = "request_headers_to_add: [{header: {key: x-s, value: %s}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}, {header: {key: x-a, value: %s}}], "
	yaml := func(more, action string) string {
		return "{" + more + named(set, "rc") + "virtual_hosts: [{name: v, domains: ['*'], " + named(set, "vh") + "routes: [{match: {prefix: /}, " + named(set, "r") + action + "}]}]}"
	}
	const one = "route: {cluster: up}"
	weighted := "route: {weighted_clusters: {clusters: [{name: up, weight: 1, " + named(set, "w") + "}]}}"
	for name, c := range map[string]struct{ yaml, x, a string }{
		"the least specific wins":                 {yaml("", one), "rc", "r vh rc"},
		"the most specific wins":                  {yaml("most_specific_header_mutations_wins: true, ", one), "r", "rc vh r"},
		"a weighted cluster":                      {yaml("", weighted), "rc", "w r vh rc"},
		"a weighted cluster is before all others": {yaml("most_specific_header_mutations_wins: true, ", weighted), "r", "w rc vh r"},
	} {
		var s, a string
		for _, l := range changed(t, c.yaml) {
			if v := l[5:]; l[2] == 's' {
				s += v
			} else if a == "" {
				a = v
			} else {
				a += " " + v
			}
		}
		if s != c.x || a != c.a {
			t.Errorf("%s: %q and %q, want %q and %q", name, s, a, c.x, c.a)
		}
	}
}

func named(text, v string) (out string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '%' {
			out += v
			i++
		} else {
			out += text[i : i+1]
		}
	}
	return out
}

func TestHeadersThatMayNotChange(t *testing.T) {
	for _, more := range []string{
		"request_headers_to_add: [{header: {key: ':path', value: x}}]", "request_headers_to_add: [{header: {key: Host, value: x}}]",
		"request_headers_to_remove: [':path']", "request_headers_to_remove: [host]", "response_headers_to_add: [{header: {key: ':status', value: x}}]",
		"response_headers_to_remove: [':status']", `request_headers_to_add: [{header: {key: x, value: "%NOPE%"}}]`,
	} {
		if _, err := compile(t, "{virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: up}, "+more+"}]}]}"); err == nil {
			t.Errorf("%s is accepted", more)
		}
	}
}

func TestChangingDoesNotAllocate(t *testing.T) {
	m, err := route.NewMutations([]*corev3.HeaderValueOption{
		{Header: &corev3.HeaderValue{Key: "x-a", Value: "%REQ(:PATH)%"}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
		{Header: &corev3.HeaderValue{Key: "x-b", Value: "%RESPONSE_CODE%"}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
		{Header: &corev3.HeaderValue{Key: "x-c", Value: "c"}, AppendAction: corev3.HeaderValueOption_ADD_IF_ABSENT},
	}, []string{"x-d"}, &format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, h := worker(t), headers("GET /a a", "x-a: 1")
	i := info(h)
	if n := testing.AllocsPerRun(100, func() {
		h.AddView(0, "x-d", "d")
		m.Apply(w, h, i)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if d := cmp.Diff([]string{"x-c: c", "x-a: /a", "x-b: 207"}, lines(h)); d != "" {
		t.Error(d)
	}
}
