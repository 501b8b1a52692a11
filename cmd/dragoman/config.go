package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/verdict"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/configfile/doubt"
)

// configCommand is the tree of commands that work on configuration files without running them.
func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Make, format, convert, compare and explain configuration files",
		Long: "Work on configuration files without running them. The forms are YAML, JSON and protobuf, text or binary;\nas for Envoy, the end of a file's name says which: .yaml, .yml, .pb_text, .pb, and JSON for the rest.",
		Example: `  dragoman config init --listen 8080 --route /=http://127.0.0.1:9000 > envoy.yaml
  dragoman config diff old.yaml new.yaml
  dragoman config show envoy.yaml`,
	}
	c.AddCommand(initCommand(), formatCommand(), convertCommand(), diffCommand(), showCommand())
	group(c)
	return c
}

// reading are the flags of commands that read configurations.
type reading struct {
	configYAML        string
	env, allowUnknown bool
}

func (r *reading) add(c *cobra.Command) {
	c.Flags().BoolVar(&r.env, "config-env", false, "replace ${NAME} and ${NAME:-default} in values (YAML, JSON) by environment variables")
	c.Flags().BoolVar(&r.allowUnknown, "allow-unknown-fields", false, "let fields pass that Envoy 1.40 does not have")
}

func (r *reading) options(c *cobra.Command) configfile.Options {
	o := configfile.Options{ConfigYAML: r.configYAML, AllowUnknownFields: r.allowUnknown, Stdin: c.InOrStdin()}
	if r.env {
		o.Env = os.LookupEnv
	}
	return o
}

// mostNoted is how many problems of a refused file are told where somebody has asked for something else.
const mostNoted = 10

// noteRefused tells on standard error that a file which is shown or compared would be refused, and why.
func (r *reading) noteRefused(c *cobra.Command, f *configfile.File) bool {
	read := r.options(c)
	name := f.Path
	if name == configfile.StandardInput {
		name, read.Stdin = "-", bytes.NewReader(f.Data)
	}
	v := verdict.Of(name, proxy.LoadOptions{ConfigYAML: r.configYAML, AllowUnknownFields: r.allowUnknown, MaxProblems: mostNoted, Env: read.Env},
		read, checking()...)
	if v.Verdict != "refused" {
		return false
	}
	fmt.Fprintf(c.ErrOrStderr(), "note: %s %s\n", v.File, v.Says())
	for i := range v.Problems[:min(len(v.Problems), mostNoted)] {
		fmt.Fprintf(c.ErrOrStderr(), "  %s\n", v.Problems[i].Error())
	}
	if n := len(v.Problems) + v.More - mostNoted; n > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "  ... and %d more (dragoman check)\n", n)
	}
	return true
}

// write puts data into a file, or on standard output for "" and "-".
func write(out io.Writer, path string, data []byte) error {
	if path == "" || path == "-" {
		_, err := out.Write(data)
		return err
	}
	return os.WriteFile(path, data, 0o644) //nolint:gosec // as an editor would
}

// initFlags are the flags of config init.
type initFlags struct {
	short              configfile.Short
	file, output, form string
	routes, tcp        []string
	force              bool
}

const initLong = `Make a plain Envoy configuration of a short form: listeners, routes and upstreams.

A route is MATCH=TARGET. A match is a path prefix, with a host before it if need be (/api/, example.com/), or one
path (=/health, example.com=/health). The first route of a host that fits is taken, then the first without a host; one that none
reaches is noted. A target is one of
  http://HOST:PORT,...     upstreams; https:// is TLS, h2c:// is HTTP/2 without TLS, h2:// with TLS
  redirect:https           the same address over https; redirect:URL another one
  respond:STATUS [TEXT]    an answer of the proxy itself

The same can be written to a file, which --file reads:
  listen: 8080                      # or a list; HOST:PORT
  admin: 9901                       # on the loopback
  access_log: "-"                   # or a file
  tls: {cert: cert.pem, key: key.pem}
  routes:
  - {match: /api/, to: [http://10.0.0.1:9000, http://10.0.0.2:9000], timeout: 5s}
  - {match: old.example.com/, redirect: https://example.com}
  - {match: =/health, respond: 200 fine}
  tcp:
  - {listen: 5432, to: db.internal:5432}`

