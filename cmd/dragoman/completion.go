package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionCommand prints the scripts that let a shell complete this command.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print a script that makes a shell complete this command",
		Long: `Print a script that makes a shell complete commands, flags and, where they are few, values. For bash its package
bash-completion is needed. It takes effect in shells that are started afterwards, except for the first example.`,
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
			root, out := c.Root(), c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return root.GenFishCompletion(out, true)
		},
	}
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
