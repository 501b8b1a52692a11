package route

import "strings"

// template is a uri_template: "/a/{x}/*/**", with the variables of its rewrite.
type template struct {
	segs    []segment
	rewrite string
}

type segment struct {
	text string // literal, or "*", "**"
	name string
}

func (t *template) match(path string) bool { return t.find(path, nil) }

// find matches path; vars, if not nil, gets the variables' values.
func (t *template) find(path string, vars map[string]string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	parts := strings.Split(path[1:], "/")
	for i := range t.segs {
		s := &t.segs[i]
		if s.text == "**" {
			if vars != nil && s.name != "" {
				vars[s.name] = strings.Join(parts[min(i, len(parts)):], "/")
			}
			return i == len(t.segs)-1
		}
		if i >= len(parts) || s.text != "*" && s.text != parts[i] || s.text == "*" && parts[i] == "" {
			return false
		}
		if vars != nil && s.name != "" {
			vars[s.name] = parts[i]
		}
	}
	return len(parts) == len(t.segs)
}

func (t *template) apply(path string) string {
	vars := map[string]string{}
	if !t.find(path, vars) {
		return path
	}
	out := t.rewrite
	for k, v := range vars {
		out = strings.ReplaceAll(out, "{"+k+"}", v)
	}
	return out
}
