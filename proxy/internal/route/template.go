package route

import (
	"fmt"
	"regexp"
	"strings"
)

// template is a uri_template, "/a/{x}/*/**", as the regular expression that Envoy makes of it.
type template struct {
	re   *regexp.Regexp
	vars map[string]int // to groups of re
}

func (t *template) match(path string) bool { return t.re.MatchString(path) }

// rewriteTemplate is a path_template_rewrite: literals and variables of the template that matched.
type rewriteTemplate struct {
	t     *template
	parts []rewritePart
}

type rewritePart struct {
	text  string
	group int // 0: text
}

func (r *rewriteTemplate) apply(path string) string {
	m := r.t.re.FindStringSubmatch(path)
	if m == nil {
		return path
	}
	var b strings.Builder
	for _, p := range r.parts {
		if p.group > 0 {
			b.WriteString(m[p.group])
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// The limits of a template.
const (
	maxTemplateVars    = 5
	maxTemplateVarName = 16
)

// The characters of a path, and what the operators stand for.
const (
	templateChars = `a-zA-Z0-9\-._~%!$&'()+,;:@=`
	templateStar  = "[" + templateChars + "]+"
	templateGlob  = "[" + templateChars + "/]*"
)

// templateParser reads a template: segments of a literal, "*", "**" or a variable "{name}", "{name=segments}"; "**" comes last, and only
// a literal may follow it.
type templateParser struct {
	out    strings.Builder
	vars   map[string]int
	groups int
	glob   bool
}

func parseTemplate(s string) (*template, error) {
	bad := func(why string) error {
		return fmt.Errorf("path_match_policy.path_template %s is invalid: %s", s, why)
	}
	if !strings.HasPrefix(s, "/") {
		return nil, bad("Invalid pattern: it must begin with a slash")
	}
	p := &templateParser{vars: map[string]int{}}
	for rest := s; rest != ""; {
		if rest[0] != '/' {
			return nil, bad("a segment must begin with a slash")
		}
		p.out.WriteByte('/')
		var err error
		if rest, err = p.segment(rest[1:], true); err != nil {
			return nil, bad(err.Error())
		}
	}
	re, err := CompileRegex(p.out.String(), true)
	if err != nil {
		return nil, bad(err.Error())
	}
	return &template{re: re, vars: p.vars}, nil
}

// segment reads one segment and what follows it up to the next slash, and returns the rest.
func (p *templateParser) segment(s string, variables bool) (rest string, err error) {
	if p.glob {
		return "", fmt.Errorf("** must be the last operator")
	}
	switch {
	case strings.HasPrefix(s, "**"):
		p.glob = true
		p.out.WriteString(templateGlob)
		s = s[2:]
	case strings.HasPrefix(s, "*"):
		p.out.WriteString(templateStar)
		s = s[1:]
	case strings.HasPrefix(s, "{"):
		if !variables {
			return "", fmt.Errorf("a variable is within another")
		}
		if s, err = p.variable(s[1:]); err != nil {
			return "", err
		}
	default:
		return p.literal(s)
	}
	if s == "" || s[0] == '/' || !variables {
		return s, nil
	}
	// What is left may only be a literal at the very end.
	if s, err = p.literal(s); err == nil && s != "" {
		err = fmt.Errorf("text after an operator must be at the end")
	}
	return s, err
}

func (p *templateParser) literal(s string) (string, error) {
	n := 0
	for n < len(s) && s[n] != '/' && s[n] != '}' {
		if !strings.ContainsRune("-._~%!$&'()+,;:@=", rune(s[n])) && !alnum(s[n]) {
			return "", fmt.Errorf("character %q", s[n])
		}
		n++
	}
	if n == 0 {
		return "", fmt.Errorf("a segment is empty")
	}
	p.out.WriteString(regexp.QuoteMeta(s[:n]))
	return s[n:], nil
}

func (p *templateParser) variable(s string) (string, error) {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return "", fmt.Errorf("a brace is not closed")
	}
	name, pattern, has := strings.Cut(s[:end], "=")
	switch _, dup := p.vars[name]; {
	case dup:
		return "", fmt.Errorf("Repeated variable name: %q", name) //nolint:staticcheck // Envoy's text
	case len(p.vars) == maxTemplateVars:
		return "", fmt.Errorf("more than %d variables", maxTemplateVars)
	case !validVar(name):
		return "", fmt.Errorf("variable name %q", name)
	}
	p.groups++
	p.vars[name] = p.groups
	p.out.WriteByte('(')
	if !has {
		p.out.WriteString(templateStar)
	} else if pattern == "" {
		return "", fmt.Errorf("variable %s has an empty pattern", name)
	}
	for pattern != "" {
		rest, err := p.segment(pattern, false)
		if err != nil {
			return "", err
		}
		if rest != "" {
			if rest[0] != '/' {
				return "", fmt.Errorf("variable %s has an invalid pattern", name)
			}
			p.out.WriteByte('/')
			if rest = rest[1:]; rest == "" {
				return "", fmt.Errorf("a segment is empty")
			}
		}
		pattern = rest
	}
	p.out.WriteByte(')')
	return s[end+1:], nil
}

func validVar(name string) bool {
	if name == "" || len(name) > maxTemplateVarName {
		return false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; !alnum(c) && c != '_' || i == 0 && (c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// parseRewrite reads a rewrite of what t matches: "/new/{name}/x".
func parseRewrite(s string, t *template) (*rewriteTemplate, error) {
	bad := func(why string) error {
		return fmt.Errorf("path_rewrite_policy.path_template_rewrite %s is invalid: %s", s, why)
	}
	if !strings.HasPrefix(s, "/") {
		return nil, bad("it must begin with a slash")
	}
	r := &rewriteTemplate{t: t}
	for s != "" {
		text, rest, found := strings.Cut(s, "{")
		if strings.ContainsAny(text, "}*") {
			return nil, bad("unexpected character")
		}
		if text != "" {
			r.parts = append(r.parts, rewritePart{text: text})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		g := t.vars[name]
		if !closed || g == 0 {
			return nil, bad("path_match_policy has no variable " + name)
		}
		r.parts = append(r.parts, rewritePart{group: g})
		s = after
	}
	return r, nil
}
