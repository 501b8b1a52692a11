package config

import (
	"bytes"
	"encoding/json"
	"fmt"

	_ "github.com/cncf/xds/go/udpa/type/v1" // the two TypedStructs must be known to be read
	_ "github.com/cncf/xds/go/xds/type/v3"
	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// typedStruct is xds.type.v3.TypedStruct and its older twin of udpa.
type typedStruct interface {
	GetTypeUrl() string
	GetValue() *structpb.Struct
}

// fromTypedStruct converts the Struct inside to the message that it names.
func fromTypedStruct(m proto.Message, r Resolver) (proto.Message, error) {
	ts, ok := m.(typedStruct)
	if !ok {
		return nil, errNoType
	}
	mt, err := r.FindMessageByURL(withHost(ts.GetTypeUrl()))
	if err != nil {
		x := unknownType(r, ts.GetTypeUrl())
		x.Msg = "Didn't find a registered implementation with type URL: '" + typeName(ts.GetTypeUrl()) + "': " + x.Msg
		return nil, &x
	}
	msg := mt.New().Interface()
	if err := fromStruct(ts.GetValue(), msg, r); err != nil {
		return nil, err
	}
	return msg, nil
}

// fromStruct reads a message from its JSON form in a Struct.
func fromStruct(s *structpb.Struct, msg proto.Message, r Resolver) error {
	text, err := json.Marshal(s.AsMap())
	if err != nil {
		return fmt.Errorf("cannot read a Struct: %w", err)
	}
	t, err := yamlpos.ParseJSON("", bytes.TrimSpace(text))
	if err != nil {
		return err
	}
	opts := &Options{Resolver: r, SkipValidation: true}
	e := newEncoder(t, newSchema(), opts)
	e.body(t.Root(), e.schema.message(msg.ProtoReflect().Descriptor()))
	if err := e.errs.Err(); err != nil {
		for _, x := range e.errs.List { // places in the JSON made here mean nothing
			x.Line, x.Col = 0, 0
		}
		return err
	}
	return proto.Unmarshal(e.buf, msg)
}
