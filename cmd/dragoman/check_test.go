package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/verdict"
)

// wasm makes a configuration of watched that needs an extension that there is not.
func wasm() string {
	return strings.Replace(watched, "http_filters: [", `http_filters: [{name: w, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm}}, `, 1)
}

func TestCheck(t *testing.T) {
	t.Setenv("DRAGOMAN_TEST_PORT", "8080")
	for _, c := range []struct {
		name, text string
		flags      string
		code       int
		want       []string
	}{
		{"it runs", watched, "", exitOK, []string{"a.yaml: runs as it is\n  1 listener, 1 virtual host, 1 route\n  extensions: 2 used, 0 not supported\n"}},
		{"all extensions", watched, "--verbose", exitOK, []string{"    yes  envoy.extensions.filters.http.router.v3.Router (1 place)\n"}},
		{"an extension that is missing", wasm(), "", exitNo, []string{"a.yaml: does not run yet: 1 problem, all about what is not supported here\n",
			"a.yaml:12:", "\n      field static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters[0]", "    no   envoy.extensions.filters.http.wasm.v3.Wasm (1 place)\n"}},
		{"what may follow from an extension that is missing", `{"static_resources": {"clusters": [{"name": "c", "cluster_type": {"name": "x", "typed_config": {
 "@type": "type.googleapis.com/envoy.extensions.clusters.redis.v3.RedisClusterConfig"}}, "load_assignment": {"cluster_name": "c", "endpoints": [{"lb_endpoints": [
 {"endpoint": {"address": {"socket_address": {"address": "host.example", "port_value": 1}}}}]}]}}]}}`, "", exitNo, []string{"a.yaml: does not run yet: "}},
		{"one name is like another", strings.Replace(watched, "http_filters: [", `http_filters: [{name: w, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.csrf.v3.CsrfPolicy, filter_enabled: {default_value: {}}}}, `, 1), "", exitNo,
			[]string{"does not run yet: 1 problem, all about"}},
		{"several mistakes", strings.NewReplacer("stat_prefix: p", "stat_prefixx: p", "status: 200", "status: 20000").Replace(wasm()), "", exitNo,
			[]string{"a.yaml: is refused: ", "did you mean 'stat_prefix'?", "wasm"}},
		{"an extension in a field that is not supported", strings.Replace(watched, "stat_prefix: p", `stat_prefix: p
          tracing: {provider: {name: z, typed_config: {"@type": type.googleapis.com/envoy.config.trace.v3.ZipkinConfig, collector_cluster: c, collector_endpoint: /}}}`, 1), "", exitNo,
			[]string{"1 problem, all about what is not supported here", "not supported yet; extensions there that this build does not have: envoy.config.trace.v3.ZipkinConfig\n",
				"    no   envoy.config.trace.v3.ZipkinConfig (1 place)"}},
		{"an extension in one that is not supported", strings.Replace(watched, "http_filters: [", `http_filters: [{name: w, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor,
            compressor_library: {name: g, typed_config: {"@type": type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip}}}}, `, 1), "--max-problems 1", exitNo,
			[]string{"extensions there that this build does not have: envoy.extensions.compression.gzip.compressor.v3.Gzip\n", "4 used, 2 not supported", "    no   envoy.extensions.compression.gzip.compressor.v3.Gzip (1 place)"}},
		{"one in a TypedStruct there", watched + `
bootstrap_extensions: [{name: x, typed_config: {"@type": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener, value: {}}}]`, "", exitNo,
			[]string{"3 used, 1 not supported\n    no   envoy.extensions.bootstrap.internal_listener.v3.InternalListener (1 place)"}},
		{"one that nobody has, there", watched + "\nstats_sinks: [{name: bogus}]", "", exitNo,
			[]string{"stats_sinks", "not supported yet; Didn't find a registered implementation for 'bogus' with type URL: ''"}},
		{"a message that is no extension, there", watched + `
bootstrap_extensions: [{name: x, typed_config: {"@type": type.googleapis.com/envoy.config.core.v3.Node}}]`, "", exitNo, []string{"all about what is not supported here", "3 used, 0 not supported\n"}},
		{"clusters under a name that is misspelt", strings.Replace(watched, "direct_response: {status: 200, body: {inline_string: one}}", "route: {cluster: c}", 1) +
			"  cluster: [{name: c}]\n", "", exitNo, []string{"a.yaml: is refused: 1 problem\n", "did you mean 'clusters'?"}},
		{"clusters among the listeners", strings.Replace(watched, "direct_response: {status: 200, body: {inline_string: one}}", "route: {cluster: c}", 1) +
			"  - clusters: [{name: c}]\n", "--quiet", exitNo, []string{"static_resources.listeners[1].clusters: no such field: 'clusters'", "; static_resources has that field: is the indent wrong?\n", "!unknown cluster"}},
		{"and those of copies of requests", strings.Replace(watched, "direct_response: {status: 200, body: {inline_string: one}}", "route: {cluster: c, request_mirror_policies: [{cluster: d}]}", 1) +
			"  cluster: [{name: c}]\n", "", exitNo, []string{"a.yaml: is refused: 1 problem\n", "did you mean 'clusters'?"}},
		{"ECMAScript", watched + "\nstats_config: {stats_tags: [{tag_name: x, regex: '(?=(a))b'}]}", "", exitNo, []string{"all about what is not supported here", "differs: `stats_config"}},
		{"no YAML", "a: [", "", exitNo, []string{"a.yaml: is refused: 1 problem\n  ", "a.yaml:2:1: invalid YAML"}},
		{"what nobody means", watched + "  clusters: [{name: c}]\n", "", exitOK,
			[]string{"runs as it is", "  note: ", "a.yaml:14:21: the cluster 'c' has no endpoints", "\n      field static_resources.clusters[0].name\n"}},
		{"what nobody means, for programs", watched + "  clusters: [{name: c}]\n", "--output json", exitOK, []string{`"ok": true`, `"kind": "doubtful"`, `"path": "static_resources.clusters[0].name"`}},
		{"what may follow from a mistake", watched + "  clusters: [{name: c, typ: EDS}]\n", "", exitNo, []string{"no such field: 'typ'", "!note: "}},
		{"quietly", strings.Replace(watched, "stat_prefix", "stat_prefixx", 1), "--quiet", exitNo, []string{"a.yaml:11:11: static_resources.listeners[0]"}},
		{"quietly, and it runs", watched, "-q", exitOK, []string{""}},
		{"variables", strings.Replace(watched, "port_value: 0", "port_value: '${DRAGOMAN_TEST_PORT}'", 1), "--config-env", exitOK, []string{"runs as it is"}},
		{"a variable that is not set", strings.Replace(watched, "port_value: 0", "port_value: '${DRAGOMAN_TEST_NOT}'", 1), "--config-env", exitNo,
			[]string{"a.yaml:5:65: the environment variable DRAGOMAN_TEST_NOT is not set"}},
		{"a variable that is not replaced", strings.Replace(watched, "address: 127.0.0.1", "address: '${DRAGOMAN_TEST_PORT}'", 1), "", exitNo,
			[]string{"malformed IP address: ${DRAGOMAN_TEST_PORT}", "note: ", "variables such as ${NAME} are replaced with --config-env only"}},
		{"an object of Kubernetes", "apiVersion: v1\nkind: ConfigMap\ndata: {}", "", exitNo, []string{"this is an object of Kubernetes"}},
		{"a second document", watched + "\n---\nbogus: 1\n", "", exitOK, []string{"note: ", ": a second document begins: nothing from here on is read, as in Envoy"}},
		{"no typed_config", strings.Replace(watched, "http_filters: [", "http_filters: [{name: envoy.filters.http.router}, ", 1), "", exitNo,
			[]string{"with type URL: ''; did you mean 'typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}'?"}},
		{"an operator that there is not", strings.Replace(watched, "stat_prefix: p", "stat_prefix: p\n          access_log: [{name: l, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog, log_format: {text_format: '%START_TIM%'}}}]", 1),
			"", exitNo, []string{"did you mean 'START_TIME'?\n      field static_resources.listeners[0].filter_chains[0].filters[0].typed_config.access_log[0].typed_config.log_format.text_format\n"}},
		{"merged", watched, "--config-yaml nod", exitNo, []string{"--config-yaml:1:1"}},
		{"another prefix of header names", "header_prefix: x-other\n" + watched, "", exitNo, []string{"a.yaml:1:16: not supported yet; found 'x-other'", "field header_prefix"}},
		{"an unknown field", "foo: 1\n" + watched, "--allow-unknown-fields", exitOK, []string{"runs as it is", "  note: ", "foo"}},
		{"what differs", `{"static_resources": {"listeners": [{"name": "a", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}, "drain_type": "MODIFY_ONLY",
 "filter_chains": [{"filters": [{"name": "t", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "x", "cluster": "c"}}]}]}],
 "clusters": [{"name": "c"}]}}`, "", exitOK, []string{"runs as it is", "  differs: `tcp_proxy`: gauges", "here: "}},
	} {
		path := file(t, "a.yaml", c.text)
		code, out, problem := command(t, "", append([]string{"check", path}, strings.Fields(c.flags)...)...)
		if code != c.code || problem != "" {
			t.Errorf("%s: %d %s", c.name, code, problem)
		}
		for _, want := range c.want {
			if not, ok := strings.CutPrefix(want, "!"); ok && strings.Contains(out, not) || !ok && (!strings.Contains(out, want) || want == "" && out != "") {
				t.Errorf("%s: %q is missing in\n%s", c.name, want, out)
			}
		}
	}
}

