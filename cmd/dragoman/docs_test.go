package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

const cliPage = "../../docs/cli.md"

// TestCLIPage keeps docs/cli.md as the command's own help is. make docs writes it anew.
func TestCLIPage(t *testing.T) {
	code := 0
	var b strings.Builder
	b.WriteString("# The command line\n\n<!-- Made by `make docs` from the code: changes by hand are lost. -->\n\n" +
		"What `--help` says, in one page. `dragoman man DIR` writes manual pages, `dragoman completion` what shells need.\n\n")
	section(&b, rootCommand(&code))
	want := b.String()
	if *update {
		if err := os.WriteFile(cliPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/cli.md is not what --help says now; write it anew by: make docs")
	}
}

func section(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "## %s\n\n```\n%s\n```\n\n", c.CommandPath(), strings.TrimSpace(c.UseLine()))
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(markdown(long) + "\n")
	if c.Example != "" {
		fmt.Fprintf(b, "```\n%s\n```\n\n", strings.TrimRight(c.Example, "\n "))
	}
	if c.Name() == "proxy" {
		b.WriteString("| flag | |\n|---|---|\n")
		for _, o := range newFlags("dragoman proxy", true).options {
			name := "--" + o.name
			if o.short != "" {
				name = "-" + o.short + ", " + name
			}
			fmt.Fprintf(b, "| `%s%s` | %s |\n", name, o.placeholder(), escape(o.help))
		}
		b.WriteString("\n")
	} else {
		flagTable(b, c)
	}
	if c.HasParent() && c.Runnable() {
		b.WriteString(markdown("Exit codes. "+strings.ReplaceAll(exitCodes(c), "\n\n", " ")) + "\n")
	}
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			section(b, s)
		}
	}
}

func flagTable(b *strings.Builder, c *cobra.Command) {
	n := 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		if n++; n == 1 {
			b.WriteString("| flag | |\n|---|---|\n")
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, escape(usage))
	})
	if n > 0 {
		b.WriteString("\n")
	}
}

// markdown puts indented lines between fences; they are examples.
func markdown(text string) string {
	var b strings.Builder
	block := false
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != block && (indented || strings.TrimSpace(line) != "") {
			b.WriteString("```\n")
			block = indented
		}
		b.WriteString(line)
	}
	if block {
		b.WriteString("```\n")
	}
	return b.String()
}

func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
