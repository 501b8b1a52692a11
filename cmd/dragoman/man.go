package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-proxy/dragoman/internal/version"
)

// manCommand writes the manual pages, one a command, from what --help is made of.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages into a folder",
		Long:    "Write the manual pages into a folder, one for each command: dragoman.1, dragoman-proxy.1 and so on. The folder is made if need be.",
		Example: "  dragoman man /usr/local/share/man/man1\n  dragoman man . && man ./dragoman-proxy.1",
		Args:    exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // manual pages are for all
				return err
			}
			return writePages(c.Root(), args[0])
		},
	}
}

func writePages(c *cobra.Command, dir string) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(manPage(c)), 0o644); err != nil { //nolint:gosec // manual pages are for all
		return err
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			if err := writePages(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// manPage is the page of one command, in the man macros.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	title := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"dragoman %s\" \"Dragoman\"\n", roff(strings.ToUpper(title)), roff(version.Release()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(title), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(c.UseLine()))
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n" + paragraphs(long))
	if c.Name() == "proxy" {
		b.WriteString(".SH OPTIONS\n")
		for _, o := range newFlags("dragoman proxy", true).options {
			head := "\\fB" + roff("--"+o.name) + "\\fR"
			if o.short != "" {
				head = "\\fB" + roff("-"+o.short) + "\\fR, " + head
			}
			fmt.Fprintf(&b, ".TP\n%s%s\n%s\n", head, roff(o.placeholder()), roff(o.help))
		}
	} else if c.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) { b.WriteString(manFlag(f)) })
	}
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + roff(c.Example) + "\n.fi\n")
	}
	b.WriteString(".SH EXIT STATUS\n" + paragraphs(exitCodes(c)))
	var also []string
	if c.HasParent() {
		also = append(also, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))
	}
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			also = append(also, strings.ReplaceAll(s.CommandPath(), " ", "-"))
		}
	}
	for i, a := range also {
		also[i] = ".BR " + roff(a) + " (1)"
	}
	if len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(also, ",\n") + "\n")
	}
	return b.String()
}

// exitCodes says what the exit codes of a command mean.
func exitCodes(c *cobra.Command) string {
	if c.Name() == "proxy" {
		return "0: it has ended as it was told to, or the configuration is valid (--mode validate).\n\n1: it could not start, or the configuration is refused."
	}
	if s := c.Annotations["exit"]; s != "" {
		return s
	}
	return "0: done.\n\n2: the command could not be carried out."
}

func manFlag(f *pflag.Flag) string {
	if f.Hidden {
		return ""
	}
	head := "\\fB" + roff("--"+f.Name) + "\\fR"
	if f.Shorthand != "" {
		head = "\\fB" + roff("-"+f.Shorthand) + "\\fR, " + head
	}
	name, usage := pflag.UnquoteUsage(f)
	if name != "" {
		head += " \\fI" + roff(name) + "\\fR"
	}
	return ".TP\n" + head + "\n" + roff(usage) + "\n"
}

// paragraphs sets text: an empty line ends a paragraph, indented lines stay as they are.
func paragraphs(s string) string {
	var b strings.Builder
	block := false
	for line := range strings.Lines(strings.TrimSpace(s) + "\n") {
		line = strings.TrimRight(line, "\n")
		switch indented := strings.HasPrefix(line, "  "); {
		case line == "" && block:
			b.WriteString("\n")
			continue
		case line == "":
			b.WriteString(".PP\n")
			continue
		case indented && !block:
			b.WriteString(".nf\n")
			block = true
		case !indented && block:
			b.WriteString(".fi\n.PP\n")
			block = false
		}
		b.WriteString(roff(line) + "\n")
	}
	if block {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roff escapes what means something to the formatter.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
