// Command dragoman is the proxy, its agent, its control plane and their tools in one binary. It is the only place that touches the
// process: arguments, signals, limits, GOMAXPROCS, exit codes.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-proxy/dragoman/internal/version"
)

// The exit codes of all commands but proxy, which has Envoy's (0 and 1).
const (
	exitOK     = 0
	exitNo     = 1 // the answer is no: refused, different, not formatted
	exitFailed = 2 // the command could not be carried out: a wrong argument, a file that cannot be read, nobody at an address
)

func main() { os.Exit(run(os.Args)) }

// run picks the command: by the binary's own name ("envoy"), or by the first argument.
func run(args []string) int {
	if filepath.Base(args[0]) == "envoy" {
		return proxyCommand(args[0], false, args[1:])
	}
	code := 0
	root := rootCommand(&code)
	take(root, args[1:])
	err := root.Execute()
	return exitCode(root, code, err)
}

// take gives a command its arguments.
func take(root *cobra.Command, args []string) {
	root.SetArgs(args)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		describeShortly(root)
	}
}

// exitCode is that of a command that ended with code and err; it prints err.
func exitCode(root *cobra.Command, code int, err error) int {
	var no *answer
	switch {
	case err == nil:
		return code
	case errors.As(err, &no):
		if no.text != "" {
			fmt.Fprintln(root.ErrOrStderr(), no.text)
		}
		return exitNo
	}
	fmt.Fprintln(root.ErrOrStderr(), "dragoman: "+err.Error())
	return exitFailed
}

// answer is the error of a command that worked and whose answer is no. The text may be empty: all has been said.
type answer struct{ text string }

func (a *answer) Error() string { return a.text }

// rootCommand is the tree of commands; those that are not done by an error set their exit code.
func rootCommand(code *int) *cobra.Command {
	root := &cobra.Command{
		Use: "dragoman", Short: "An Envoy-compatible proxy, its agent, its control plane and their tools",
		Long: `An Envoy-compatible proxy and its tools. The first steps:

  dragoman config init --listen 8080 --route /=http://127.0.0.1:9000 > envoy.yaml
  dragoman check envoy.yaml
  dragoman proxy -c envoy.yaml

Exit codes: 0 done; 1 the answer is no (refused, different); 2 the command could not be carried out.
The command proxy has Envoy's flags and exit codes.`,
		SilenceUsage: true, SilenceErrors: true, Version: versionText(),
	}
	root.SetVersionTemplate("dragoman {{.Version}}\n") // as the command version
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		&cobra.Command{
			Use: "proxy -c FILE", Short: "Run the proxy; the flags are Envoy's",
			Long: `Run the proxy. Flags, configuration, admin interface, log and exit codes are Envoy's; a binary that is
called envoy is this command, without the two flags that Envoy does not have: --watch and --config-env.`,
			Example:            "  dragoman proxy -c envoy.yaml --concurrency 2\n  dragoman proxy -c envoy.yaml --watch\n  dragoman proxy -c envoy.yaml --mode validate\n  dragoman proxy --help",
			DisableFlagParsing: true,
			Run:                func(_ *cobra.Command, args []string) { *code = proxyCommand("dragoman proxy", true, args) },
			ValidArgsFunction:  completeProxy(true),
		},
		&cobra.Command{
			Use: envoyCommand, Short: "The proxy, as by Envoy's name: what completion asks for that", Hidden: true, DisableFlagParsing: true,
			Example:           "  dragoman envoy -c envoy.yaml",
			Run:               func(_ *cobra.Command, args []string) { *code = proxyCommand("envoy", false, args) },
			ValidArgsFunction: completeProxy(false),
		},
		checkCommand(),
		configCommand(),
		ctlCommand(),
		demoCommand(),
		&cobra.Command{
			Use: "version", Short: "Print which build this is", Args: cobra.NoArgs, Example: "  dragoman version",
			Run: func(c *cobra.Command, _ []string) {
				fmt.Fprintln(c.OutOrStdout(), "dragoman "+versionText())
			},
		},
		completionCommand(),
		manCommand(),
	)
	completeValues(root)
	group(root)
	helpTopics(root)
	return root
}

func versionText() string {
	return fmt.Sprintf("%s (%s), for Envoy %s", version.Release(), version.String(), version.Envoy)
}

// group makes a command that only holds others refuse words that name none of them; without a word it prints its help.
func group(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.SetFlagErrorFunc(func(at *cobra.Command, err error) error {
		if args := at.Flags().Args(); at == c && len(args) > 0 { // the flag is of the command that was meant
			return unknownCommand(c, args[0])
		}
		return fmt.Errorf("%w\nTry '%s --help'", err, at.CommandPath())
	})
}

// unknownCommand says which commands there are, or which is the nearest.
func unknownCommand(c *cobra.Command, word string) error {
	list, say := c.SuggestionsFor(word), "did you mean "
	if len(list) == 0 {
		say = "there are "
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				list = append(list, below.Name())
			}
		}
	}
	return fmt.Errorf("unknown command %q for %q; %s%s", word, c.CommandPath(), say, strings.Join(list, ", "))
}

// helpTopics makes "help" refuse what there is no help of.
func helpTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.RunE = func(_ *cobra.Command, args []string) error {
			at, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 && at.HasSubCommands() {
				err = unknownCommand(at, rest[0])
			}
			if err != nil {
				return err
			}
			return at.Help()
		}
	}
}

// exactly asks for n arguments, and says which.
func exactly(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%d arguments were given, and it takes %d: %s", len(args), n, c.UseLine())
		}
		return nil
	}
}

func atLeastOne(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("an argument is missing: " + c.UseLine())
	}
	return nil
}

// completeProxy completes Envoy's flags, and values where they are few.
func completeProxy(own bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		f := newFlags("dragoman proxy", own)
		if len(args) > 0 {
			if o := f.find(args[len(args)-1]); o != nil && o.placeholder() != "" {
				switch o.name {
				case "mode":
					return []string{"serve", "validate", "init_only"}, cobra.ShellCompDirectiveNoFileComp
				case "drain-strategy":
					return []string{"gradual", "immediate"}, cobra.ShellCompDirectiveNoFileComp
				case "log-level":
					return []string{"trace", "debug", "info", "warning", "error", "critical", "off"}, cobra.ShellCompDirectiveNoFileComp
				case "local-address-ip-version":
					return []string{"v4", "v6"}, cobra.ShellCompDirectiveNoFileComp
				case "config-path", "log-path", "admin-address-path", "base-id-path", "socket-path":
					return nil, cobra.ShellCompDirectiveDefault
				}
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
		}
		var list []string
		for _, o := range f.options {
			if name := "--" + o.name; strings.HasPrefix(name, word) {
				list = append(list, name+"\t"+firstSentence(o.help))
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}
