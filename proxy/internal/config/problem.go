package config

import (
	"errors"
	"slices"
	"strings"
)

// Kind sorts the problems of a configuration for programs that read them.
type Kind string

// The kinds.
const (
	// Unreadable: the file is not there, or is no YAML, JSON or protobuf.
	Unreadable Kind = "syntax"
	// UnknownField: a message has no field of that name.
	UnknownField Kind = "unknown_field"
	// UnknownType: @type names no message of the API.
	UnknownType Kind = "unknown_type"
	// WrongType: a value is not of its field's type, or not one of its enum's.
	WrongType Kind = "wrong_type"
	// BrokenRule: a field rule of the API does not hold: a range, a length, a field that is required.
	BrokenRule Kind = "rule"
	// Invalid: what is written means nothing together with the rest: a cluster that there is not, a name that was given twice, a
	// certificate that is none.
	Invalid Kind = "invalid"
	// NotHere: it may be right, and this machine lacks what it names: a file, a folder, an environment variable, or the right to it.
	NotHere Kind = "machine"
	// Unsupported: Envoy has it, and this build does not.
	Unsupported Kind = "unsupported"
	// Deprecated: a field that Envoy is to lose. This is a note, not an error.
	Deprecated Kind = "deprecated"
	// Doubtful: Envoy takes it, and nobody means it: a route that no request reaches. This is a note, too.
	Doubtful Kind = "doubtful"
)

// Classify completes what those who made e left open: its kind, and for what this build does not have the extension that is missing.
func (e *Error) Classify() {
	const phrase, url = "Didn't find a registered implementation for '", "' with type URL: '"
	if _, rest, ok := strings.Cut(e.Msg, phrase); ok && e.Extension == "" && e.Kind != Invalid {
		name, rest, _ := strings.Cut(rest, url)
		typ, _, _ := strings.Cut(rest, "'")
		if OfEnvoy(typ) {
			e.Extension, e.Kind = typ, Unsupported
		} else if e.Kind == "" && name != "" {
			e.Kind = UnknownType
		}
	}
	switch {
	case e.Kind != "":
	case strings.Contains(e.Msg, "not supported"), strings.Contains(e.Msg, "supported yet"):
		e.Kind = Unsupported
	default:
		e.Kind = Invalid
	}
}

// List returns all problems that err holds, classified; one that is none of this package's is one without a place.
func List(err error) []Error {
	var many *Errors
	var one *Error
	var out []Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		for _, x := range many.List {
			out = append(out, *x)
		}
	case errors.As(err, &one):
		out = append(out, *one)
	default:
		out = append(out, Error{Msg: err.Error()})
	}
	for i := range out {
		out[i].Classify()
	}
	return out
}

// Collect appends what is wrong with the part at path, so that the other parts may be looked at, too. It tells whether that part
// is fine.
func (e *Errors) Collect(path string, err error) bool {
	switch x := At(path, err).(type) {
	case nil:
		return true
	case *Error:
		e.Add(x, maxCollected)
	case *Errors:
		for _, one := range x.List {
			e.Add(one, maxCollected)
		}
		e.More += x.More
	}
	return false
}

// maxCollected bounds the list of one part; what a load reports is bounded by Options.MaxErrors besides.
const maxCollected = 10_000

// after appends the errors of a later check, but for those that only follow from what is in e already.
func (e *Errors) after(later *Errors, limit int) {
	known := e.List
	for _, x := range later.List {
		asked := x.Kind == BrokenRule && len(known) > 0 // what the field rules say of it is known
		if !asked && !x.follows(known) {
			e.Add(x, limit)
		}
	}
	e.More += later.More
}

// CollectBut is Collect without the problems that only follow from those in known.
func (e *Errors) CollectBut(known []*Error, err error) {
	var later Errors
	later.Collect("", err)
	for _, x := range later.List {
		if !x.follows(known) {
			e.Add(x, maxCollected)
		}
	}
	e.More += later.More
}

