// Command dragoman is the proxy, its agent, its control plane and their tools in one binary. It is the only place that touches the
// process: arguments, signals, limits, GOMAXPROCS, exit codes.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dragoman-proxy/dragoman/internal/version"
)

func main() { os.Exit(run(os.Args)) }

// run picks the command: by the binary's own name ("envoy"), or by the first argument.
func run(args []string) int {
	if filepath.Base(args[0]) == "envoy" {
		return proxyCommand(args[1:])
	}
	code := 0
	root := rootCommand(&code)
	root.SetArgs(args[1:])
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// rootCommand is the tree of commands; each sets its exit code.
func rootCommand(code *int) *cobra.Command {
	root := &cobra.Command{
		Use: "dragoman", Short: "An Envoy-compatible proxy, its agent, its control plane and their tools",
		SilenceUsage: true, SilenceErrors: true, Version: version.Release(),
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		&cobra.Command{
			Use: "proxy -c FILE", Short: "Run the proxy; the flags are Envoy's",
			Long:               "Run the proxy. A binary that is called envoy is this command. Flags, configuration, admin interface and log are Envoy's.",
			DisableFlagParsing: true,
			Run:                func(_ *cobra.Command, args []string) { *code = proxyCommand(args) },
		},
		demoCommand(code),
		&cobra.Command{
			Use: "version", Short: "Print which build this is", Args: cobra.NoArgs,
			Run: func(c *cobra.Command, _ []string) {
				fmt.Fprintf(c.OutOrStdout(), "dragoman %s (%s), for Envoy %s\n", version.Release(), version.String(), version.Envoy)
			},
		},
	)
	return root
}
