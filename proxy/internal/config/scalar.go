package config

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// scalar writes one scalar of f from the node n. A zero of a field that cannot tell zero from absent is left out.
func (e *encoder) scalar(n yamlpos.Node, f *field) {
	switch f.kind {
	case protoreflect.BoolKind:
		if v, ok := e.boolean(n); ok {
			e.varint(f, protowire.EncodeBool(v))
		}
	case protoreflect.EnumKind:
		if v, ok := e.enumNumber(n, f); ok {
			e.varint(f, uint64(int64(v)))
		}
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		if v, ok := e.signed(n, f.kind == protoreflect.Int32Kind); ok {
			e.varint(f, uint64(v))
		}
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		if v, ok := e.signed(n, f.kind == protoreflect.Sint32Kind); ok {
			e.varint(f, protowire.EncodeZigZag(v))
		}
	case protoreflect.Sfixed32Kind, protoreflect.Sfixed64Kind:
		if v, ok := e.signed(n, f.kind == protoreflect.Sfixed32Kind); ok {
			e.fixed(f, uint64(v))
		}
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		if v, ok := e.unsigned(n, f.kind == protoreflect.Uint32Kind); ok {
			e.varint(f, v)
		}
	case protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		if v, ok := e.unsigned(n, f.kind == protoreflect.Fixed32Kind); ok {
			e.fixed(f, v)
		}
	case protoreflect.FloatKind:
		if v, ok := e.float(n, 32); ok {
			e.fixed(f, uint64(math.Float32bits(float32(v))))
		}
	case protoreflect.DoubleKind:
		if v, ok := e.float(n, 64); ok {
			e.fixed(f, math.Float64bits(v))
		}
	case protoreflect.StringKind:
		e.text(n, f)
	case protoreflect.BytesKind:
		e.base64(n, f)
	}
}

func (e *encoder) tag(f *field) {
	if f.packed == nil {
		e.buf = append(e.buf, f.tag...)
	}
}

func (e *encoder) varint(f *field, v uint64) {
	if v == 0 && !f.keep {
		return
	}
	e.tag(f)
	e.buf = protowire.AppendVarint(e.buf, v)
}

func (e *encoder) fixed(f *field, v uint64) {
	if v == 0 && !f.keep {
		return
	}
	e.tag(f)
	if wireType(f.kind) == protowire.Fixed32Type {
		e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(v))
		return
	}
	e.buf = binary.LittleEndian.AppendUint64(e.buf, v)
}

