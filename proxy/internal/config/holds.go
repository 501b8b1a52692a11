package config

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Holds tells whether an Any configures an extension by a message of m's type: as it is, or as a TypedStruct that names it. The type
// URL of an Any alone does not say it.
func Holds(a *anypb.Any, m proto.Message) bool {
	return typeName(PayloadURL(a)) == string(m.ProtoReflect().Descriptor().FullName())
}

// Into reads the message that an Any holds into m, which is of its type; a TypedStruct is converted.
func Into(a *anypb.Any, m proto.Message) error {
	if !isTypedStruct(typeName(a.GetTypeUrl())) || !Holds(a, m) {
		return a.UnmarshalTo(m)
	}
	ts, err := a.UnmarshalNew()
	if err != nil {
		return err
	}
	proto.Reset(m)
	return fromStruct(ts.(typedStruct).GetValue(), m, orGlobal(nil))
}
