// Command dragoman is the proxy, its agent, its control plane and their tools in one binary. It is the only place that touches the
// process: arguments, signals, limits, GOMAXPROCS, exit codes.
package main

import (
	"os"
	"path/filepath"
)

func main() { os.Exit(run(os.Args)) }

// run picks the command: by the binary's own name ("envoy"), or by the first argument.
func run(args []string) int {
	if filepath.Base(args[0]) == "envoy" {
		return proxyCommand(args[1:])
	}
	if len(args) > 1 {
		switch args[1] {
		case "proxy":
			return proxyCommand(args[2:])
		}
	}
	os.Stderr.WriteString("usage: dragoman proxy -c FILE\n")
	return 1
}
