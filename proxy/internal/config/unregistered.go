package config

import (
	"strings"

	"google.golang.org/protobuf/types/known/anypb"
)

// Unregistered is the error about an extension that there is not, in Envoy's words. a is what configures it.
func Unregistered(name string, a *anypb.Any) *Error {
	url := PayloadURL(a)
	x := &Error{Msg: "Didn't find a registered implementation for '" + name + "' with type URL: '" + typeName(url) + "'"}
	if a.GetTypeUrl() == "" {
		x.Allowed = "a name together with a typed_config, whose @type says what it is"
	} else if _, err := orGlobal(nil).FindMessageByURL(url); err != nil { // of a TypedStruct: that of another Any is known, or refused before
		near := unknownType(orGlobal(nil), url)
		x.Suggestion, x.Advice = near.Suggestion, near.Advice
	}
	return x
}

// Misplaced completes the error about an extension that there is, but not at this place: there is no need to wait for it.
func (e *Error) Misplaced(is, belongs string) *Error {
	e.Kind, e.Advice = Invalid, "this is "+is+", which belongs into "+belongs
	return e
}

// Typed completes the error about an extension that has a name and no typed_config: message is what configures it.
func (e *Error) Typed(message string) *Error {
	e.Suggestion, e.Allowed = `typed_config: {"@type": `+typePrefix+message+"}", ""
	return e
}

// SameExtension tells whether a name that people give to an extension means the one with the name known: envoy.router, router.
func SameExtension(name, known string) bool {
	return name != "" && lastWord(name) == lastWord(known)
}

func lastWord(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Known tells whether Envoy has the extension that e is about.
func (e *Error) Known() bool {
	e.Classify()
	return e.Kind == Unsupported
}
