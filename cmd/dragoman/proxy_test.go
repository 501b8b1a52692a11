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