func (e *encoder) text(n yamlpos.Node, f *field) {
	if k := e.tree.Kind(n); k != yamlpos.String {
		x := Error{Msg: "expected '\"', a string", Found: k.String() + " " + e.found(n)}
		if k == yamlpos.Map || k == yamlpos.Seq {
			x.Found, x.Suggestion = k.String(), e.meantText(n, f)
		} else {
			x.Allowed = "the same in quotes"
		}
		e.fail(n, x)
		return
	}
	s := e.tree.Text(n)
	if len(s) == 0 && !f.keep {
		return
	}
	e.buf = append(e.buf, f.tag...)
	e.buf = protowire.AppendVarint(e.buf, uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// meantText is the text that a list or a map was to be, "" if that is not to be known: of one element, of one key, or words that stand
// in one text with commas.
func (e *encoder) meantText(n yamlpos.Node, f *field) string {
	t := e.tree
	const most = 20
	var parts []string
	for c, end := t.First(n), t.End(n); c < end && len(parts) < most; c = t.End(c) {
		if t.Kind(n) == yamlpos.Map && !slices.Contains(textKeys, string(t.Key(c))) {
			return ""
		}
		if t.Kind(c) >= yamlpos.Map || t.Kind(c) == yamlpos.Null {
			return ""
		}
		parts = append(parts, string(t.Text(c)))
	}
	if len(parts) == 1 || len(parts) > 1 && len(parts) < most && t.Kind(n) == yamlpos.Seq && strings.HasPrefix(f.name, "retry_") {
		return shorten(strings.Join(parts, ","))
	}
	return ""
}

// textKeys are keys under which a text stands that is one by itself elsewhere.
var textKeys = []string{"name", "key", "value", "id", "path", "exact", "prefix", "inline_string", "cluster"}

func (e *encoder) boolean(n yamlpos.Node) (v, ok bool) {
	switch t := e.tree; t.Kind(n) {
	case yamlpos.Bool:
		return t.Bool(n), true
	case yamlpos.String:
		switch strings.ToLower(string(t.Text(n))) { // the words that Envoy takes in quotes
		case "true", "t", "yes", "y", "1":
			return true, true
		case "false", "f", "no", "n", "0":
			return false, true
		}
	}
	x := Error{Msg: "expected 'true' or 'false'", Found: e.found(n)}
	if k := e.tree.Kind(n); k == yamlpos.String || k == yamlpos.Number {
		x.Suggestion = meantBool(string(e.tree.Text(n)))
	}
	e.fail(n, x)
	return false, false
}

func (e *encoder) enumNumber(n yamlpos.Node, f *field) (protoreflect.EnumNumber, bool) {
	en := e.schema.enumOf(f)
	switch k := e.tree.Kind(n); k {
	case yamlpos.Null: // only google.protobuf.NullValue comes here with a null
		return 0, true
	case yamlpos.Number:
		v, ok := e.signed(n, true)
		return protoreflect.EnumNumber(v), ok
	case yamlpos.String:
		text := e.tree.Text(n)
		if v, ok := en.number(text); ok {
			return v, true
		}
		if v, err := strconv.ParseInt(string(text), 10, 32); err == nil {
			return protoreflect.EnumNumber(v), true
		}
		names := en.names()
		e.unknown(n, e.tree.Pos, Error{
			Msg:        "unknown enum value: '" + shorten(string(text)) + "': enum " + string(en.desc.FullName()) + " has no such value",
			Allowed:    someOf(names, 20),
			Suggestion: meantEnum(string(text), names),
		})
		return 0, false
	}
	e.fail(n, Error{Msg: "expected number or string, a value of " + string(en.desc.FullName()), Found: e.found(n), Allowed: someOf(en.names(), 20)})
	return 0, false
}

// signed reads an integer of 64 bits, or of 32 if narrow.
func (e *encoder) signed(n yamlpos.Node, narrow bool) (int64, bool) {
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	if narrow {
		lo, hi = math.MinInt32, math.MaxInt32
	}
	neg, mag, problem := e.integer(n)
	if problem == "" {
		switch {
		case !neg && mag <= uint64(hi):
			return int64(mag), true
		case neg && mag <= -uint64(lo):
			return -int64(mag), true
		}
		problem = "integer out of range"
	}
	e.fail(n, Error{Msg: problem, Found: e.found(n), Allowed: e.allowedInteger(strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10)), Suggestion: e.meantInteger(n)})
	return 0, false
}

// unsigned reads an integer of 64 bits, or of 32 if narrow.
func (e *encoder) unsigned(n yamlpos.Node, narrow bool) (uint64, bool) {
	hi := uint64(math.MaxUint64)
	if narrow {
		hi = math.MaxUint32
	}
	neg, mag, problem := e.integer(n)
	if problem == "" {
		if mag <= hi && (!neg || mag == 0) {
			return mag, true
		}
		problem = "integer out of range"
	}
	e.fail(n, Error{Msg: problem, Found: e.found(n), Allowed: e.allowedInteger("0", strconv.FormatUint(hi, 10)), Suggestion: e.meantInteger(n)})
	return 0, false
}

// integer reads the sign and the size of a number or of a string that holds one; problem says why it is none.
func (e *encoder) integer(n yamlpos.Node) (neg bool, mag uint64, problem string) {
	k := e.tree.Kind(n)
	if k != yamlpos.Number && k != yamlpos.String {
		return false, 0, "expected number or string"
	}
	text := e.tree.Text(n)
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		neg, digits = true, digits[1:]
	}
	if len(digits) > 0 && len(digits) < 20 {
		for _, c := range digits {
			if c < '0' || c > '9' {
				return integerSlow(string(text))
			}
			mag = mag*10 + uint64(c-'0')
		}
		return neg, mag, ""
	}
	return integerSlow(string(text))
}

