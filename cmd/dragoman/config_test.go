package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// command runs the command line as main does.
func command(t *testing.T, stdin string, args ...string) (code int, out, problem string) {
	t.Helper()
	root := rootCommand(&code)
	var o, e bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&o)
	root.SetErr(&e)
	take(root, args)
	code = exitCode(root, code, root.ExecuteContext(t.Context()))
	return code, o.String(), e.String()
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigInit(t *testing.T) {
	code, out, problem := command(t, "", "config", "init", "--listen", "8080", "--admin", "9901", "--route", "/=http://127.0.0.1:9000", "--tcp", "5432=db:5432")
	if code != exitOK || problem != "" {
		t.Fatal(code, problem)
	}
	for _, want := range []string{"port_value: 8080", "port_value: 9901", "cluster: upstream_9000", "address: db", "StdoutAccessLog"} {
		if strings.Contains(out, want) != (want != "StdoutAccessLog") {
			t.Errorf("%s:\n%s", want, out)
		}
	}
	// A file and flags together, written as JSON because of the name.
	to := filepath.Join(t.TempDir(), "a.json")
	if code, _, problem = command(t, "listen: 8080\nroutes: [{match: /, respond: 200 fine}]", "config", "init", "--file", "-", "--access-log", "-", "-o", to); code != exitOK {
		t.Fatal(problem)
	}
	data, err := os.ReadFile(to)
	if err != nil || !json.Valid(data) || !bytes.Contains(data, []byte("StdoutAccessLog")) || !bytes.Contains(data, []byte(`"inline_string": "fine\n"`)) {
		t.Errorf("%v %s", err, data)
	}
	// A file that is there is written over on demand only, and what nobody means is noted.
	again := []string{"config", "init", "--listen", "80", "--listen", "81", "--route", "/=respond:200", "--route", "/a=redirect:https", "-o", to}
	if code, _, problem := command(t, "", again...); code != exitFailed || problem != "dragoman: "+to+" exists; --force writes over it\n" {
		t.Errorf("%d %s", code, problem)
	}
	if now, err := os.ReadFile(to); err != nil || !bytes.Equal(data, now) {
		t.Errorf("%v %s", err, now)
	}
	code, _, problem = command(t, "", append(again, "--force")...)
	if now, err := os.ReadFile(to); err != nil || bytes.Equal(data, now) || code != exitOK || strings.Count(problem, "note: "+to+":") != 1 || !strings.Contains(problem, ": no request comes to this route: routes[0], prefix '/',") {
		t.Errorf("%v %d %s", err, code, problem)
	}
	for args, want := range map[string]string{
		"config init":                             "nothing to listen on: say where, such as --listen 8080",
		"config init --listen 80":                 "give a route, such as /=http://127.0.0.1:9000",
		"config init --listen 80 --route x":       "write MATCH=TARGET",
		"config init --listen 80 --tcp 5":         "write LISTEN=HOST:PORT",
		"config init --nope":                      "unknown flag: --nope\nTry 'dragoman config init --help'",
		"config init --listen 1 --to toml":        "the forms are yaml, json, pb_text and pb",
		"config init more":                        `unknown command "more" for "dragoman config init"`,
		"config init --file /nonexistent/a.yaml":  "no such file",
		"config diff a.yaml":                      "1 arguments were given, and it takes 2: dragoman config diff OLD NEW",
		"config format":                           "an argument is missing: dragoman config format FILE...",
		"config show /nonexistent --to pb":        "show prints yaml or json",
		"config diff /nonexistent /nonexistent":   "no such file",
		"config diff a b --output xml":            `--output "xml": the values are text, json`,
		"config convert /nonexistent":             "no such file",
		"config format /nonexistent /nonexistent": "several files can be formatted with --write, or looked at with --check",
	} {
		if code, _, problem := command(t, "", strings.Fields(args)...); code != exitFailed || !strings.Contains(problem, want) {
			t.Errorf("%s: %d %s", args, code, problem)
		}
	}
}

const small = "# keep me\nnode:\n    id: a\n    cluster: b\nstatic_resources:\n    clusters:\n        - name: one\n          connect_timeout: 1s\n"

