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
		"envoy --mode":            "serve\nvalidate\ninit_only\n:4\n",
		"envoy --watch-":          ":4\n",
		"proxy --watch-":          "--watch\tDragoman only: look at the configuration file while serving, and apply what changes: clusters, listeners, routes, secrets\n:4\n",
		"proxy --concurrency-":    "--concurrency\tNumber of workers\n:4\n",
		"config init --cert-":     "--cert\tfile with the certificate: the listeners then speak TLS\n:4\n",
		"proxy -c x --drain-time": "--drain-time-s\tSeconds that draining takes, in a hot restart and when a listener goes\n:4\n",
	} {
		words := append([]string{"__complete"}, strings.Fields(args)...)
		if last := len(words) - 1; strings.HasSuffix(args, "-") { // a word that is not complete
			words[last] = strings.TrimSuffix(words[last], "-")
		} else if !strings.Contains(args, "--drain-time") {
			words = append(words, "")
		}
		if code, out, _ := command(t, "", words...); code != exitOK || out != want {
			t.Errorf("%s: %d %q", args, code, out)
		}
	}
}

// The scripts complete the command by Envoy's name, too: they ask for its flags by the name that answers.
func TestCompletionScripts(t *testing.T) {
	for shell, want := range map[string][]string{
		"bash": {"== envoy ]]; then\n        requestComp=\"dragoman __complete envoy ", "    complete -o default -F __start_dragoman dragoman envoy\n"},
		"zsh":  {"#compdef dragoman envoy\ncompdef _dragoman dragoman envoy\n", "== envoy ]]; then\n        requestComp=\"dragoman __complete envoy "},
		"fish": {" dragoman __complete envoy ", "\ncomplete -c envoy -e\n", "\ncomplete -k -c envoy -n "},
	} {
		code, out, problem := command(t, "", "completion", shell)
		for _, w := range want {
			if code != exitOK || strings.Count(out, w) != 1 {
				t.Errorf("%s: %d %s, %q", shell, code, problem, w)
			}
		}
	}
	if code, _, problem := command(t, "", "completion", "tcsh"); code != exitFailed || !strings.Contains(problem, "the shells are bash, zsh and fish") {
		t.Errorf("%d %s", code, problem)
	}
}
