package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

// TestFlagErrors holds what a real Envoy says to the same arguments.
func TestFlagErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--nope", "--nope -- Couldn't find match for argument"},
		{"--concurrency=1", "--concurrency=1 -- Couldn't find match for argument"},
		{"-lwarn", "-lwarn -- Couldn't find match for argument"},
		{"extra -c x", "extra -- Couldn't find match for argument"},
		{"--concurrency abc", "(--concurrency) -- Couldn't read argument value from string 'abc'"},
		{"--concurrency -1", "(--concurrency) -- Couldn't read argument value from string '-1'"},
		{"--base-id 4294967296", "(--base-id) -- Couldn't read argument value from string '4294967296'"},
		{"--concurrency", "(--concurrency) -- Missing a value for this argument!"},
		{"-c", "-c (--config-path) -- Missing a value for this argument!"},
		{"-l info --log-level debug", "-l (--log-level) -- Argument already set!"},
		{"--disable-hot-restart --disable-hot-restart", "(--disable-hot-restart) -- Argument already set!"},
		{"-l bogus", "error: invalid log level specified 'bogus'"},
		{"--mode fly", "error: unknown mode 'fly'"},
		{"--drain-strategy soon", "error: unknown drain-strategy 'soon'"},
		{"--local-address-ip-version v5", "error: unknown IP address version 'v5'"},
		{"--component-log-level foo", "error: component log level not correctly specified 'foo'"},
		{"--component-log-level foo:info", "error: invalid component specified 'foo'"},
		{"--component-log-level upstream:bar", "error: invalid log level specified 'bar'"},
		{"--enable-fine-grain-logging --component-log-level upstream:debug", "error: --component-log-level will not work with --enable-fine-grain-logging"},
		{"--restart-epoch 1 --use-dynamic-base-id", "error: cannot use --restart-epoch=1 with --use-dynamic-base-id"},
		{"--stats-tag foo", "error: misformatted stats-tag 'foo'"},
		{"--stats-tag a-b:c", "error: misformatted stats-tag 'a-b:c' contains invalid char in 'a-b'"},
		{"--stats-tag a:b.c", "error: misformatted stats-tag 'a:b.c' contains invalid char in 'b.c'"},
		{"--stats-tag a:", "error: misformatted stats-tag 'a:' contains invalid char in ''"},
		{"--stats-tag a:b --stats-tag c:d -l warn --mode init_only --component-log-level main:off,http:warn", ""},
		{"-h --mode fly", ""},
		{"--version --nope", ""},
		{"--help --nope", ""},
		{"--nope --version", "--nope -- Couldn't find match for argument"},
		{"--concurrency +3", ""},
		{"--drain-time-s -1", "(--drain-time-s) -- Couldn't read argument value from string '-1'"},
		{"- -l warn", ""},
		{"--watch", "--watch -- Couldn't find match for argument"},
		{"--config-env", "--config-env -- Couldn't find match for argument"},
		{"--mode validate -- --nope", ""},
	} {
		err := newFlags("./envoy", false).parse(strings.Fields(c.args))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.args, d)
		}
	}
}

func TestFlagValues(t *testing.T) {
	f := newFlags("./envoy", false)
	err := f.parse(strings.Fields("-c a.yaml --config-yaml {} --concurrency 3 --drain-time-s 7 --drain-strategy immediate -l warn --stats-tag a:b " +
		"--service-node n --service-cluster cl --service-zone z --disable-extensions x,y --admin-address-path p --file-flush-min-size-kb 2"))
	if err != nil {
		t.Fatal(err)
	}
	o := options(f)
	if f.configPath != "a.yaml" || f.configYAML != "{}" || f.concurrency != 3 || o.DrainTime.Seconds() != 7 || !o.DrainImmediate || o.FileFlushSize != 2048 ||
		o.ServiceNode != "n" || o.ServiceCluster != "cl" || o.ServiceZone != "z" {
		t.Errorf("%+v", o)
	}
	c := o.CommandLine
	if c.LogLevel != "warning" || c.Mode != "serve" || c.AdminAddressPath != "p" || c.ParentShutdownTime.Seconds() != 900 ||
		!cmp.Equal(c.DisabledExtensions, []string{"x", "y"}) || !cmp.Equal(o.StatsTags, []string{"a:b"}) {
		t.Errorf("%+v", c)
	}
}

