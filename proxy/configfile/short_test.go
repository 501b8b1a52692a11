package configfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

func TestParseRule(t *testing.T) {
	for in, want := range map[string]configfile.Rule{
		"/=http://a:1":                   {Match: "/", To: []string{"http://a:1"}},
		"/api/=http://a:1,http://b:2":    {Match: "/api/", To: []string{"http://a:1", "http://b:2"}},
		"=/health=respond:200 fine":      {Match: "=/health", Respond: "200 fine"},
		"a.com/=redirect:https":          {Match: "a.com/", Redirect: "https"},
		"a.com=/x=redirect:http://b/?c=": {Match: "a.com=/x", Redirect: "http://b/?c="},
	} {
		got, err := configfile.ParseRule(in)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", in, err, d)
		}
	}
	for _, in := range []string{"", "/", "=/x", "a.com=/x"} {
		if r, err := configfile.ParseRule(in); err == nil || !strings.Contains(err.Error(), "MATCH=TARGET") {
			t.Errorf("%q: %+v %v", in, r, err)
		}
	}
}

const shortText = `
listen: [8080, "[::1]:8081"]
admin: 9901
access_log: "-"
routes:
- {match: /api/, to: [http://10.0.0.1:9000, http://10.0.0.2:9000], timeout: 3s}
- {match: /more, to: [http://10.0.0.1:9000, http://10.0.0.2:9000]}
- {match: example.com/, to: h2c://backend.example}
- {match: =/health, respond: 200 fine}
- {match: old.example.com/, redirect: https}
- {match: /, to: https://10.1.1.1}
tcp:
- {listen: 5432, to: db.internal:5432}
`

// What the short form expands to is a bootstrap that this proxy runs.
func TestExpand(t *testing.T) {
	s, err := configfile.ParseShort(read(t, "short.yaml", shortText, configfile.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Expand()
	if err != nil {
		t.Fatal(err)
	}
	static := v.At("static_resources")
	var names []string
	for _, c := range append(static.List("listeners"), static.List("clusters")...) {
		names = append(names, c.Str("name")+" "+c.Str("type"))
	}
	if d := cmp.Diff([]string{"http ", "http_2 ", "tcp ", "upstream_9000 STATIC", "backend STRICT_DNS", "upstream_443 STATIC", "db STRICT_DNS"}, names); d != "" {
		t.Error(d)
	}
	if _, err := configfile.FromValue(v).Bootstrap(); err != nil {
		t.Error(err)
	}
}

func TestShortErrors(t *testing.T) {
	for in, want := range map[string]string{
		"listen: 8080":                           "nothing to do with requests",
		"routes: []":                             "nothing to listen on",
		"listen: x":                              "nothing to do with requests",
		"listen: x\nroutes: [{match: /, to: a}]": `address "x": write HOST:PORT`,
		"listen: 1:99999\nroutes: [{match: /, to: a}]":               "a number from 0 to 65535",
		"listen: 1\nroutes: [{match: /}]":                            "say one of to, redirect and respond",
		"listen: 1\nroutes: [{match: /, to: a, respond: 200}]":       "say one of to, redirect and respond",
		"listen: 1\nroutes: [{match: x, to: a}]":                     "write a path such as /api/",
		"listen: 1\nroutes: [{match: /, respond: 99}]":               "a status from 200 to 599",
		"listen: 1\nroutes: [{match: /, redirect: x}]":               "redirect takes https, or a URL",
		"listen: 1\nroutes: [{match: /, to: 'ftp://a'}]":             "the kinds are http, https, h2c",
		"listen: 1\nroutes: [{match: /, to: 'http://a/b'}]":          "a path cannot be given here",
		"listen: 1\nroutes: [{match: /, to: [http://a, https://b]}]": "those of one route are of one kind",
		"listen: 1\nroutes: [{match: /, to: 'tcp://a:1'}]":           "tcp:// is for TCP listeners",
		"listen: 1\ntls: {cert: x}\nroutes: [{match: /, to: a}]":     "one of the two is missing",
		"tcp: [{listen: 1, to: a}]":                                  "has no port",
		"tcp: [{listen: 1}]":                                         "has no upstream",
		"lisen: 1":                                                   "the short form has no lisen; it has access_log, admin, listen, routes, tcp, tls",
		"listen: {a: 1}":                                             "listen is to be a text",
		"routes: 1":                                                  "routes is to be a list",
		"routes: [1]":                                                "routes[0] is to be a map",
	} {
		s, err := configfile.ParseShort(read(t, "short.yaml", in, configfile.Options{}))
		if err == nil {
			_, err = s.Expand()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// Upstreams with TLS and a name are asked by that name: they answer for no other.
func TestHostOfTLS(t *testing.T) {
	for to, want := range map[string][3]string{ // auto_host_rewrite, sni, auto_host_sni
		"https://example.com":                     {"true", "example.com", ""},
		"h2://example.com:444":                    {"true", "example.com", ""},
		"https://a.example.com,https://b.example": {"true", "", "true"},
		"https://10.1.1.1,https://10.1.1.2":       {"", "", "true"},
		"https://10.1.1.1":                        {"", "", ""},
		"http://example.com":                      {"", "", ""},
	} {
		s := &configfile.Short{Listen: []string{"80"}, Rules: []configfile.Rule{{Match: "/", To: strings.Split(to, ",")}}}
		v, err := s.Expand()
		if err != nil {
			t.Fatal(err)
		}
		static := v.At("static_resources")
		manager := static.List("listeners")[0].List("filter_chains")[0].List("filters")[0].At("typed_config")
		route := manager.At("route_config").List("virtual_hosts")[0].List("routes")[0].At("route")
		tls := static.List("clusters")[0].At("transport_socket", "typed_config")
		if got := [3]string{route.Str("auto_host_rewrite"), tls.Str("sni"), tls.Str("auto_host_sni")}; got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
}

// Routes without a host hold for the hosts that are named, too, behind their own, as far as these leave something of them.
func TestShortRoutesOfAllHosts(t *testing.T) {
	s := configfile.Short{Listen: []string{"8080"}}
	for _, r := range []string{"/api/v2=respond:202", "example.com/api/=respond:201", "=/health=respond:203", "whole.example/=respond:204", "health.example=/health=respond:205", "/=respond:200"} {
		rule, err := configfile.ParseRule(r)
		if err != nil {
			t.Fatal(err)
		}
		s.Rules = append(s.Rules, rule)
	}
	v, err := s.Expand()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	manager := v.At("static_resources").List("listeners")[0].List("filter_chains")[0].List("filters")[0].Get("typed_config")
	for _, h := range manager.Get("route_config").List("virtual_hosts") {
		for _, r := range h.List("routes") {
			got[h.Str("name")] += " " + r.At("match").Str("prefix") + r.At("match").Str("path") + " " + r.Get("direct_response").Str("status")
		}
	}
	want := map[string]string{"example.com": " /api/ 201 /health 203 / 200", "whole.example": " / 204", "health.example": " /health 205 /api/v2 202 / 200", "all": " /api/v2 202 /health 203 / 200"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
