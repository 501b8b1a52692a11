package config

import (
	"fmt"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// Error is one thing that is wrong in a configuration. All fields but Msg may be empty: a resource that came over xDS
// has a Path and no File.
type Error struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
	// Path is the full field path in proto names, e.g. static_resources.clusters[3].lb_policy. It runs through Any
	// payloads without a mark: ...filters[0].typed_config.stat_prefix.
	Path string `json:"path,omitempty"`
	// Kind says what sort of mistake it is; "" until Classify.
	Kind Kind `json:"kind"`
	// Msg says what is wrong. It holds the key phrase that Envoy prints for the same mistake.
	Msg string `json:"message"`
	// Found is the offending value as it was written, shortened.
	Found string `json:"found,omitempty"`
	// Allowed says what may stand there.
	Allowed string `json:"allowed,omitempty"`
	// Suggestion is the nearest valid name, or the value as it would be right.
	Suggestion string `json:"suggestion,omitempty"`
	// Advice says what to do where that is more than another name.
	Advice string `json:"advice,omitempty"`
	// Elsewhere is the path of the message around or below that has the unknown field: the indent may be wrong. "." is the root.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Extension is the message type or the name of an extension of Envoy that this build does not have.
	Extension string `json:"extension,omitempty"`
	// Within are the message types of further extensions that this build does not have and that stand at or below Path, where nobody has
	// looked at them: separated by ", ".
	Within string `json:"within,omitempty"`
	// NoCluster is the cluster that there is not, where naming it is the mistake.
	NoCluster string `json:"-"`
	// NoNode: the mistake is that the proxy does not say who it is.
	NoNode bool `json:"-"`
	// Also counts the further paths at which the same mistake shows: it stands in a YAML anchor that is used there, too.
	Also int `json:"also,omitempty"`
}

// Error prints "file:line:col: path: message; found F; allowed: A; did you mean 'S'? (ADVICE); E has that field: ...".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(yamlpos.Pos{File: e.File, Line: e.Line, Col: e.Col}.String())
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(strings.ReplaceAll(e.Msg, "\n", `\n`))                            // of a value that it quotes
	if e.Found != "" && !(e.Found[0] == '\'' && strings.Contains(e.Msg, e.Found)) { // not what the message has quoted already
		b.WriteString("; found ")
		b.WriteString(e.Found)
	}
	if e.Within != "" {
		b.WriteString("; extensions there that this build does not have: ")
		b.WriteString(e.Within)
	}
	if e.Allowed != "" {
		b.WriteString("; allowed: ")
		b.WriteString(e.Allowed)
	}
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean '%s'?", e.Suggestion)
	}
	switch {
	case e.Advice == "":
	case e.Suggestion != "":
		b.WriteString(" (" + e.Advice + ")")
	default:
		b.WriteString("; " + e.Advice)
	}
	if e.Also > 0 {
		fmt.Fprintf(&b, "; so in %d places", 1+e.Also)
	}
	switch e.Elsewhere {
	case "":
	case ".":
		b.WriteString("; the top of the file has that field: is the indent wrong?")
	default:
		fmt.Fprintf(&b, "; %s has that field: is the indent wrong?", e.Elsewhere)
	}
	return b.String()
}

// Errors are all errors of one load, in the order in which they stand in the file. It is an error itself.
type Errors struct {
	List []*Error
	// More counts the errors beyond the limit, which are not in List.
	More int

	given int // reported before, elsewhere: they count for the limit
}

// DefaultMaxErrors is how many errors a load reports before it only counts.
const DefaultMaxErrors = 100

// Error prints one error a line.
func (e *Errors) Error() string {
	var b strings.Builder
	for i, x := range e.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(x.Error())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more errors", e.More)
	}
	return b.String()
}

// Unwrap lets errors.As find each *Error.
func (e *Errors) Unwrap() []error {
	list := make([]error, len(e.List))
	for i, x := range e.List {
		list[i] = x
	}
	return list
}

// Add appends x, or counts it when limit errors are there already.
func (e *Errors) Add(x *Error, limit int) {
	if e.full(limit) {
		e.More++
		return
	}
	e.List = append(e.List, x)
}

// full tells that a further error is only counted, so that nobody need work out what it says.
func (e *Errors) full(limit int) bool { return len(e.List)+e.given >= limit }

// Len counts all errors, those beyond the limit too.
func (e *Errors) Len() int { return len(e.List) + e.More }

// Err returns e as an error, nil if there is none.
func (e *Errors) Err() error {
	if e.Len() == 0 {
		return nil
	}
	return e
}
