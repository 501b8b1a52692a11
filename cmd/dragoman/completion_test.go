package main

import (
	"strings"
	"testing"
)

func TestCompleteValues(t *testing.T) {
	for args, want := range map[string]string{
		"check --output":          "text\njson\n:4\n",
		"config diff --output":    "text\njson\n:4\n",
		"ctl compare --output":    "text\njson\n:4\n",
		"config init --to":        "yaml\njson\npb_text\npb\n:4\n",
		"config convert --to":     "yaml\njson\npb_text\npb\n:4\n",
		"config show --to":        "yaml\njson\n:4\n",
		"config show --out":       ":0\n",
		"check --max-problems":    ":0\n",
		"proxy --mode":            "serve\nvalidate\ninit_only\n:4\n",
		"proxy -c x --drain-time": "--drain-time-s\tSeconds that draining takes, in a hot restart and when a listener goes\n:4\n",
	} {
		words := append([]string{"__complete"}, strings.Fields(args)...)
		if !strings.Contains(args, "--drain-time") {
			words = append(words, "")
		}
		if code, out, _ := command(t, "", words...); code != exitOK || out != want {
			t.Errorf("%s: %d %q", args, code, out)
		}
	}
}