// What is there counts by either name of a field, for people and for CI.
func TestCheckCounts(t *testing.T) {
	camel := `{"staticResources": {"clusters": [{"name": "c"}], "listeners": [{"name": "a", "address": {"socketAddress": {"address": "127.0.0.1", "portValue": 0}},
 "filterChains": [{"filters": [{"name": "h", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
 "statPrefix": "x", "routeConfig": {"virtualHosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}]},
 "httpFilters": [{"name": "r", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}]}}`
	path := file(t, "a.json", camel)
	if code, out, _ := command(t, "", "check", path); code != exitOK || !strings.Contains(out, "\n  1 listener, 1 virtual host, 1 route, 1 cluster\n") {
		t.Errorf("%d %s", code, out)
	}
	code, out, _ := command(t, "", "check", "--output", "json", path)
	var all verdict.All
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitOK {
		t.Fatalf("%d %v %s", code, err, out)
	}
	if d := cmp.Diff(map[string]int{"listeners": 1, "virtual hosts": 1, "routes": 1, "clusters": 1, "secrets": 0}, all.Files[0].Has); d != "" {
		t.Error(d)
	}
}

// Standard input and pipes have no name that says what they hold: YAML or JSON.
func TestCheckStandardInput(t *testing.T) {
	for text, want := range map[string]string{
		watched:                                 "standard input: runs as it is\n  1 listener",
		`{"node": {"id": "x", "cluster": "y"}}`: "standard input: runs as it is\n",
		strings.Replace(watched, "stat_p", "tat_p", 1): "standard input:11:11: ",
		"": "standard input: is refused",
	} {
		code, out, problem := command(t, text, "check", "-")
		if problem != "" || (code == exitOK) != strings.Contains(want, "runs") || !strings.Contains(out, want) {
			t.Errorf("%q: %d %s%s", text, code, out, problem)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(watched); err != nil { // less than a pipe holds
		t.Fatal(err)
	}
	w.Close()
	path := fmt.Sprint("/dev/fd/", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("this system has no names for open files, which <(...) of a shell needs too: ", err)
	}
	if code, out, problem := command(t, "", "check", path); code != exitOK || !strings.Contains(out, path+": runs as it is\n  1 listener") {
		t.Errorf("%d %s%s", code, out, problem)
	}
}

// Of what Envoy's own build has not either, it is said which has it.
func TestCheckOfOtherBuilds(t *testing.T) {
	filter := func(message string) string {
		return strings.Replace(watched, "http_filters: [", `http_filters: [{name: w, typed_config: {"@type": type.googleapis.com/`+message+`}}, `, 1)
	}
	for message, want := range map[string][]string{
		"envoy.extensions.filters.http.golang.v3alpha.Config": {"is refused: 1 problem, all of extensions that Envoy 1.40's own build does not have either\n", "3 used, 1 not supported\n",
			"(1 place; not in Envoy 1.40's own build: in its contrib build only)"},
		"espv2.api.envoy.v12.http.service_control.FilterConfig": {"is refused: 1 problem, all of", "3 used, 1 not supported\n", "(1 place; not in Envoy 1.40: of a program that is made of Envoy)"},
		"envoy.extensions.filters.http.nope.v3.Nope":            {"is refused: 1 problem\n", "3 used, 1 not supported\n", "(1 place)"},
	} {
		code, out, _ := command(t, "", "check", file(t, "a.yaml", filter(message)))
		for _, w := range want {
			if code != exitNo || !strings.Contains(out, w) {
				t.Errorf("%s: %d, %q is missing in\n%s", message, code, w, out)
			}
		}
	}
}

// TestCheckCreatesNoLog has a file that could be created, and one in a folder that does not exist.
func TestCheckCreatesNoLog(t *testing.T) {
	dir := t.TempDir()
	for name, code := range map[string]int{"access.log": exitOK, "none/access.log": exitNo} {
		at := filepath.Join(dir, name)
		log := `access_log: [{name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: ` + at + `}}]`
		got, out, _ := command(t, "", "check", file(t, "a.yaml", strings.Replace(watched, "stat_prefix: p", "stat_prefix: p\n          "+log, 1)))
		if got != code || strings.Contains(out, "unable to open file '"+at+"'") != (code == exitNo) {
			t.Errorf("%s: %d %s", name, got, out)
		}
		if _, err := os.Stat(at); err == nil {
			t.Errorf("%s is there", at)
		}
	}
}

// What this machine lacks is a kind of its own, and may be let pass.
func TestCheckForAnotherMachine(t *testing.T) {
	needs := func(body string) string {
		return strings.Replace(watched, "body: {inline_string: one}", "body: "+body, 1)
	}
	for _, c := range []struct {
		name, text, verdict string
		kinds               []string
		elsewhere           string
	}{
		{"a file", needs("{filename: /proc/none}"), "machine", []string{"machine"}, "runs"},
		{"a variable", needs("{environment_variable: DRAGOMAN_TEST_NOT}"), "machine", []string{"machine"}, "runs"},
		{"a mistake besides", strings.Replace(needs("{filename: /proc/none}"), "status: 200", "status: 20", 1), "refused", []string{"machine", "rule"}, "refused"},
		{"a name that is taken twice besides", needs("{filename: /proc/none}") + "\n  clusters: [{name: c}, {name: c}]", "refused", []string{"invalid", "machine"}, "refused"},
	} {
		path := file(t, "a.yaml", c.text)
		look := func(flags ...string) *verdict.File {
			_, out, _ := command(t, "", append([]string{"check", "--output", "json", path}, flags...)...)
			var all verdict.All
			if err := json.Unmarshal([]byte(out), &all); err != nil {
				t.Fatal(err)
			}
			return all.Files[0]
		}
		f := look()
		var kinds []string
		for _, p := range f.Problems {
			kinds = append(kinds, string(p.Kind))
		}
		slices.Sort(kinds)
		if d := cmp.Diff(c.kinds, kinds); d != "" || f.Verdict != c.verdict || f.OK {
			t.Errorf("%s: %s %s", c.name, f.Verdict, d)
		}
		g := look("--allow-missing-files")
		if g.Verdict != c.elsewhere || g.OK != (c.elsewhere == "runs") || g.OK && len(g.Notes) != len(f.Problems) {
			t.Errorf("%s: elsewhere %s %v", c.name, g.Verdict, g.Notes)
		}
	}
	path := file(t, "a.yaml", needs("{filename: /proc/none}"))
	if code, out, _ := command(t, "", "check", path); code != exitNo || !strings.Contains(out, "does not run on this machine: 1 problem, all of them") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, "", "check", "--allow-missing-files", path); code != exitOK || !strings.Contains(out, "  note: "+path+":") {
		t.Errorf("%d %s", code, out)
	}
}

func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good.yaml": watched, "sub/wasm.yml": wasm(), "sub/more.yaml": wasm(), "values.yaml": "replicas: 3", "README.md": "x",
		"k8s.yaml": "kind: Deployment\napiVersion: apps/v1\nadmin: x", ".git/x.yaml": wasm(), "broken.json": "{"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, _ := command(t, "", "check", dir)
	if code != exitNo || !strings.Contains(out, "\n1 of 4 configurations run; 2 other files hold no bootstrap\n  refused: 1 of them, for mistakes that Envoy refuses too\n  missing in 2 of them: envoy.extensions.filters.http.wasm.v3.Wasm\n") {
		t.Errorf("%d %s", code, out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := watched + "\n  clusters: [{name: c, lrs_server: {self: {}}}]"
	write("h1.yaml", load)
	write("h2.yaml", load)
	write("h3.yaml", load+"\nnode: {id: x, cluster: x}\ndynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: c, stat_prefix: c}}]}}")
	_, out, _ = command(t, "", "check", "-q", dir)
	if !strings.Contains(out, "\n1 of 7 configurations run; 2 other files hold no bootstrap\n  refused: 1 of them, for mistakes that Envoy refuses too\n"+
		"  missing in 3 of them: field clusters[].lrs_server\n  missing in 2 of them: envoy.extensions.filters.http.wasm.v3.Wasm\n  missing in 1 of them: field dynamic_resources.ads_config.grpc_services[].google_grpc\n") {
		t.Error(out)
	}
	for _, name := range []string{"h1.yaml", "h2.yaml", "h3.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	code, out, _ = command(t, "", "check", dir, "--output", "json")
	var all verdict.All
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitNo || all.OK || len(all.Skipped) != 2 {
		t.Fatalf("%d %v %s", code, err, out)
	}
	got := map[string]string{}
	for _, f := range all.Files {
		rel, _ := filepath.Rel(dir, f.File)
		got[rel] = f.Verdict
	}
	if d := cmp.Diff(map[string]string{"good.yaml": "runs", "sub/wasm.yml": "unsupported", "sub/more.yaml": "unsupported", "broken.json": "refused"}, got); d != "" {
		t.Error(d)
	}
	for args, want := range map[string]string{
		"check":              "an argument is missing: dragoman check FILE|FOLDER...",
		"check /nonexistent": "no such file",
		"check " + filepath.Join(dir, ".git") + "/none": "no such file",
		"check --output xml x":                          "the values are text, json",
	} {
		if code, _, problem := command(t, "", strings.Fields(args)...); code != exitFailed || !strings.Contains(problem, want) {
			t.Errorf("%s: %d %s", args, code, problem)
		}
	}
	empty := t.TempDir()
	if code, _, problem := command(t, "", "check", empty); code != exitFailed || !strings.Contains(problem, "there is no bootstrap in "+empty) {
		t.Errorf("%d %s", code, problem)
	}
}

// Variables that --config-env is to replace and that are not set are what this machine lacks; without the flag they are spoken of.
func TestCheckVariables(t *testing.T) {
	unset := "node: {id: \"${DRAGOMAN_TEST_NOT}\", cluster: c}\n"
	for _, c := range []struct {
		text, flags string
		code        int
		want        string
	}{
		{unset, "--config-env", exitNo, "does not run on this machine: 1 problem"},
		{unset, "--config-env --allow-missing-files", exitNo, "DRAGOMAN_TEST_NOT is not set"},
		{unset + "admin: {address: {socket_address: {address: \"${\", port_value: 1}}}\n", "--config-env", exitNo, "is refused: 2 problems"},
		{unset, "", exitOK, "runs as it is"},
		{"admin: {address: {socket_address: {address: 127.0.0.1, port_value: ${DRAGOMAN_TEST_NOT}}}}\n", "", exitNo, "variables such as ${NAME} are replaced with --config-env only"},
	} {
		args := append([]string{"check", file(t, "a.yaml", c.text)}, strings.Fields(c.flags)...)
		if code, out, _ := command(t, "", args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s %s: %d %s", c.text, c.flags, code, out)
		}
	}
}
