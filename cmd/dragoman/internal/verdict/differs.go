package verdict

import (
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
		list = append(list, Difference{cells[0], cells[1], cells[2], cells[3]})
	}
	return list
}

// shortestName is how long a name must be to tell something.
const shortestName = 8

// differences are the rows that concern what a configuration names: one of the names in backquotes in the row's first column is a
// field, a value or an extension of it. What is refused is no difference: it is a problem, if it is there.
func differences(root *configfile.Value) (out []Difference) {
	names := map[string]bool{}
	var collect func(v *configfile.Value)
	collect = func(v *configfile.Value) {
		for _, k := range v.Keys {
			names[k] = true
		}
		if v.Kind == configfile.String && len(v.Text) < 200 {
			for _, w := range words(v.Text) {
				names[w] = true
			}
		}
		for _, x := range v.Items {
			collect(x)
		}
	}
	collect(root)
	for _, r := range rows() {
		if applies(r, names) {
			out = append(out, r)
		}
	}
	return out
}

// applies tells whether a row concerns a configuration that has names. Left out are rows of what is refused, of what is set by runtime
// (it is not in the file's words), of flags and of pages of the admin interface, and those of the wire: what peers may send says
// nothing about a file, and would stand behind each one.
func applies(r Difference, names map[string]bool) bool {
	for _, start := range []string{"runtime", "HTTP/1:", "`-", "`/"} {
		if strings.HasPrefix(r.What, start) {
			return false
		}
	}
	if strings.HasPrefix(r.Dragoman, "refused") {
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
func concerns(quoted string, names map[string]bool) bool {
	if strings.HasPrefix(quoted, "-") || strings.HasPrefix(quoted, "/") {
		return false // a flag, or a path of the admin interface
	}
	found := false
	for _, w := range words(quoted) {
		if len(w) < shortestName {
			continue
		}
		if !names[w] {
			return false
		}
		found = true
	}
	return found
}

// words are the names in a text.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}
