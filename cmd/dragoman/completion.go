package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionCommand prints the scripts that let a shell complete this command.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print a script that makes a shell complete this command",
		Long: `Print a script that makes a shell complete commands, flags and, where they are few, values; of the command envoy, too.
For bash its package bash-completion is needed. It takes effect in shells that are started afterwards, except for the first example.`,
		Example: `  source <(dragoman completion bash)
  dragoman completion bash > /etc/bash_completion.d/dragoman
  dragoman completion zsh > "${fpath[1]}/_dragoman"
  dragoman completion fish > ~/.config/fish/completions/dragoman.fish`,
		Args: cobra.MatchAll(exactly(1), func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "bash", "zsh", "fish":
				return nil
			}
			return fmt.Errorf("there is no completion for %q; the shells are bash, zsh and fish", args[0])
		}),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(c *cobra.Command, args []string) error {
			script, err := completionScript(c.Root(), args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), script)
			return err
		},
	}
}

// envoyCommand is what the scripts ask when the command is called envoy: that may be Envoy itself, or this binary, and neither answers.
const envoyCommand = "envoy"

// completionScript is the one that the library makes for a shell, with the name envoy added.
func completionScript(root *cobra.Command, shell string) (string, error) {
	var b strings.Builder
	var err error
	var edits []string // pairs of what is there and what is in its place
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(&b, true)
		request := "    requestComp=\"${words[0]} __complete ${args[*]}\"\n"
		edits = []string{request, request + "    if [[ ${words[0]##*/} == envoy ]]; then\n        requestComp=\"dragoman __complete envoy ${args[*]}\"\n    fi\n",
			"-F __start_dragoman dragoman\n", "-F __start_dragoman dragoman envoy\n"}
	case "zsh":
		err = root.GenZshCompletion(&b)
		request := "    requestComp=\"${words[1]} __complete ${words[2,-1]}\"\n"
		edits = []string{"#compdef dragoman\ncompdef _dragoman dragoman\n", "#compdef dragoman envoy\ncompdef _dragoman dragoman envoy\n",
			request, request + "    if [[ \"${words[1]:t}\" == envoy ]]; then\n        requestComp=\"dragoman __complete envoy ${words[2,-1]}\"\n    fi\n"}
	default:
		err = root.GenFishCompletion(&b, true)
		request := "    set -l requestComp \"DRAGOMAN_ACTIVE_HELP=0 $args[1] __complete $args[2..-1] $lastArg\"\n"
		edits = []string{request, request + "    if test (string replace -r '.*/' '' -- $args[1]) = envoy\n" +
			"        set requestComp \"DRAGOMAN_ACTIVE_HELP=0 dragoman __complete envoy $args[2..-1] $lastArg\"\n    end\n"}
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "complete ") && strings.Contains(line, " -c dragoman ") {
				edits = append(edits, line, line+strings.Replace(line, " -c dragoman ", " -c envoy ", 1))
			}
		}
	}
	return strings.NewReplacer(edits...).Replace(b.String()), err
}

// describeShortly leaves of the descriptions of flags what a line of a shell holds: their first sentence.
func describeShortly(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(firstSentence(f.Usage), "`", "") })
	for _, below := range c.Commands() {
		describeShortly(below)
	}
}

// firstSentence is that of a text, without the stop.
func firstSentence(text string) string {
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(text, ".")
}

// completeValues makes a shell complete the values of flags whose help lists them (`text|json`).
func completeValues(c *cobra.Command) {
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if name, _ := pflag.UnquoteUsage(f); strings.Contains(name, "|") {
			// The only error is that of a flag which has a function already: this one is the first.
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(strings.Split(name, "|"), cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, below := range c.Commands() {
		completeValues(below)
	}
}