func initCommand() *cobra.Command {
	f := &initFlags{}
	c := &cobra.Command{
		Use: "init", Short: "Make a configuration of a few words", Args: cobra.NoArgs, Long: initLong,
		Example: `  dragoman config init --listen 8080 --route /=http://127.0.0.1:9000 > envoy.yaml
  dragoman config init --listen 443 --cert cert.pem --key key.pem --admin 9901 --access-log - \
      --route example.com/api/=http://api1:9000,http://api2:9000 --route '/=respond:404 nothing here'
  dragoman config init --file short.yaml -o envoy.yaml`,
		RunE: func(c *cobra.Command, _ []string) error {
			to, err := formFor(f.form, f.output, configfile.YAML)
			if err != nil {
				return err
			}
			s, err := f.read(c.InOrStdin())
			if err != nil {
				return err
			}
			v, err := s.Expand()
			if err != nil {
				return err
			}
			data, err := configfile.FromValue(v).Encode(to)
			if err != nil {
				return err
			}
			if err := f.free(); err != nil {
				return err
			}
			noteDoubts(c.ErrOrStderr(), f.output, to, data)
			return write(c.OutOrStdout(), f.output, data)
		},
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.short.Listen, "listen", nil, "`address` to serve HTTP on: a port, on all addresses, or HOST:PORT; more than once for more listeners")
	fl.StringArrayVar(&f.routes, "route", nil, "a `route`, MATCH=TARGET; more than once for more routes")
	fl.StringArrayVar(&f.tcp, "tcp", nil, "pass connections on: `LISTEN=HOST:PORT,...`")
	fl.StringVar(&f.short.Admin, "admin", "", "`address` of the admin interface; a port alone is bound on the loopback")
	fl.StringVar(&f.short.AccessLog, "access-log", "", "`file` for the access log, - for standard output")
	fl.StringVar(&f.short.Cert, "cert", "", "`file` with the certificate: the listeners then speak TLS")
	fl.StringVar(&f.short.Key, "key", "", "`file` with the certificate's key")
	fl.StringVarP(&f.file, "file", "f", "", "`file` in the short form, - for standard input; flags add to it")
	fl.StringVarP(&f.output, "out", "o", "", "`file` to write to; its name says in which form")
	fl.BoolVar(&f.force, "force", false, "write over a file that exists")
	fl.StringVar(&f.form, "to", "", "form to write, `yaml|json|pb_text|pb`: yaml by default")
	return c
}

// free says whether there is a file already where the configuration is to be written.
func (f *initFlags) free() error {
	if st, err := os.Stat(f.output); f.force || f.output == "" || f.output == "-" || err != nil || !st.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s exists; --force writes over it", f.output)
}

// noteDoubts tells what of a configuration that was made nobody means, such as a route behind one that takes all requests.
func noteDoubts(out io.Writer, name string, form configfile.Form, data []byte) {
	if name == "" || name == "-" {
		name = "the configuration"
	}
	file, err := configfile.Of("made."+string(form), data, configfile.Options{})
	if err != nil {
		return // it was made here: it is right
	}
	told := map[string]bool{}
	for _, x := range doubt.Of(file, nil, 10) {
		if x.File, x.Path = name, ""; !told[x.Msg] { // each listener has the same routes
			fmt.Fprintf(out, "note: %s\n", x.Error())
		}
		told[x.Msg] = true
	}
}

// read puts the short form together from the file and the flags.
func (f *initFlags) read(stdin io.Reader) (*configfile.Short, error) {
	s := &configfile.Short{}
	if f.file != "" {
		file, err := configfile.Read(f.file, configfile.Options{Stdin: stdin})
		if err != nil {
			return nil, err
		}
		if s, err = configfile.ParseShort(file); err != nil {
			return nil, err
		}
	}
	s.Merge(&f.short)
	for _, r := range f.routes {
		rule, err := configfile.ParseRule(r)
		if err != nil {
			return nil, err
		}
		s.Rules = append(s.Rules, rule)
	}
	for _, t := range f.tcp {
		at, behind, ok := strings.Cut(t, "=")
		if !ok {
			return nil, fmt.Errorf("--tcp %q: write LISTEN=HOST:PORT, such as 5432=db.internal:5432", t)
		}
		s.TCP = append(s.TCP, configfile.TCP{Listen: at, To: strings.Split(behind, ",")})
	}
	return s, nil
}

// formFor is the form that was asked for by its name, or by the name of the file that is written.
func formFor(name, file string, otherwise configfile.Form) (configfile.Form, error) {
	switch {
	case name != "":
		return configfile.ParseForm(name)
	case file != "" && file != "-":
		return configfile.FormOf(file), nil
	}
	return otherwise, nil
}

