package config

import (
	"errors"
	"strings"
	"syscall"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/internal/gap"
)

// Refuse returns an error that names every field of m which the table has, nil if there is none. The paths are relative to m, or to
// what m is at: below ends with a dot, or is "".
func Refuse(t *gap.Table, m proto.Message, below string) error {
	found := t.Found(m)
	if len(found) == 0 {
		return nil
	}
	errs := &Errors{}
	for _, path := range found {
		path, value, _ := strings.Cut(path, "=")
		errs.Add(&Error{Path: below + path, Kind: Unsupported, Msg: "not supported yet", Found: value}, DefaultMaxErrors)
	}
	if len(errs.List) == 1 {
		return errs.List[0]
	}
	return errs
}

// At gives an error the place that its path is relative to; one that is none of this package's gets the place itself.
func At(path string, err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		x := *e
		x.Path = below(path, x.Path)
		return &x
	case *Errors:
		out := &Errors{More: e.More}
		for _, o := range e.List {
			x := *o
			x.Path = below(path, x.Path)
			out.List = append(out.List, &x)
		}
		return out
	}
	x := &Error{Path: path, Msg: err.Error()}
	var number syscall.Errno
	if errors.As(err, &number) || errors.Is(err, ErrNotHere) {
		x.Kind = NotHere
	}
	return x
}

// ErrNotHere is what an error wraps that comes from this machine without a number of the system, such as a missing environment variable.
var ErrNotHere = errors.New("is not on this machine")

// Lacking returns an error of the text msg that comes from this machine; cause may be nil.
func Lacking(msg string, cause error) error {
	return &lacking{msg, errors.Join(ErrNotHere, cause)}
}

type lacking struct {
	msg   string
	cause error
}

func (e *lacking) Error() string { return e.msg }

func (e *lacking) Unwrap() error { return e.cause }
