package header_to_metadata //nolint:revive // Envoy's name

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxDepth is how deep the messages of a value may lie in each other, protobuf's own limit in C++.
const maxDepth = 100

var lenient = base64.RawStdEncoding.Strict()

// decode decodes base64 (RFC 4648, section 4) with or without its padding. "" is what cannot be decoded.
func decode(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return ""
	}
	for range 2 {
		s = strings.TrimSuffix(s, "=")
	}
	b, err := lenient.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(b)
}

// valueType is what a value is read as, in Envoy's order.
type valueType int32

const (
	text valueType = iota
	numeric
	message // a serialized google.protobuf.Value
)

// parse makes a value of a type. ok is false if it is none.
func parse(t valueType, s string) (v any, ok bool) {
	switch t {
	case numeric:
		return number(s)
	case message:
		var p structpb.Value
		if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal([]byte(s), &p); err != nil {
			return nil, false
		}
		return p.AsInterface(), true
	}
	return s, true
}

// number reads a number as C does: decimal or hexadecimal, with blanks around it; what is too large is infinite.
func number(s string) (any, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if strings.IndexByte(s, '_') >= 0 {
		return nil, false
	}
	if low := strings.ToLower(s); strings.Contains(low, "0x") && !strings.Contains(low, "p") {
		s += "p0" // Go wants an exponent there
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, false
	}
	return f, true
}