func formatCommand() *cobra.Command {
	var inPlace, check bool
	c := &cobra.Command{
		Use: "format FILE...", Short: "Format YAML and JSON files", Args: atLeastOne,
		Long: `Format configuration files: an indent of two spaces, lists that begin under their key. Comments, anchors, the
order of keys and empty lines stay. The result goes to standard output, or into the files with --write.
A file that cannot be formatted without losing something is left as it is, and that is an error.`,
		Example:     "  dragoman config format envoy.yaml\n  dragoman config format --write *.yaml\n  dragoman config format --check *.yaml",
		Annotations: map[string]string{"exit": "0: done.\n\n1: with --check, a file is not formatted.\n\n2: a file cannot be read or formatted."},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 && !inPlace && !check {
				return errors.New("several files can be formatted with --write, or looked at with --check")
			}
			differs := 0
			for _, path := range args {
				f, err := configfile.Read(path, configfile.Options{Stdin: c.InOrStdin()})
				if err != nil {
					return err
				}
				data, err := f.Formatted()
				if err != nil {
					return err
				}
				switch same := bytes.Equal(data, f.Data); {
				case check && !same:
					differs++
					fmt.Fprintln(c.OutOrStdout(), path)
				case check || inPlace && same:
				case inPlace:
					if err := write(nil, path, data); err != nil {
						return err
					}
				default:
					if err := write(c.OutOrStdout(), "", data); err != nil {
						return err
					}
				}
			}
			if differs > 0 {
				return &answer{}
			}
			return nil
		},
	}
	c.Flags().BoolVarP(&inPlace, "write", "w", false, "write the result into the files")
	c.Flags().BoolVar(&check, "check", false, "only print the names of the files that are not formatted")
	return c
}

func convertCommand() *cobra.Command {
	var r reading
	var to, output string
	c := &cobra.Command{
		Use: "convert FILE", Short: "Write a configuration in another form", Args: exactly(1),
		Long: `Write a configuration in another form: YAML, JSON, protobuf text or protobuf binary. Between YAML and JSON the
order of keys and the way in which values are written stay, and comments go. What the form cannot hold is noted on
standard error. Protobufs need a configuration whose fields
and extensions this build knows.`,
		Example: `  dragoman config convert envoy.json --to yaml
  dragoman config convert envoy.yaml -o envoy.pb
  dragoman config convert envoy.pb --to json
  kubectl get cm envoy -o jsonpath='{.data.envoy\.yaml}' | dragoman config convert - --to json`,
		RunE: func(c *cobra.Command, args []string) error {
			f, err := configfile.Read(args[0], r.options(c))
			if err != nil {
				return err
			}
			other := configfile.YAML
			if f.Form == configfile.YAML {
				other = configfile.JSON
			}
			form, err := formFor(to, output, other)
			if err != nil {
				return err
			}
			data, err := f.Encode(form)
			if err != nil {
				return err
			}
			noteLost(c.ErrOrStderr(), f, form, data)
			return write(c.OutOrStdout(), output, data)
		},
	}
	c.Flags().StringVar(&to, "to", "", "form to write, `yaml|json|pb_text|pb` (by default JSON of YAML, and YAML of all else)")
	c.Flags().StringVarP(&output, "out", "o", "", "`file` to write to; its name says in which form")
	r.add(c)
	return c
}

// noteLost tells what a form cannot hold: Envoy reads fractions and large integers of YAML as text where any kind of value may stand.
func noteLost(out io.Writer, f *configfile.File, form configfile.Form, data []byte) {
	g, err := configfile.Of("converted."+string(form), data, configfile.Options{AllowUnknownFields: true})
	if err != nil {
		return
	}
	for _, x := range configfile.Lost(f, g) {
		fmt.Fprintf(out, "note: %s: %s becomes %s: in %s, Envoy reads numbers with a fraction or beyond 32 bits as text there (the runtime takes either)\n",
			x.Path, x.Old, x.New, strings.ToUpper(string(form)))
	}
}