func TestConfigFormat(t *testing.T) {
	const want = "# keep me\nnode:\n  id: a\n  cluster: b\nstatic_resources:\n  clusters:\n  - name: one\n    connect_timeout: 1s\n"
	path := file(t, "a.yaml", small)
	if code, out, _ := command(t, "", "config", "format", path); code != exitOK || out != want {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, "", "config", "format", "--check", path); code != exitNo || out != path+"\n" {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, "", "config", "format", "-w", path); code != exitOK || out != "" {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, "", "config", "format", "--check", path, path); code != exitOK || out != "" {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, small, "config", "format", "-"); code != exitOK || out != want {
		t.Errorf("%d %s", code, out)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("%v %s", err, data)
	}
}

func TestConfigConvert(t *testing.T) {
	path := file(t, "a.yaml", small)
	pb := filepath.Join(t.TempDir(), "a.pb")
	if code, _, problem := command(t, "", "config", "convert", path, "-o", pb); code != exitOK {
		t.Fatal(problem)
	}
	code, out, _ := command(t, "", "config", "convert", pb)
	if want := "node:\n  id: a\n  cluster: b\nstatic_resources:\n  clusters:\n  - name: one\n    connect_timeout: 1s\n"; code != exitOK || !strings.Contains(out, "clusters:\n  - name: one") || len(out) != len(want) {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ = command(t, "", "config", "convert", path); code != exitOK || !json.Valid([]byte(out)) {
		t.Errorf("%d %s", code, out)
	}
	t.Setenv("DRAGOMAN_TEST", "7s")
	if code, out, _ = command(t, "node: {id: '${DRAGOMAN_TEST}', cluster: '${DRAGOMAN_TEST_NOT:-c}'}", "config", "convert", "-", "--to", "yaml", "--config-env"); code != exitOK || !strings.Contains(out, "id: 7s\n  cluster: c") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, problem := command(t, "node:\n  id: ${DRAGOMAN_TEST_NOT}", "config", "convert", "-", "--config-env"); code != exitFailed ||
		!strings.Contains(problem, "standard input:2:7: the environment variable DRAGOMAN_TEST_NOT is not set") {
		t.Errorf("%d %s", code, problem)
	}
	if code, _, problem := command(t, "nod: {}", "config", "convert", "-", "--to", "pb"); code != exitFailed || !strings.Contains(problem, "did you mean 'node'") {
		t.Errorf("%d %s", code, problem)
	}
}

func TestConfigDiff(t *testing.T) {
	a, b := file(t, "a.yaml", small), file(t, "b.yaml", strings.ReplaceAll(strings.ReplaceAll(small, "1s", "2s"), "id: a", "id: z"))
	code, out, _ := command(t, "", "config", "diff", a, b)
	if want := "clusters\n  ~ one\n      connect_timeout: 1s -> 2s\nbootstrap\n  ~ node\n      id: a -> z\n"; code != exitNo || out != want {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ = command(t, "", "config", "diff", a, a); code != exitOK || out != "" {
		t.Errorf("%d %s", code, out)
	}
	var changes []configfile.Change
	code, out, _ = command(t, "", "config", "diff", a, b, "--output", "json")
	if err := json.Unmarshal([]byte(out), &changes); err != nil || code != exitNo || len(changes) != 2 || changes[0].Fields[0].New != "2s" {
		t.Errorf("%d %v %s", code, err, out)
	}
	if code, out, _ = command(t, "", "config", "diff", a, a, "--output", "json"); code != exitOK || out != "[]\n" {
		t.Errorf("%d %s", code, out)
	}
}

func TestConfigShow(t *testing.T) {
	path := file(t, "a.yaml", small)
	code, out, _ := command(t, "", "config", "show", path, "--config-yaml", "node: {id: other}")
	if code != exitOK || !strings.Contains(out, "id: other\n") || !strings.Contains(out, "lb_policy: ROUND_ROBIN # default\n") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ = command(t, "", "config", "show", path, "--no-defaults", "--to", "json"); code != exitOK || !json.Valid([]byte(out)) || strings.Contains(out, "ROUND_ROBIN") {
		t.Errorf("%d %s", code, out)
	}
}

// What is refused is shown and compared nevertheless, and standard error says what is wrong with it.
func TestConfigOfRefusedFiles(t *testing.T) {
	good := file(t, "a.yaml", small)
	bad := file(t, "b.yaml", strings.ReplaceAll(small, "connect_timeout: 1s", "connect_timeoutt: 1s"))
	code, out, said := command(t, "", "config", "show", bad)
	if code != exitNo || !strings.Contains(out, "connect_timeoutt: 1s\n") || !strings.Contains(out, "lb_policy: ROUND_ROBIN # default\n") ||
		!strings.HasPrefix(said, "note: "+bad+" is refused: 1 problem\n  "+bad+":") || !strings.Contains(said, "no such field: 'connect_timeoutt'") {
		t.Errorf("%d %s\n%s", code, out, said)
	}
	code, out, said = command(t, "", "config", "diff", good, bad)
	if want := "clusters\n  ~ one\n      connect_timeout: - 1s\n      connect_timeoutt: + 1s\n"; code != exitNo || out != want ||
		!strings.HasPrefix(said, "note: "+bad+" is refused: 1 problem\n") {
		t.Errorf("%d %s\n%s", code, out, said)
	}
	text, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, said = command(t, string(text), "config", "show", "-"); code != exitNo || out == "" || !strings.HasPrefix(said, "note: standard input is refused: 1 problem\n") {
		t.Errorf("%d %s\n%s", code, out, said)
	}
	broken := file(t, "c.yaml", "a: [")
	code, out, said = command(t, "", "config", "diff", broken, broken)
	if code != exitFailed || out != "" || strings.Count(said, "c.yaml:") != 2 {
		t.Errorf("%d %s\n%s", code, out, said)
	}
}

// Every command has an example and a sentence, and its help shows them.
func TestHelpOfAllCommands(t *testing.T) {
	code := 0
	var walk func(path []string, c interface{ Commands() []*cobra.Command })
	walk = func(path []string, c interface{ Commands() []*cobra.Command }) {
		for _, sub := range c.Commands() {
			at := append(path[:len(path):len(path)], sub.Name())
			if sub.Name() == "help" {
				continue
			}
			if sub.Short == "" || sub.Example == "" {
				t.Errorf("%v has no short text or no example", at)
			}
			if sub.Name() != "proxy" && sub.Name() != envoyCommand { // these have Envoy's help
				if code, out, _ := command(t, "", append(at, "--help")...); code != exitOK || !strings.Contains(out, "Examples:\n  ") {
					t.Errorf("%v: %d %s", at, code, out)
				}
			}
			walk(at, sub)
		}
	}
	walk(nil, rootCommand(&code))
}

func TestCompletionAndMan(t *testing.T) {
	for shell, want := range map[string]string{"bash": "__start_dragoman", "zsh": "#compdef dragoman", "fish": "complete -c dragoman"} {
		if code, out, _ := command(t, "", "completion", shell); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: %d", shell, code)
		}
	}
	for args, want := range map[string]string{
		"proxy --conc":            "--concurrency",
		"proxy --mode ":           "init_only",
		"proxy --drain-strategy ": "immediate",
		"config ":                 "format",
	} {
		fields := append([]string{"__complete"}, strings.Split(args, " ")...)
		if code, out, _ := command(t, "", fields...); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: %d %s", args, code, out)
		}
	}
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, problem := command(t, "", "man", dir); code != exitOK {
		t.Fatal(problem)
	}
	for name, want := range map[string]string{
		"dragoman.1":             `.SH SEE ALSO`,
		"dragoman-proxy.1":       `\fB\-c\fR, \fB\-\-config\-path\fR <string>`,
		"dragoman-config-diff.1": ".SH EXIT STATUS\n0: they say the same.\n.PP\n1: they differ.",
		"dragoman-ctl-compare.1": `.TH DRAGOMAN\-CTL\-COMPARE 1`,
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %v %s", name, err, data)
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "'") {
				t.Errorf("%s: %s is taken for a request", name, line)
			}
		}
	}
}

