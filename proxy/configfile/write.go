package configfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// JSON returns a value as JSON with an indent of two spaces.
func (v *Value) JSON() []byte { return append(v.appendJSON(nil, "\n", false), '\n') }

// compact returns a value as JSON in one line.
func (v *Value) compact() string { return string(v.appendJSON(nil, "", true)) }

// appendJSON writes a value; nl begins a line at the depth of v.
func (v *Value) appendJSON(b []byte, nl string, compact bool) []byte {
	open, end := byte('{'), byte('}')
	switch v.Kind {
	case Null:
		return append(b, "null"...)
	case Bool, Number:
		return append(b, v.Text...)
	case String:
		return appendQuoted(b, v.Text)
	case List:
		open, end = '[', ']'
	}
	b = append(b, open)
	inner := nl + "  "
	for i, x := range v.Items {
		switch {
		case compact && i > 0:
			b = append(b, ',', ' ')
		case i > 0:
			b = append(b, ',')
		}
		if !compact {
			b = append(b, inner...)
		}
		if v.Kind == Map {
			b = append(appendQuoted(b, v.Keys[i]), ':', ' ')
		}
		b = x.appendJSON(b, inner, compact)
	}
	if len(v.Items) > 0 && !compact {
		b = append(b, nl...)
	}
	return append(b, end)
}

// appendQuoted writes a string in double quotes, as JSON and YAML both read it.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085' || r == '\ufeff':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// YAML returns a value as YAML in blocks, with an indent of two spaces and lists that begin under their key, as Envoy's own examples
// have it. Text that Envoy would read as something else (yes, on, 010) is quoted.
func (v *Value) YAML() []byte {
	if v.Kind < Map || len(v.Items) == 0 {
		return append(v.appendScalar(nil, 0), note(v)...)
	}
	return v.appendYAML(nil, 0)
}

func note(v *Value) string {
	if v.Note == "" {
		return "\n"
	}
	return " # " + v.Note + "\n"
}

// appendYAML writes the lines of a map or a list that is not empty; the first one is indented by the caller's.
func (v *Value) appendYAML(b []byte, depth int) []byte {
	for i, x := range v.Items {
		if i > 0 || depth == 0 {
			b = indent(b, depth)
		}
		if v.Kind == List {
			b = append(b, '-', ' ')
			if x.Kind >= Map && len(x.Items) > 0 {
				if x.Note != "" {
					b = append(append(b, note(x)[1:]...), strings.Repeat(" ", depth+2)...)
				}
				b = x.appendYAML(b, depth+2)
				continue
			}
			b = append(x.appendScalar(b, depth+2), note(x)...)
			continue
		}
		b = append(appendPlain(b, v.Keys[i]), ':')
		switch {
		case x.Kind < Map || len(x.Items) == 0:
			b = append(b, ' ')
			b = append(x.appendScalar(b, depth+2), note(x)...)
		case x.Kind == List:
			b = indent(append(b, note(x)...), depth)
			b = x.appendYAML(b, depth)
		default:
			b = indent(append(b, note(x)...), depth+2)
			b = x.appendYAML(b, depth+2)
		}
	}
	return b
}

func indent(b []byte, depth int) []byte {
	for range depth {
		b = append(b, ' ')
	}
	return b
}

// appendScalar writes a scalar, or an empty map or list. depth is the indent of the lines of a text of several.
func (v *Value) appendScalar(b []byte, depth int) []byte {
	switch v.Kind {
	case Null:
		return append(b, "null"...)
	case Map:
		return append(b, "{}"...)
	case List:
		return append(b, "[]"...)
	case String:
		if v.Note == "" && isBlock(v.Text) {
			return appendBlock(b, v.Text, depth)
		}
		return appendPlain(b, v.Text)
	}
	return append(b, v.Text...)
}

// isBlock tells whether a text of several lines can stand as a literal block that reads back as it was.
func isBlock(s string) bool {
	if strings.Count(strings.TrimSuffix(s, "\n"), "\n") == 0 || s[0] == ' ' || s[0] == '\n' || strings.HasSuffix(s, "\n\n") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r)
	}) && !strings.Contains(s, " \n") && !strings.Contains(s, "\t\n")
}

func appendBlock(b []byte, s string, depth int) []byte {
	b = append(b, '|')
	if !strings.HasSuffix(s, "\n") {
		b = append(b, '-')
	}
	for line := range strings.Lines(s) {
		b = append(b, '\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			b = append(indent(b, depth), line...)
		}
	}
	return b
}

// appendPlain writes a string without quotes where that cannot be misread.
func appendPlain(b []byte, s string) []byte {
	if isPlain(s) {
		return append(b, s...)
	}
	return appendQuoted(b, s)
}

// isPlain is strict: what it lets through every reader of YAML takes for the string that it is.
func isPlain(s string) bool {
	if s == "" || !isLetter(s[0]) && s[0] != '/' && !isDuration(s) && !isIPv4(s) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case isLetter(c), c >= '0' && c <= '9', strings.IndexByte("_/.@+-%", c) >= 0:
		case c == ':' && i+1 < len(s) && s[i+1] != ' ':
		case c == ' ' && i+1 < len(s) && s[i+1] != '#' && s[i-1] != ':':
		default:
			return false
		}
	}
	switch strings.ToLower(s) {
	case "y", "yes", "n", "no", "true", "false", "on", "off", "null", "nan", "inf", "infinity":
		return false
	}
	return true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// isDuration knows 5s and 0.25s, which are in every configuration.
func isDuration(s string) bool {
	n, ok := strings.CutSuffix(s, "s")
	if !ok || n == "" || n[0] < '0' || n[0] > '9' {
		return false
	}
	_, err := strconv.ParseFloat(n, 64)
	return err == nil && !strings.ContainsAny(n, "xXpPeE_")
}

// isIPv4 knows four numbers with dots, which no reader takes for a number.
func isIPv4(s string) bool {
	return strings.Count(s, ".") == 3 && strings.Trim(s, "0123456789.") == "" && !strings.Contains(s, "..") && s[0] != '.' && s[len(s)-1] != '.'
}
