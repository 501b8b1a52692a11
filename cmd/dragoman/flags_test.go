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
		{"--mode validate -- --nope", ""},
	} {
		_, err := parse(strings.Fields(c.args))
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
	f, err := parse(strings.Fields("-c a.yaml --config-yaml {} --concurrency 3 --drain-time-s 7 --drain-strategy immediate -l warn --stats-tag a:b " +
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
	if c.LogLevel != "warning" || c.Mode != "serve" || c.SocketMode != 0o600 || c.AdminAddressPath != "p" || c.ParentShutdownTime.Seconds() != 900 ||
		!cmp.Equal(c.DisabledExtensions, []string{"x", "y"}) || !cmp.Equal(o.StatsTags, []string{"a:b"}) {
		t.Errorf("%+v", c)
	}
}

func TestUsage(t *testing.T) {
	f := newFlags()
	want := "   ./envoy  [--stats-tag <string>] ... [--enable-core-dump] [--socket-mode\n            <string>] [--socket-path <string>]"
	if got := f.usage("./envoy"); !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
	help := f.helpText("./envoy")
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
	_, err := parse([]string{"--nope"})
	if !errors.As(err, &arg) {
		t.Fatal(err)
	}
	text := f.problem("./envoy", arg)
	if !strings.HasPrefix(text, "PARSE ERROR: Argument: --nope\n             Couldn't find match for argument\n\nBrief USAGE: \n   ./envoy  [--stats") ||
		!strings.HasSuffix(text, "[--] [--version] [-h]\n\nFor complete USAGE and HELP type: \n   ./envoy --help\n\n--nope -- Couldn't find match for argument\n") {
		t.Error(text)
	}
}

func TestWithoutExtensions(t *testing.T) {
	sets := []ext.Set{{
		HTTPFilters:    []ext.HTTPFilter{{Info: ext.Info{Name: "a"}}, {Info: ext.Info{Name: "b"}}},
		NetworkFilters: []ext.NetworkFilter{{Info: ext.Info{Name: "a"}}, {Info: ext.Info{Name: "c"}}},
	}}
	left, unknown := withoutExtensions(sets, "envoy.filters.http/a,c,nope,envoy.filters.http/c")
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
	if d := cmp.Diff([]string{"nope", "envoy.filters.http/c"}, unknown); d != "" {
		t.Error(d)
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
	root.SetArgs([]string{"nope"})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Error(err)
	}
	if got := run([]string{"dragoman", "proxy", "--mode", "fly"}); got != 1 {
		t.Errorf("exit code %d", got)
	}
	if got := run([]string{"/usr/bin/envoy", "--hot-restart-version"}); got != 0 {
		t.Errorf("exit code %d", got)
	}
}
