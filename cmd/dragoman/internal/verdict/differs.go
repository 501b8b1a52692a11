package verdict

import (
	"regexp"
	"strings"

	"github.com/dragoman-proxy/dragoman/docs"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// Difference is a row of docs/differs.md.
type Difference struct {
	What     string `json:"what"`
	Envoy    string `json:"envoy"`
	Dragoman string `json:"dragoman"`
	Why      string `json:"why"`
}

// rows reads the table of differences.
func rows() (list []Difference) {
	for line := range strings.Lines(docs.Differs) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 5 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] == "what" {
			continue
		}
		for i := range cells {
			cells[i] = link.ReplaceAllString(cells[i], "docs/$1")
		}
		list = append(list, Difference{cells[0], cells[1], cells[2], cells[3]})
	}
	return list
}

// link is one to another page.
var link = regexp.MustCompile(`\[[^]]*\]\(([^)]*)\)`)

// shortestName is how long a name must be to tell something.
const shortestName = 8

// differences are the rows that concern what a configuration names: one of the names in backquotes in the row's first column is a
// field, a value or an extension of it. What is refused is no difference: it is a problem, if it is there. What a node says of
// itself, such as the extensions that a dump of a running Envoy lists, configures nothing.
func differences(root *configfile.Value) (out []Difference) {
	n := names{map[string]bool{}, map[string]bool{}}
	n.collect(root.Without("node"))
	for _, r := range rows() {
		if applies(r, n) {
			out = append(out, r)
		}
	}
	return out
}

// names are those of a configuration: of fields and keys, and the words of values.
type names struct{ keys, words map[string]bool }

func (n names) collect(v *configfile.Value) {
	for _, k := range v.Keys {
		n.keys[k] = true
	}
	if v.Kind == configfile.String && len(v.Text) < 200 {
		for _, w := range words(v.Text) { // of a type, a header, metadata
			n.words[strings.Trim(w, ".")] = true
			for _, part := range strings.Split(w, ".") {
				n.words[part] = true
			}
		}
	}
	for _, x := range v.Items {
		n.collect(x)
	}
}

// has tells whether a name is there, or for a path of fields each of its steps.
func (n names) has(name string) bool {
	if n.keys[name] || n.words[name] {
		return true
	}
	steps := strings.Split(name, ".")
	for _, s := range steps {
		if !n.keys[s] {
			return false
		}
	}
	return len(steps) > 1
}

// applies tells whether a row concerns a configuration that has names. Left out are rows of what is refused, of what is set by runtime
// (it is not in the file's words), of flags and of pages of the admin interface, and those of the wire: what peers may send says
// nothing about a file, and would stand behind each one. Numbers of JSON texts and statistics that only we have are no matter of a file
// either.
func applies(r Difference, names names) bool {
	for _, start := range []string{"runtime", "HTTP/1:", "`-", "`/", "infinite numbers", "`server.dragoman."} {
		if strings.HasPrefix(r.What, start) {
			return false
		}
	}
	if strings.HasPrefix(strings.TrimPrefix(r.Dragoman, "is "), "refused") {
		return false
	}
	parts := strings.Split(r.What, "`") // those with odd indices are quoted
	for i := 1; i < len(parts); i += 2 {
		ok := concerns(parts[i], names)
		for ; i+2 < len(parts) && parts[i+1] == " in "; i += 2 { // "`field` in `MODE`" needs both
			ok = ok && concerns(parts[i+2], names)
		}
		if ok {
			return true
		}
	}
	return false
}

// concerns tells whether the configuration has what a row names: all of its long words.
func concerns(quoted string, names names) bool {
	if strings.HasPrefix(quoted, "-") || strings.HasPrefix(quoted, "/") {
		return false // a flag, or a path of the admin interface
	}
	found := false
	for _, w := range words(quoted) {
		if w = strings.Trim(w, "."); len(w) < shortestName {
			continue
		}
		if !names.has(w) {
			return false
		}
		found = true
	}
	return found
}

// words are the names in a text: letters, digits and _-. between other signs.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}
