package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/internal/contrib"
	"github.com/dragoman-proxy/dragoman/internal/gap"
)

const compat = "docs/compat.md"

const compatHead = `# What of Envoy 1.40 works

` + generated + `Each extension that the real Envoy 1.40.0 lists, and each field that Dragoman does not have. A configuration that asks for an extension
or a field that is missing is refused, with its name and place; nothing is skipped in silence. To ask about a file of yours:
` + "`dragoman check envoy.yaml`" + `.

- **yes**: it works. Fields that it refuses are below; **differs** points to a known difference in [differs.md](differs.md).
- **no**: it is refused. Behind it are the messages that choose it: they are what the refusal names.
- **since** is the version in which it came, *next* the one that is not released yet.

`

// TestCompat keeps docs/compat.md as the code is.
func TestCompat(t *testing.T) {
	have := map[string]bool{}
	for _, e := range ours(t) {
		have[e.Category+" "+e.Name] = true
		for _, u := range e.TypeURLs {
			have[e.Category+" "+u] = true
		}
	}
	rows := refused()
	differs := differences(t)
	since := sinceOf(t)
	categories := map[string][]extension{}
	for _, e := range envoys(t) {
		categories[e.Category] = append(categories[e.Category], e)
	}
	var b strings.Builder
	var internal []string
	yes, all := 0, 0
	for _, c := range slices.Sorted(maps.Keys(categories)) {
		if !slices.ContainsFunc(categories[c], func(e extension) bool { return len(e.TypeURLs) > 0 || have[c+" "+e.Name] }) {
			internal = append(internal, c)
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| extension | | since | |\n|---|---|---|---|\n", c)
		for _, e := range categories[c] {
			verdict, from, note := "no", "", messages(e)
			now := canonical(e, categories[c])
			if now.Name != e.Name {
				note = "old name of " + now.Name
			}
			if have[c+" "+now.Name] || slices.ContainsFunc(now.TypeURLs, func(u string) bool { return have[c+" "+u] }) {
				verdict, from = "yes", "next"
				if now.Name == e.Name {
					note = noteOf(e, rows)
				}
				if s := since[c+" "+e.Name]; s != "" {
					from = s
				}
				if differs[now.Name] || differs[short(now.Name)] {
					verdict = "differs"
				}
			}
			if now.Name == e.Name {
				all++
				if verdict != "no" {
					yes++
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", pageOf(e), verdict, from, note)
		}
	}
	fmt.Fprintf(&b, "\n## Others\n\nOf these categories no extension is chosen by a message: they are parts of Envoy's own, or of extensions above.\n\n")
	for _, c := range internal {
		fmt.Fprintf(&b, "- %s\n", c)
	}
	b.WriteString(contribSection())
	text := compatHead + fmt.Sprintf("%d of %d extensions work, old names not counted.\n", yes, all) + b.String()
	b.Reset()
	b.WriteString(text)
	b.WriteString("\n" + refusedSection(rows))
	b.WriteString("\n" + apiOnly(t))
	page(t, compat, b.String())
}

// contribSection names what Envoy's own build has not either.
func contribSection() string {
	about := map[string][]string{}
	for _, x := range contrib.Extensions() {
		about[x.About] = append(about[x.About], "`"+x.Package+"`")
	}
	var b strings.Builder
	b.WriteString("\n## Envoy's contrib build\n\nThese belong to Envoy's contrib build, of this release or another. Envoy 1.40's own build refuses them too, and so does Dragoman; `dragoman check`\n" +
		"says so of a file that names one. The packages of their messages stand below `envoy.extensions`.\n\n")
	for _, what := range slices.Sorted(maps.Keys(about)) {
		fmt.Fprintf(&b, "- %s: %s\n", what, strings.Join(about[what], " "))
	}
	return b.String()
}

// canonical is the extension that an old name ("envoy.echo") stands for; any other is itself.
func canonical(e extension, all []extension) extension {
	old, ok := strings.CutPrefix(e.Name, "envoy.")
	if len(e.TypeURLs) > 0 || !ok {
		return e
	}
	old = strings.TrimSuffix(short(old), "_access_log")
	for _, o := range all {
		if len(o.TypeURLs) > 0 && (short(o.Name) == old || strings.ReplaceAll(short(o.Name), "_", "") == strings.ReplaceAll(old, "_", "")) {
			return o
		}
	}
	return e
}

// pageOf is an extension's name, with a link to its page if it has one.
func pageOf(e extension) string {
	for _, u := range e.TypeURLs {
		parts := strings.Split(u, ".")
		if len(parts) < 4 || parts[0] != "envoy" || parts[1] != "extensions" {
			continue
		}
		readme := strings.Join(parts[1:len(parts)-2], "/") + "/README.md"
		if exists(readme) {
			return fmt.Sprintf("[%s](../%s)", e.Name, readme)
		}
	}
	return e.Name
}

// messages are the ones that choose an extension which there is not: it is what the errors name.
func messages(e extension) string {
	var list []string
	for _, u := range e.TypeURLs {
		list = append(list, "`"+u+"`")
	}
	return strings.Join(list, " ")
}

func noteOf(e extension, rows []gap.Row) string {
	n := 0
	for _, r := range rows {
		if !r.Ignored && slices.Contains(e.TypeURLs, r.Message) {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "one field is refused"
	}
	return fmt.Sprintf("%d fields are refused", n)
}

func short(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// differences are the words in code style in the first column of docs/differs.md.
func differences(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, line := range lines(t, filepath.Join(root, "docs/differs.md")) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		what, _, _ := strings.Cut(line[2:], " | ")
		for _, m := range regexp.MustCompile("`([a-z0-9_.]+)`").FindAllStringSubmatch(what, -1) {
			out[m[1]] = true
		}
	}
	return out
}

// sinceOf reads from the committed page in which version each extension came: that is a fact of the past, which no code states. The
// environment's RELEASE turns "next" into a version, when one is made.
func sinceOf(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	b, err := os.ReadFile(filepath.Join(root, compat))
	if err != nil {
		return out
	}
	category := ""
	row := regexp.MustCompile(`^\| \[?([^\]| ]+)[^|]*\| (?:yes|differs) \| ([^|]*) \|`)
	for line := range strings.Lines(string(b)) {
		if c, ok := strings.CutPrefix(line, "## "); ok {
			category = strings.TrimSpace(c)
		}
		if m := row.FindStringSubmatch(line); m != nil {
			out[category+" "+m[1]] = m[2]
			if release := os.Getenv("RELEASE"); *update && release != "" && m[2] == "next" {
				out[category+" "+m[1]] = release
			}
		}
	}
	return out
}

func refusedSection(rows []gap.Row) string {
	by := map[string][]gap.Row{}
	for _, r := range rows {
		by[r.Message] = append(by[r.Message], r)
	}
	var b strings.Builder
	b.WriteString("# Fields\n\n## Refused\n\nPaths are relative to the message; lists and maps add no step.\n\n| message | field | |\n|---|---|---|\n")
	for _, m := range slices.Sorted(maps.Keys(by)) {
		for _, r := range by[m] {
			if !r.Ignored {
				fmt.Fprintf(&b, "| %s | `%s` | %s |\n", m, r.Field, cell(condition(r)))
			}
		}
	}
	b.WriteString("\n## Accepted, without effect\n\n| message | field | why |\n|---|---|---|\n")
	for _, m := range slices.Sorted(maps.Keys(by)) {
		for _, r := range by[m] {
			if r.Ignored {
				why := r.Note
				if why == "" {
					why = "see its page"
				}
				fmt.Fprintf(&b, "| %s | `%s` | %s |\n", m, r.Field, cell(why))
			}
		}
	}
	return b.String()
}

// condition says when a field is refused, if not always.
func condition(r gap.Row) string {
	switch {
	case r.Value != "":
		return "`" + r.Value + "`"
	case r.Note != "":
		return r.Note
	}
	return ""
}

// apiOnly lists the packages of the API that belong to no extension of the real binary: no configuration can ask Envoy for them.
func apiOnly(t *testing.T) string {
	listed := map[string]bool{}
	for _, e := range envoys(t) {
		for _, u := range e.TypeURLs {
			listed[u[:strings.LastIndexByte(u, '.')]] = true
		}
	}
	var b strings.Builder
	b.WriteString("# Packages of the API without an extension\n\nThe API (go-control-plane) has these packages; the real binary lists no extension for them. Some hold what other messages use.\n\n")
	for _, line := range lines(t, filepath.Join(root, "proxy/internal/config/known.txt")) {
		p, _, _ := strings.Cut(line, " ")
		if full := "envoy." + p; strings.HasPrefix(p, "extensions.") && !listed[full] {
			fmt.Fprintf(&b, "- %s\n", full)
		}
	}
	return b.String()
}
