package yamlpos

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// yamlError gives an error of the YAML library a position. The library tells a line, for errors of its parser one that
// counts from 0, and no column: the column is guessed from what the message is about.
func yamlError(file string, src []byte, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if num, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(num); err == nil {
				line, msg = n, text
			}
		}
		if fromParser(msg) {
			line++
		}
	}
	pos := Pos{File: file, Line: line, Col: 1}
	if name, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		if off := findAlias(src, name); off >= 0 {
			return &SyntaxError{Pos: placeOf(file, src, off), Msg: "invalid YAML: " + msg}
		}
	}
	if strings.HasPrefix(msg, "did not find expected ") && strings.Contains(msg, "',' or ") {
		if off, ref, ok := unquotedVariable(src, err.Error()); ok {
			return &SyntaxError{Pos: placeOf(file, src, off), Msg: "invalid YAML: " + msg + ": " + ref + " needs quotes within {...} and [...]: '" + ref + "'"}
		}
	}
	if brokenBlock(msg) {
		if l, col, why, ok := blockError(src, line, msg); ok {
			return &SyntaxError{Pos: Pos{File: file, Line: l, Col: col}, Msg: "invalid YAML: " + msg + ": " + why}
		}
	}
	lines := lineStarts(src)
	if strings.Contains(msg, "mapping values are not allowed") {
		if l, col, n := quoteAbove(src, lines, line); l > 0 {
			return &SyntaxError{Pos: Pos{File: file, Line: l, Col: col}, Msg: "invalid YAML: " + msg + ": " + closedIn(n)}
		}
	}
	if line <= len(lines) {
		text := src[lines[line-1]:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[:i]
		}
		if strings.Contains(msg, "found a tab character") { // the library tells the line before
			line, text = tabbed(src, lines, line, text)
			pos.Line = line
		}
		at := guessColumn(msg, text)
		pos.Col = 1 + utf8.RuneCount(text[:at])
		if what := remedy(msg, text, at); what != "" {
			msg += ": " + what
		}
		if at < len(text) && strings.HasSuffix(msg, "cannot start any token") {
			msg += ": " + unfit(text[at])
		}
		if strings.HasSuffix(msg, "alphabetic or numeric character") && at < len(text) && (text[at] == '*' || text[at] == '&') {
			msg += ": '" + string(text[at]) + "' begins the name of an anchor; a text that begins so needs quotes"
		}
	}
	return &SyntaxError{Pos: pos, Msg: "invalid YAML: " + msg}
}

// remedy says what to do about an error of which the message alone says little; at is where in text it is.
func remedy(msg string, text []byte, at int) string {
	switch {
	case strings.Contains(msg, "mapping values are not allowed"):
		if bytes.Count(text, []byte(": ")) > 1 || bytes.Count(text, []byte(":")) > 1 && bytes.HasSuffix(bytes.TrimRight(text, " \r"), []byte(":")) {
			return "a text with ': ' in it needs quotes"
		}
		return "the line above has a value, so that no key can stand below it: is the indent wrong?"
	case strings.HasSuffix(msg, "could not find expected ':'"):
		return "a key ends with ': ', a colon and a space"
	case strings.Contains(msg, "found a tab character"):
		return "only spaces indent"
	case strings.Contains(msg, "unexpected end of stream") && at < len(text) && (text[at] == '"' || text[at] == '\''):
		return "the quote that opens here is not closed"
	}
	return ""
}

// tabbed is the first line from the given one on that has a tab in its indent.
func tabbed(src []byte, lines []uint32, from int, text []byte) (int, []byte) {
	for n := from; n <= len(lines) && n < from+100; n++ {
		if l := lineAt(src, lines, n); bytes.IndexByte(l[:len(l)-len(bytes.TrimLeft(l, " \t"))], '\t') >= 0 {
			return n, l
		}
	}
	return from, text
}

// unfit names a character that no value may begin with, and says what may stand there.
func unfit(c byte) string {
	switch c {
	case '\t':
		return "a tab; only spaces indent"
	case '@', '`', '%':
		return "'" + string(c) + "'; a text that begins so needs quotes"
	}
	return strconv.QuoteRune(rune(c))
}

func fromParser(msg string) bool {
	what, ok := strings.CutPrefix(msg, "did not find expected ")
	if !ok {
		return strings.HasPrefix(msg, "found undefined tag") || strings.HasPrefix(msg, "found duplicate %")
	}
	switch what {
	case "<document start>", "',' or ']'", "',' or '}'", "key", "'-' indicator", "node content":
		return true
	}
	return false
}

// guessColumn returns the offset in line of what msg complains about, or of the first character.
func guessColumn(msg string, line []byte) int {
	first := len(line) - len(bytes.TrimLeft(line, " "))
	marks := ""
	switch {
	case strings.Contains(msg, "mapping values are not allowed"):
		i := bytes.Index(line, []byte(": "))
		if i < 0 {
			return max(first, bytes.LastIndexByte(line, ':'))
		}
		if j := bytes.Index(line[i+1:], []byte(": ")); j >= 0 {
			return i + 1 + j
		}
		return i
	case strings.HasSuffix(msg, "node content"):
		for _, wrong := range []string{"[}", "{]", ": ]", ", ,"} {
			if i := bytes.Index(line, []byte(wrong)); i >= 0 {
				return i + len(wrong) - 1
			}
		}
	case strings.HasSuffix(msg, "',' or ']'"):
		marks = "["
	case strings.HasSuffix(msg, "',' or '}'"):
		marks = "{"
	case strings.HasSuffix(msg, "alphabetic or numeric character"):
		marks = "*&"
	case strings.Contains(msg, "found a tab character"):
		marks = "\t"
	case strings.Contains(msg, "cannot start any token"):
		marks = "@`\t%"
	case strings.Contains(msg, "unexpected end of stream"):
		marks = "\"'"
	}
	if i := bytes.IndexAny(line, marks); i >= 0 {
		return i
	}
	return first
}

// findAlias returns where *name stands, -1 if it does not.
func findAlias(src []byte, name string) int {
	for off := 0; ; {
		i := bytes.Index(src[off:], []byte("*"+name))
		if i < 0 {
			return -1
		}
		off += i
		if end := off + 1 + len(name); end == len(src) || bytes.IndexByte([]byte(" \t\r\n,]}"), src[end]) >= 0 {
			return off
		}
		off++
	}
}