// integerSlow takes what C++ protobuf takes too: 1.0, 1e3 and, in a string, 0x10; a fraction that is not zero is refused.
func integerSlow(text string) (neg bool, mag uint64, problem string) {
	digits, neg := strings.CutPrefix(text, "-")
	if v, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return neg, v, ""
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		if v, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return neg, v, ""
		}
	}
	v, err := parseFloat(digits, 64)
	switch {
	case err != nil && !math.IsInf(v, 0):
		return false, 0, "invalid number: '" + shorten(text) + "'"
	case math.IsNaN(v) || v >= 1<<64:
		return false, 0, "integer out of range"
	case v != math.Trunc(v):
		return false, 0, "expected integer, but JSON number had fractional part"
	}
	return neg, uint64(v), ""
}

// float reads a number, a string that holds one, or the words NaN, Infinity, -Infinity.
func (e *encoder) float(n yamlpos.Node, bits int) (float64, bool) {
	k := e.tree.Kind(n)
	if k != yamlpos.Number && k != yamlpos.String {
		e.fail(n, Error{Msg: "expected number or string", Found: e.found(n), Allowed: e.allowedNumber()})
		return 0, false
	}
	text := string(e.tree.Text(n))
	switch text {
	case "NaN":
		return math.NaN(), true
	case "Infinity", "inf":
		return math.Inf(1), true
	case "-Infinity", "-inf":
		return math.Inf(-1), true
	}
	v, err := parseFloat(text, bits)
	if err != nil && !(k == yamlpos.String && math.IsInf(v, 0)) { // a quoted number may overflow
		e.fail(n, Error{Msg: "invalid number: '" + shorten(text) + "'", Allowed: e.allowedNumber()})
		return 0, false
	}
	return v, true
}

// parseFloat is strconv's without the words, hexadecimal and underscores that it also takes.
func parseFloat(s string, bits int) (float64, error) {
	if i := strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && r != '.' && r != '-' && r != '+' && r != 'e' && r != 'E'
	}); i >= 0 {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, bits)
}

// mapKey writes the key of a map entry.
func (e *encoder) mapKey(c yamlpos.Node, f *field) {
	key := e.tree.Key(c)
	bad := func(allowed string) {
		e.failKey(c, Error{Msg: "invalid map key", Found: "'" + shorten(string(key)) + "'", Allowed: allowed})
	}
	switch f.kind {
	case protoreflect.StringKind:
		if len(key) > 0 {
			e.buf = append(e.buf, f.tag...)
			e.buf = protowire.AppendVarint(e.buf, uint64(len(key)))
			e.buf = append(e.buf, key...)
		}
	case protoreflect.BoolKind:
		switch string(key) {
		case "true":
			e.varint(f, 1)
		case "false":
		default:
			bad("true, false")
		}
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		bits := 64
		if f.kind == protoreflect.Uint32Kind || f.kind == protoreflect.Fixed32Kind {
			bits = 32
		}
		v, err := strconv.ParseUint(string(key), 10, bits)
		if err != nil {
			bad(fmt.Sprintf("an unsigned integer of %d bits", bits))
			return
		}
		e.mapInteger(f, v)
	default:
		bits := 64
		if f.kind == protoreflect.Int32Kind || f.kind == protoreflect.Sint32Kind || f.kind == protoreflect.Sfixed32Kind {
			bits = 32
		}
		v, err := strconv.ParseInt(string(key), 10, bits)
		if err != nil {
			bad(fmt.Sprintf("an integer of %d bits", bits))
			return
		}
		if f.kind == protoreflect.Sint32Kind || f.kind == protoreflect.Sint64Kind {
			e.mapInteger(f, protowire.EncodeZigZag(v))
			return
		}
		e.mapInteger(f, uint64(v))
	}
}

func (e *encoder) mapInteger(f *field, v uint64) {
	if wireType(f.kind) == protowire.VarintType {
		e.varint(f, v)
		return
	}
	e.fixed(f, v)
}