func diffCommand() *cobra.Command {
	var r reading
	var output string
	c := &cobra.Command{
		Use: "diff OLD NEW", Short: "Compare two configurations in terms of listeners, routes and clusters", Args: exactly(2),
		Long: `Compare two configurations in terms of what they configure: listeners, routes, clusters, secrets, and the rest of
the bootstrap. The form of the files, the order of keys and the way in which values are written make no difference.
If one of them would be refused, standard error says so, and why.`,
		Example:     "  dragoman config diff old.yaml new.yaml\n  dragoman config diff envoy.yaml rendered.json --output json",
		Annotations: map[string]string{"exit": "0: they say the same.\n\n1: they differ.\n\n2: one cannot be read."},
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", output, "text", "json"); err != nil {
				return err
			}
			var files [2]*configfile.File
			var errs [2]error
			for i, path := range args {
				files[i], errs[i] = configfile.Read(path, r.options(c))
			}
			if err := errors.Join(errs[:]...); err != nil {
				return err
			}
			for _, f := range files {
				r.noteRefused(c, f)
			}
			changes := configfile.Diff(files[0], files[1])
			if output == "json" {
				if changes == nil {
					changes = []configfile.Change{}
				}
				if err := printJSON(c.OutOrStdout(), changes); err != nil {
					return err
				}
			} else if _, err := io.WriteString(c.OutOrStdout(), diffText(changes, true)); err != nil {
				return err
			}
			if len(changes) > 0 {
				return &answer{}
			}
			return nil
		},
	}
	c.Flags().StringVar(&output, "output", "text", "form of the result, `text|json`")
	r.add(c)
	return c
}

func showCommand() *cobra.Command {
	var r reading
	var to string
	var bare bool
	c := &cobra.Command{
		Use: "show FILE", Short: "Print a configuration as it takes effect, with defaults", Args: exactly(1),
		Long: `Print a configuration as it takes effect: with --config-yaml merged over it, variables replaced, and the defaults of
the fields that it leaves out. What is written stays as it is; a default has a comment that says so (in YAML). What this
build does not have is left alone. Of a file that would be refused standard error says why.`,
		Annotations: map[string]string{"exit": "0: done.\n\n1: the file would be refused; it is printed nevertheless.\n\n2: it cannot be read."},
		Example:     "  dragoman config show envoy.yaml\n  dragoman config show envoy.yaml --config-yaml 'admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}'\n  dragoman config show envoy.yaml --no-defaults --to json",
		RunE: func(c *cobra.Command, args []string) error {
			form, err := formFor(to, "", configfile.YAML)
			if err != nil {
				return err
			}
			if form != configfile.YAML && form != configfile.JSON {
				return errors.New("show prints yaml or json; for protobufs there is: dragoman config convert")
			}
			f, err := configfile.Read(args[0], r.options(c))
			if err != nil {
				return err
			}
			v, err := configfile.Effective(f, !bare)
			if err != nil {
				return err
			}
			data, err := configfile.FromValue(v).Encode(form)
			if err != nil {
				return err
			}
			if err := write(c.OutOrStdout(), "", data); err != nil {
				return err
			}
			if r.noteRefused(c, f) {
				return &answer{}
			}
			return nil
		},
	}
	c.Flags().StringVar(&r.configYAML, "config-yaml", "", "`YAML` that is merged over the file")
	c.Flags().StringVar(&to, "to", "", "form to print, `yaml|json`: yaml by default")
	c.Flags().BoolVar(&bare, "no-defaults", false, "leave the defaults out")
	r.add(c)
	return c
}

// oneOf refuses a flag's value that is not one of a few.
func oneOf(flag, value string, values ...string) error {
	for _, v := range values {
		if v == value {
			return nil
		}
	}
	return fmt.Errorf("--%s %q: the values are %s", flag, value, strings.Join(values, ", "))
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

var (
	kindHeadings = map[string]string{"listener": "listeners", "route": "routes", "cluster": "clusters", "secret": "secrets", "bootstrap": "bootstrap"}
	opSigns      = map[configfile.Op]string{configfile.Added: "+", configfile.Removed: "-", configfile.Changed: "~"}
)

// diffText prints changes for people, by kinds. headings are left out of a log.
func diffText(changes []configfile.Change, headings bool) string {
	var b strings.Builder
	for _, kind := range configfile.Kinds {
		first := true
		for _, c := range changes {
			if c.Kind != kind {
				continue
			}
			if first && headings {
				b.WriteString(kindHeadings[kind] + "\n")
			}
			first = false
			line := "  " + opSigns[c.Op] + " "
			if !headings {
				line += kind + " "
			}
			line += c.Name
			if c.What != "" {
				line += ": " + c.What
			}
			b.WriteString(line + "\n")
			for _, f := range c.Fields {
				b.WriteString("      " + fieldText(f) + "\n")
			}
		}
	}
	return b.String()
}

func fieldText(f configfile.Field) string {
	at := f.Path
	if at != "" {
		at += ": "
	}
	switch {
	case f.Old == "":
		return at + "+ " + f.New
	case f.New == "":
		return at + "- " + f.Old
	}
	return at + f.Old + " -> " + f.New
}