func TestUsage(t *testing.T) {
	f := newFlags("./envoy", false)
	want := "   ./envoy  [--stats-tag <string>] ... [--enable-core-dump] [--socket-mode\n            <string>] [--socket-path <string>]"
	if got := f.usage(); !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
	help := f.helpText()
	for _, line := range strings.Split(help, "\n") {
		if len(line) > usageWidth+1 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, o := range f.options {
		if !strings.Contains(help, "--"+o.name) || o.help == "" {
			t.Errorf("--%s is not explained", o.name)
		}
	}
	var arg *argumentError
	err := f.parse([]string{"--nope"})
	if !errors.As(err, &arg) {
		t.Fatal(err)
	}
	text := f.problem(arg)
	if !strings.HasPrefix(text, "PARSE ERROR: Argument: --nope\n             Couldn't find match for argument\n\nBrief USAGE: \n   ./envoy  [--stats") ||
		!strings.HasSuffix(text, "[--] [--version] [-h]\n\nFor complete USAGE and HELP type: \n   ./envoy --help\n\n--nope -- Couldn't find match for argument\n") {
		t.Error(text)
	}
}

// What Envoy does not have is known by the command's own name only.
func TestOwnFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--watch -c a.yaml":                     "",
		"--config-env":                          "",
		"--watch":                               "error: --watch needs a file to look at: --config-path",
		"--watch -c a.yaml --mode validate":     "error: --watch is for --mode serve, not for --mode validate",
		"--watch -c a.yaml --mode init_only":    "error: --watch is for --mode serve, not for --mode init_only",
		"--watch -c a.yaml --watch":             "(--watch) -- Argument already set!",
		"--config-env --concurrency 1 --nope x": "--nope -- Couldn't find match for argument",
	} {
		f := newFlags("dragoman proxy", true)
		got := ""
		if err := f.parse(strings.Fields(args)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	if help := newFlags("dragoman proxy", true).helpText(); !strings.Contains(help, "dragoman proxy  [--watch] [--config-env]") {
		t.Error(help)
	}
}

func TestHints(t *testing.T) {
	for arg, want := range map[string]string{
		"envoy.yaml":      "A configuration file is given by -c: dragoman proxy -c envoy.yaml\n",
		"--concurrency=3": "A value is an argument of its own: --concurrency 3\n",
		"-cenvoy.yaml":    "A value is an argument of its own: -c envoy.yaml\n",
		"--concurency":    "Did you mean --concurrency?\n",
		"--config":        "Did you mean --config-env?\n",
		"--xyz":           "",
	} {
		f := newFlags("dragoman proxy", true)
		var e *argumentError
		if !errors.As(f.parse([]string{arg}), &e) {
			t.Fatal(arg)
		}
		if got := f.problem(e); got != "dragoman: "+arg+" -- Couldn't find match for argument\n"+want+"Try 'dragoman proxy --help'\n" {
			t.Errorf("%s: %s", arg, got)
		}
	}
}

// A flag that is one, and stands twice or without its value, is not taken for another.
func TestHintsOfFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-c a -c b": "dragoman: -c (--config-path) -- Argument already set!\nTry 'dragoman proxy --help'\n",
		"-c":        "dragoman: -c (--config-path) -- Missing a value for this argument!\nTry 'dragoman proxy --help'\n",
	} {
		f := newFlags("dragoman proxy", true)
		var e *argumentError
		if !errors.As(f.parse(strings.Fields(args)), &e) {
			t.Fatal(args)
		}
		if d := cmp.Diff(want, f.problem(e)); d != "" {
			t.Errorf("%s: %s", args, d)
		}
	}
}

func TestWithoutExtensions(t *testing.T) {
	sets := []ext.Set{{
		HTTPFilters:    []ext.HTTPFilter{{Info: ext.Info{Name: "a"}}, {Info: ext.Info{Name: "b"}}},
		NetworkFilters: []ext.NetworkFilter{{Info: ext.Info{Name: "a"}}, {Info: ext.Info{Name: "c"}}},
	}}
	left, warnings := withoutExtensions(sets, "envoy.filters.http/a,envoy.filters.network/c,c,envoy.filters.http/c,envoy.filters.http/envoy.filters.http.router")
	var names []string
	for _, s := range left {
		for _, f := range s.HTTPFilters {
			names = append(names, "http "+f.Name)
		}
		for _, f := range s.NetworkFilters {
			names = append(names, "network "+f.Name)
		}
	}
	if d := cmp.Diff([]string{"http b", "network a"}, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"failed to disable invalid extension name 'c'", "failed to disable unknown extension 'envoy.filters.http/c'"}, warnings); d != "" {
		t.Error(d)
	}
	if len(sets[0].HTTPFilters) != 2 {
		t.Error("the sets of the caller have changed")
	}
}

func TestDynamicBaseID(t *testing.T) {
	f := newFlags("./envoy", false)
	if err := f.parse([]string{"--use-dynamic-base-id"}); err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]bool{}
	for range 4 {
		seen[f.chooseBaseID()] = true
	}
	if len(seen) < 2 {
		t.Errorf("the base id is always %d", f.baseID)
	}
}

func TestCommands(t *testing.T) {
	code := 0
	root := rootCommand(&code)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"version"})
	if err := root.Execute(); err != nil || !strings.Contains(out.String(), "for Envoy 1.40.0") {
		t.Errorf("%v %s", err, out.String())
	}
	for args, want := range map[string]int{
		"dragoman proxy --mode fly":            1,
		"/usr/bin/envoy --hot-restart-version": 0,
		"/usr/bin/envoy --watch -c x":          1,
		"dragoman nope":                        exitFailed,
		"dragoman version too much":            exitFailed,
		"dragoman config diff a":               exitFailed,
		"dragoman completion tcsh":             exitFailed,
	} {
		if got := run(strings.Fields(args)); got != want {
			t.Errorf("%s: exit code %d, want %d", args, got, want)
		}
	}
}
