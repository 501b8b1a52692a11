package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the log says of a start, by the command's own name and by Envoy's, with --mode init_only, which ends by itself.
func TestInitOnly(t *testing.T) {
	for _, c := range []struct {
		name, args string
		code       int
		want       []string
		not        string
	}{
		{"dragoman proxy", "", 0, []string{"listener main serves on 127.0.0.1:", "exiting", "the cluster 'c' has no endpoints"}, "hot restart is not supported"},
		{"/usr/bin/envoy", "--cpuset-threads", 0, []string{"--cpuset-threads is now the default behavior"}, "serves on"},
		{"/usr/bin/envoy", "--restart-epoch 2 --cpuset-threads", 0, []string{"--restart-epoch 2 takes nothing over", "Both --concurrency and --cpuset-threads"}, "has no endpoints"},
		{"/usr/bin/envoy", "--restart-epoch 2 --disable-hot-restart --disable-extensions a/b,c", 0, []string{"failed to disable unknown extension 'a/b'", "failed to disable invalid extension name 'c'"}, "hot restart is not"},
		{"/usr/bin/envoy", "--disable-extensions envoy.filters.http/envoy.filters.http.router", 1, []string{"Didn't find a registered implementation for 'envoy.filters.http.router'"}, "disable unknown"},
		{"/usr/bin/envoy", "--disable-extensions envoy.filters.network/envoy.filters.network.http_connection_manager", 1,
			[]string{"Didn't find a registered implementation for 'envoy.filters.network.http_connection_manager'"}, "disable unknown"},
	} {
		dir := t.TempDir()
		log, id := filepath.Join(dir, "log"), filepath.Join(dir, "id")
		args := strings.Fields(c.name)
		args = append(args, "-c", file(t, "a.yaml", watched+"  clusters: [{name: c}]\n"), "--mode", "init_only", "--log-path", log, "--base-id", "7", "--base-id-path", id)
		if c.name != "/usr/bin/envoy" || strings.Contains(c.args, "epoch 2 --cpuset") {
			args = append(args, "--concurrency", "1")
		}
		code := run(append(args, strings.Fields(c.args)...))
		data, err := os.ReadFile(log)
		if err != nil || code != c.code {
			t.Errorf("%s %s: %d %v", c.name, c.args, code, err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s %s: %q is missing in\n%s", c.name, c.args, want, data)
			}
		}
		if strings.Contains(string(data), c.not) {
			t.Errorf("%s %s: %q is in\n%s", c.name, c.args, c.not, data)
		}
		written, _ := os.ReadFile(id)
		if want := !strings.Contains(c.args, "disable-hot"); (string(written) == "7") != want {
			t.Errorf("%s %s: the base id's file has %q", c.name, c.args, written)
		}
	}
}

// What the log says of unknown and deprecated fields in resources that a file brings, by the flags.
func TestFieldsOfDynamicResources(t *testing.T) {
	dir := t.TempDir()
	cds := filepath.Join(dir, "cds.yaml")
	const resources = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: c
  nosuch: 1
  load_assignment: {cluster_name: c}
  http2_protocol_options: {}
`
	if err := os.WriteFile(cds, []byte(resources), 0o600); err != nil {
		t.Fatal(err)
	}
	unknown := "Unknown field: " + cds + ":4:3: resources[0].nosuch: no such field: 'nosuch'"
	old := cds + ":6:3: resources[0].http2_protocol_options: Deprecated field: type envoy.config.cluster.v3.Cluster Using deprecated option"
	for flag, want := range map[string][]string{
		"--disable-hot-restart":           {unknown, old},
		"--skip-deprecated-logs":          {unknown},
		"--ignore-unknown-dynamic-fields": nil,
		"--reject-unknown-dynamic-fields": {"cds: cluster 'c' config rejected: " + cds + ":4:3: resources[0].nosuch: no such field: 'nosuch'", old},
	} {
		log := filepath.Join(dir, "log"+flag)
		path := file(t, "a.yaml", "node: {id: a, cluster: b}\ndynamic_resources: {cds_config: {path_config_source: {path: "+cds+"}}}\n")
		if code := run([]string{"envoy", "-c", path, "--mode", "init_only", "--concurrency", "1", "--log-path", log, flag}); code != 0 {
			t.Error(flag, code)
		}
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(string(data), line) {
				t.Errorf("%s: %q is missing in\n%s", flag, line, data)
			}
		}
		for _, word := range []string{"Unknown field:", "Deprecated field:"} {
			wanted := 0
			for _, line := range want {
				wanted += strings.Count(line, word)
			}
			if n := strings.Count(string(data), word); n != wanted {
				t.Errorf("%s: %q %d times in\n%s", flag, word, n, data)
			}
		}
	}
}
