package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/verdict"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
)

const checkLong = `Tell whether Envoy configurations run here. Each is read and built as the proxy would do it; nothing listens,
and no access log is created.
All mistakes are told at once, with file, line, column, field, what was found and what may stand there; what Envoy
has and this build has not is told by extension and field, and where it behaves differently, how. What Envoy takes and
nobody means is noted, and changes no exit code: a route that no request reaches, a cluster that there is not, a domain
with a '*' in it, TLS that verifies nobody.

Files of xDS resources that a bootstrap names (path_config_source), and those that these name, are judged with it; so is
a file of resources by itself.

A file, folder or environment variable that this machine lacks is a problem of a kind of its own ("machine"); for a
configuration that is to run elsewhere, --allow-missing-files makes notes of them, but for variables that --config-env is to
replace: without them nobody knows what the file says.

What is missing is named by its message; docs/compat.md has each one with its extension.

A file - is standard input. Of folders, all files are looked at whose names end in .yaml, .yml, .json, .pb or .pb_text and that hold a bootstrap.
With --output json the result is for editors and CI; docs/json.md has its keys, which stay.`

func checkCommand() *cobra.Command {
	var r reading
	var output string
	var quiet, verbose, elsewhere bool
	most := 100
	c := &cobra.Command{
		Use: "check FILE|FOLDER...", Short: "Tell whether configurations run here, what is wrong with them, and what differs from Envoy",
		Long: checkLong,
		Example: `  dragoman check envoy.yaml
  dragoman check --verbose envoy.yaml
  dragoman check --quiet configs/ && echo all of them run
  kubectl get cm envoy -o jsonpath='{.data.envoy\.yaml}' | dragoman check -
  dragoman check --output json envoy.yaml | jq '.files[].problems[]'`,
		Args:        atLeastOne,
		Annotations: map[string]string{"exit": "0: all of them run.\n\n1: one does not.\n\n2: a file or a folder cannot be read."},
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", output, "text", "json"); err != nil {
				return err
			}
			paths, err := verdict.Files(args)
			if err != nil {
				return err
			}
			o := proxy.LoadOptions{ConfigYAML: r.configYAML, AllowUnknownFields: r.allowUnknown, MaxProblems: most}
			read := r.options(c)
			o.Env = read.Env
			all := verdict.All{OK: true, Files: []*verdict.File{}}
			for _, p := range paths {
				f := verdict.Of(p.Path, o, read, checking()...)
				if elsewhere {
					f.Elsewhere()
				}
				if p.Found && !f.Bootstrap() {
					all.Skipped = append(all.Skipped, p.Path)
					continue
				}
				all.OK = all.OK && f.OK
				all.Files = append(all.Files, f)
				if output == "text" {
					printVerdict(c.OutOrStdout(), f, quiet, verbose)
				}
			}
			if len(all.Files) == 0 {
				return errors.New("there is no bootstrap in " + strings.Join(args, ", "))
			}
			if output == "json" {
				if err := printJSON(c.OutOrStdout(), all); err != nil {
					return err
				}
			} else {
				printTotal(c.OutOrStdout(), &all, verbose)
			}
			if !all.OK {
				return &answer{}
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&output, "output", "text", "form of the result, `text|json`")
	fl.BoolVarP(&quiet, "quiet", "q", false, "print only files that do not run, one line each problem")
	fl.BoolVar(&verbose, "verbose", false, "list all extensions that are used, the supported ones too, and all that is missing in a folder")
	fl.BoolVar(&elsewhere, "allow-missing-files", false, "certificates, folders of logs and other files that this machine lacks are notes, as where the configuration is to run elsewhere")
	fl.IntVar(&most, "max-problems", most, "how many problems of a file are told; `N`")
	fl.StringVar(&r.configYAML, "config-yaml", "", "`YAML` that is merged over each file")
	r.add(c)
	return c
}

// checking are the options of a proxy that is built for a look only.
func checking() []proxy.Option {
	return []proxy.Option{proxy.WithIO(os.Getenv("DRAGOMAN_IO")), proxy.WithExtensions(standard.All()...), proxy.WithoutLogFiles(),
		proxy.WithOptions(proxy.Options{Env: os.LookupEnv, CommandLine: proxy.CommandLine{Mode: "validate"}})}
}

