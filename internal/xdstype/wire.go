package xdstype

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields calls do for each field of a message: v is the payload of a length-delimited field, n the value of a varint.
// Other wire types, which no field here has, are skipped.
func fields(b []byte, do func(num protowire.Number, v []byte, n uint64) error) error {
	for len(b) > 0 {
		num, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("malformed protobuf: %w", protowire.ParseError(size))
		}
		b = b[size:]
		var v []byte
		var n uint64
		switch typ {
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(b)
		default:
			if size = protowire.ConsumeFieldValue(num, typ, b); size >= 0 {
				b = b[size:]
				continue
			}
		}
		if size < 0 {
			return fmt.Errorf("malformed protobuf: %w", protowire.ParseError(size))
		}
		b = b[size:]
		if v == nil && typ == protowire.BytesType {
			v = []byte{}
		}
		if err := do(num, v, n); err != nil {
			return err
		}
	}
	return nil
}

// text sets *s to v, which must be UTF-8 as protobuf demands of a string.
func text(s *string, v []byte) error {
	if !utf8.Valid(v) {
		return fmt.Errorf("malformed protobuf: a string is not valid UTF-8")
	}
	*s = string(v)
	return nil
}

func appendText(list *[]string, v []byte) error {
	var s string
	err := text(&s, v)
	*list = append(*list, s)
	return err
}

func putString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return putElement(b, num, s)
}

// putElement writes an element of a repeated field, which is there even when it is empty.
func putElement(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func putStrings(b []byte, num protowire.Number, list []string) []byte {
	for _, s := range list {
		b = putElement(b, num, s)
	}
	return b
}

func putBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

func putVarint(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// Any is a google.protobuf.Any.
type Any struct {
	TypeURL string
	Value   []byte
}

func (a *Any) parse(b []byte) error {
	return fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			return text(&a.TypeURL, v)
		case 2:
			a.Value = v
		}
		return nil
	})
}

func (a *Any) append(b []byte) []byte {
	b = putString(b, 1, a.TypeURL)
	if len(a.Value) > 0 {
		b = putBytes(b, 2, a.Value)
	}
	return b
}

// Status is the error of a NACK, a google.rpc.Status without details.
type Status struct {
	Code    int32
	Message string
}

func (s *Status) parse(b []byte) error {
	return fields(b, func(num protowire.Number, v []byte, n uint64) error {
		switch num {
		case 1:
			s.Code = int32(n)
		case 2:
			return text(&s.Message, v)
		}
		return nil
	})
}

func putStatus(b []byte, num protowire.Number, s *Status) []byte {
	if s == nil {
		return b
	}
	return putBytes(b, num, putString(putVarint(nil, 1, uint64(s.Code)), 2, s.Message))
}

func parseStatus(s **Status, v []byte) error {
	*s = &Status{}
	return (*s).parse(v)
}

// parseIdentifier reads the identifier of an envoy.config.core.v3.ControlPlane, or the name of a ResourceName.
func parseIdentifier(s *string, b []byte) error {
	return fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		if num == 1 {
			return text(s, v)
		}
		return nil
	})
}