// follows tells whether e only follows from a mistake in known: at the same place, around it or below it. What is not supported is so
// whatever is wrong below it.
func (e *Error) follows(known []*Error) bool {
	if e.Classify(); e.Kind != Unsupported {
		return about(known, e.Path) || slices.ContainsFunc(known, func(x *Error) bool { return x.typeOfCluster(e.Path) })
	}
	return slices.ContainsFunc(known, func(x *Error) bool { return within(e.Path, x.Path) })
}

// typeOfCluster tells whether e is about the type of the cluster whose endpoints are at path: what is allowed of them is not known then.
func (e *Error) typeOfCluster(path string) bool {
	i := strings.LastIndexByte(e.Path, '.')
	if i < 0 || e.Path[i+1:] != "type" && e.Suggestion != "type" {
		return false
	}
	return within(path, join(e.Path[:i], "load_assignment"))
}

// about tells whether a problem at path is already spoken of by one of list: at the same field, around it, or within it. What
// follows from a mistake is no mistake of its own.
func about(list []*Error, path string) bool {
	for _, x := range list {
		if within(x.Path, path) || within(path, x.Path) {
			return true
		}
		if x.Kind == UnknownField && x.standsFor(path) {
			return true
		}
	}
	return false
}

// standsFor tells whether what should be at path is what has the unknown name: it is misspelt, or at the wrong place, and not missing.
func (e *Error) standsFor(path string) bool {
	parent, key := lastStep(e.Path)
	switch {
	case strings.HasPrefix(e.Suggestion, "{"): // all of the map in another form
		return within(path, parent)
	case e.Suggestion != "":
		return within(path, join(parent, e.Suggestion))
	case e.Elsewhere == ".":
		return within(path, key)
	case e.Elsewhere != "":
		return within(path, join(e.Elsewhere, key)) || within(e.Elsewhere, path) && !within(e.Path, e.Elsewhere)
	}
	return false
}

// mysterious tells whether what is missing at path may be what has a name in the same message that means nothing.
func mysterious(list []*Error, path string) bool {
	parent, _ := lastStep(path)
	return slices.ContainsFunc(list, func(x *Error) bool {
		in, _ := lastStep(x.Path)
		return x.Kind == UnknownField && x.Suggestion == "" && x.Elsewhere == "" && in == parent
	})
}

// lastStep cuts the last field, or the last key in brackets, off a path.
func lastStep(path string) (parent, key string) {
	if strings.HasSuffix(path, `"]`) {
		if i := strings.LastIndex(path, `["`); i >= 0 {
			return path[:i], path[i:]
		}
	}
	i := strings.LastIndexByte(path, '.')
	return path[:max(0, i)], path[i+1:]
}

// within tells whether path is that of a field at or below parent.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Sort puts the errors into the order in which they stand in the file, each once; those without a place stay at the end.
func (e *Errors) Sort() {
	files := map[string]int{"": 1 << 30}
	e.once()
	for _, x := range e.List {
		if _, ok := files[x.File]; !ok {
			files[x.File] = len(files)
		}
	}
	slices.SortStableFunc(e.List, func(a, b *Error) int {
		if d := files[a.File] - files[b.File]; d != 0 {
			return d
		}
		if d := a.Line - b.Line; d != 0 {
			return d
		}
		return a.Col - b.Col
	})
}

// once leaves of equal errors the first. Those that are equal but for their paths, at the same place and about the same field, are one
// mistake in a YAML anchor: the first counts them.
func (e *Errors) once() {
	told := map[Error]bool{}
	anchors := map[Error]*Error{}
	e.List = slices.DeleteFunc(e.List, func(x *Error) bool {
		x.Classify() // one check may have left open what the other says
		if told[*x] {
			return true
		}
		told[*x] = true
		if x.Line == 0 || x.Path == "" {
			return false
		}
		key := *x
		key.Path, key.Also = x.Path[strings.LastIndexByte(x.Path, '.')+1:], 0
		if first := anchors[key]; first != nil {
			first.Also += 1 + x.Also
			return true
		}
		anchors[key] = x
		return false
	})
}

// More returns how many errors err has only counted.
func More(err error) int {
	var many *Errors
	if errors.As(err, &many) {
		return many.More
	}
	return 0
}