// printVerdict prints what is to be said of one file.
func printVerdict(out io.Writer, f *verdict.File, quiet, verbose bool) {
	var b strings.Builder
	for i := range f.Problems {
		if quiet {
			b.WriteString(f.Problems[i].Error() + "\n")
		}
	}
	if quiet {
		_, _ = io.WriteString(out, b.String())
		return
	}
	fmt.Fprintf(&b, "%s: %s\n", f.File, f.Says())
	if c := f.Counts(); c != "" {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	for _, p := range f.Problems {
		printProblem(&b, "", p)
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "  ... and %d more problems (--max-problems)\n", f.More)
	}
	printExtensions(&b, f, verbose)
	for _, d := range f.Differs {
		fmt.Fprintf(&b, "  differs: %s: Envoy: %s; here: %s\n", d.What, d.Envoy, d.Dragoman)
	}
	for _, p := range f.Notes {
		printProblem(&b, "note: ", p)
	}
	_, _ = io.WriteString(out, b.String())
}

// printProblem prints the path in a line of its own: both it and what is said are long.
func printProblem(b *strings.Builder, what string, p proxy.Problem) {
	at := p.Path
	p.Path = ""
	fmt.Fprintf(b, "  %s%s\n", what, strings.ReplaceAll(p.Error(), "\n", "\n    "))
	if at != "" {
		fmt.Fprintf(b, "      field %s\n", at)
	}
}

func printExtensions(b *strings.Builder, f *verdict.File, verbose bool) {
	supported, missing := 0, 0
	for _, x := range f.Extensions {
		if x.Supported {
			supported++
		} else {
			missing++
		}
	}
	if supported+missing > 0 {
		fmt.Fprintf(b, "  extensions: %d used, %d not supported\n", supported+missing, missing)
	}
	for _, x := range f.Extensions {
		switch {
		case !x.Supported:
			fmt.Fprintf(b, "    no   %s (%s%s)\n", x.Type, places(x.Places), builds[x.Build])
		case verbose:
			fmt.Fprintf(b, "    yes  %s (%s)\n", x.Type, places(x.Places))
		}
	}
}

// builds say where an extension is that Envoy's own build has not.
var builds = map[string]string{
	"contrib": "; not in Envoy 1.40's own build: in its contrib build only",
	"other":   "; not in Envoy 1.40: of a program that is made of Envoy",
}

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

// printTotal sums up several files, and says which extensions and fields would help most.
func printTotal(out io.Writer, all *verdict.All, verbose bool) {
	if len(all.Files) < 2 && len(all.Skipped) == 0 {
		return
	}
	run := 0
	for _, f := range all.Files {
		if f.OK {
			run++
		}
	}
	fmt.Fprintf(out, "\n%d of %d configurations run", run, len(all.Files))
	if n := len(all.Skipped); n > 0 {
		fmt.Fprintf(out, "; %d other files hold no bootstrap", n)
	}
	fmt.Fprintln(out)
	verdicts := map[string]int{}
	for _, f := range all.Files {
		verdicts[f.Verdict]++
	}
	if n := verdicts["refused"]; n > 0 {
		fmt.Fprintf(out, "  refused: %d of them, for mistakes that Envoy refuses too\n", n)
	}
	if n := verdicts["machine"]; n > 0 {
		fmt.Fprintf(out, "  need files that are not on this machine: %d of them (--allow-missing-files)\n", n)
	}
	missing := all.Missing()
	for i, x := range missing {
		if i == shownMissing && !verbose {
			fmt.Fprintf(out, "  ... and %d more that are missing (--verbose)\n", len(missing)-i)
			break
		}
		what := x.Extension
		if x.Field != "" {
			what = "field " + x.Field
		}
		fmt.Fprintf(out, "  missing in %d of them: %s\n", x.Files, what)
	}
}

// shownMissing is how many missing things the summary of a folder lists without --verbose.
const shownMissing = 30
