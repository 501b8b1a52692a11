package format

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// noCommand is the error for a percent sign at pos of s that begins no command, in Envoy's words; why it does not is said besides.
func noCommand(s string, pos int) *config.Error {
	x := &config.Error{Msg: fmt.Sprintf("Incorrect configuration: %s. Couldn't find valid command at position %d", s, pos)}
	rest := s[pos+1:]
	name := rest[:len(rest)-len(strings.TrimLeft(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))]
	after := rest[len(name):]
	word := rest[:len(rest)-len(strings.TrimLeft(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_abcdefghijklmnopqrstuvwxyz"))]
	_, known := commands[strings.ToUpper(word)]
	switch {
	case name == "" && word == "":
		x.Advice = "a literal % is written %%"
	case known && word != name:
		x.Suggestion, x.Advice = "%"+strings.ToUpper(word), "operators are in capitals"
	case name == "" || !known && !strings.HasPrefix(after, "(") && !strings.HasPrefix(after, ":"):
		x.Advice = "a literal % is written %%"
	case strings.HasPrefix(after, "(") && !strings.Contains(line(after), ")"):
		x.Advice = "the parenthesis after %" + name + " is not closed in its line"
	case strings.HasPrefix(after, "("), strings.HasPrefix(after, ":"):
		x.Advice = "what follows %" + name + " is (parameters), then :length with a number if any, then the % that ends it"
	default:
		x.Advice = "the % that ends %" + name + " is missing"
	}
	return x
}

// line is the first line of s.
func line(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// ofExtension are operators that a format has if it names the extension that brings them.
var ofExtension = map[string]string{"REQ_WITHOUT_QUERY": "envoy.formatter.req_without_query", "CEL": "envoy.formatter.cel"}

// noOperator is the error for the name of an operator which there is not.
func noOperator(name string, withParams bool) *config.Error {
	x := &config.Error{Msg: "Not supported field in StreamInfo: " + name}
	if by := ofExtension[name]; by != "" {
		x.Advice = "it needs " + by + " among the formatters"
		return x
	}
	x.Suggestion = meant(name, withParams)
	return x
}

// meant is the operator that a name which there is not was to be, "" if there is none like it. One that takes parameters may be longer
// than its name here: REQUEST(:path).
func meant(name string, withParams bool) string {
	if withParams {
		for _, n := range slices.Sorted(maps.Keys(commands)) {
			if strings.HasPrefix(name, n) && !strings.HasPrefix(name, n+"_") && commands[n].syntax&(params|required) != 0 {
				return n
			}
		}
	}
	return config.Nearest(name, slices.Collect(maps.Keys(commands)))
}