// A word that names no command is a mistake, wherever it stands, and not a question for help.
func TestUnknownCommands(t *testing.T) {
	for args, want := range map[string]string{
		"config shwo a.yaml":           `unknown command "shwo" for "dragoman config"; did you mean show`,
		"config formt --check a.yaml":  `unknown command "formt" for "dragoman config"; did you mean format`,
		"config foo":                   `unknown command "foo" for "dragoman config"; there are convert, diff, format, init, show`,
		"ctl foo":                      `unknown command "foo" for "dragoman ctl"; there are compare`,
		"ctl compar a b --output json": `did you mean compare`,
		"chek a.yaml --quiet":          `unknown command "chek" for "dragoman"; did you mean check`,
		"foo":                          `unknown command "foo" for "dragoman"; there are check, `,
		"help foo":                     `unknown command "foo" for "dragoman"`,
		"help config shwo":             `did you mean show`,
		"config --nope":                "unknown flag: --nope\nTry 'dragoman config --help'",
		"check --nope":                 "unknown flag: --nope\nTry 'dragoman check --help'",
		"config show a.yaml --nope":    "unknown flag: --nope\nTry 'dragoman config show --help'",
		"--nope":                       "unknown flag: --nope\nTry 'dragoman --help'",
		"completion pwsh":              "the shells are",
	} {
		if code, out, problem := command(t, "", strings.Fields(args)...); code != exitFailed || out != "" || !strings.Contains(problem, want) {
			t.Errorf("%s: %d %s%s", args, code, out, problem)
		}
	}
	for args, want := range map[string]string{
		"":                 "Usage:\n  dragoman\n  dragoman [command]",
		"config":           "Usage:\n  dragoman config\n  dragoman config [command]",
		"help config show": "Usage:\n  dragoman config show FILE [flags]",
		"help":             "First steps",
		"config -h":        "Available Commands:",
	} {
		if code, out, problem := command(t, "", strings.Fields(args)...); code != exitOK || problem != "" || !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
			t.Errorf("%s: %d %s%s", args, code, out, problem)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	_, command1, _ := command(t, "", "version")
	code, flag, problem := command(t, "", "--version")
	if code != exitOK || flag != command1 || !strings.Contains(flag, ", for Envoy 1.40") {
		t.Errorf("%d %q %q %s", code, flag, command1, problem)
	}
}

// richly is a configuration whose messages the table of defaults has.
const richly = `
node: {id: me, cluster: c}
header_prefix: x-envoy
watchdogs: {main_thread_watchdog: {}}
stats_config: {}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: tcp
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters: [{name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: a}}]
  - name: http
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: h
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: p
          http_protocol_options: {}
          http2_protocol_options: {}
          common_http_protocol_options: {}
          http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config:
            name: local
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - {match: {prefix: /r}, redirect: {path_redirect: /x}}
              - {match: {prefix: /}, route: {cluster: b, retry_policy: {retry_on: 5xx}}}
  clusters:
  - name: a
    type: STRICT_DNS
    lb_policy: LEAST_REQUEST
    least_request_lb_config: {}
    circuit_breakers: {thresholds: [{}]}
    common_lb_config: {}
    transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}
    load_assignment: {cluster_name: a, policy: {}, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: localhost, port_value: 1}}}}]}]}
  - {name: b, lb_policy: RING_HASH, ring_hash_lb_config: {}}
  - {name: c, lb_policy: MAGLEV, maglev_lb_config: {}}
`

// What show prints runs as what was written does, and brings no notes that that does not bring.
func TestConfigShowRuns(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range append(paths, file(t, "richly.yaml", richly)) {
		_, before, problem := command(t, "", "check", path)
		if !strings.Contains(before, "runs as it is") {
			t.Fatal(path, before, problem)
		}
		code, shown, problem := command(t, "", "config", "show", path)
		if code != exitOK {
			t.Fatal(path, problem)
		}
		code, after, _ := command(t, "", "check", file(t, "shown.yaml", shown))
		if code != exitOK || strings.Count(after, "  note: ") != strings.Count(before, "  note: ") {
			t.Errorf("%s:\n%s\n%s", path, after, shown)
		}
	}
}
