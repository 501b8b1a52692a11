package config

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/encoding/protowire"
)

// wellKnown writes a message that has a JSON form of its own.
func (e *encoder) wellKnown(n yamlpos.Node, m *message) {
	switch m.special {
	case durationMessage:
		e.duration(n)
	case timestampMessage:
		e.timestamp(n)
	case wrapperMessage:
		e.scalar(n, m.fields["value"])
	case fieldMaskMessage:
		e.fieldMask(n)
	case structMessage:
		e.structure(n)
	case valueMessage:
		e.value(n)
	case listMessage:
		if e.tree.Kind(n) != yamlpos.Seq {
			e.fail(n, Error{Msg: "expected '[', a list", Found: e.found(n)})
			return
		}
		e.values(n)
	case anyMessage:
		e.any(n)
	}
}

// maxDurationSeconds is about 10,000 years, protobuf's bound.
const maxDurationSeconds = 315_576_000_000

func (e *encoder) duration(n yamlpos.Node) {
	text := e.tree.Text(n)
	if k := e.tree.Kind(n); k != yamlpos.String {
		x := Error{Msg: "expected '\"', a string", Found: e.found(n), Allowed: e.allowedDuration()}
		if k == yamlpos.Number {
			x.Suggestion = e.meantDuration(text)
		}
		e.fail(n, x)
		return
	}
	secs, nanos, problem := parseDuration(text)
	if problem != "" {
		e.fail(n, Error{Msg: problem, Found: e.found(n), Allowed: e.allowedDuration(), Suggestion: e.meantDuration(text)})
		return
	}
	if problem := unusable(secs, nanos); problem != "" && !e.opts.SkipValidation {
		x := Error{Kind: BrokenRule, Msg: problem, Found: e.found(n), Allowed: e.allowedDuration()}
		if secs > maxUsableSeconds {
			x.Allowed = "at most " + strconv.FormatInt(maxUsableSeconds, 10) + "s"
		}
		e.fail(n, x)
		return
	}
	e.seconds(secs, nanos)
}

// meantDuration is the duration that text was to be, "" if that is unknown, or none that the field takes.
func (e *encoder) meantDuration(text []byte) string {
	b := bounds{least: "0s"}.narrow(e.at)
	if d := meantDuration(string(text)); d != "" && !tooShort(d, b) {
		return d
	}
	return ""
}

// tooShort tells whether a duration is below the least that a field takes.
func tooShort(d string, b bounds) bool {
	secs, nanos, wrong := parseDuration([]byte(d))
	leastSecs, leastNanos, none := parseDuration([]byte(b.least))
	if wrong != "" || none != "" {
		return false
	}
	c := cmp.Or(cmp.Compare(secs, leastSecs), cmp.Compare(nanos, leastNanos))
	return c < 0 || c == 0 && b.above
}

// maxUsableSeconds is what Envoy can count in nanoseconds, in whole seconds.
const maxUsableSeconds = 9_223_372_035

// unusable says in Envoy's words why a duration that protobuf has is none for Envoy, wherever it stands.
func unusable(secs int64, nanos int32) string {
	switch {
	case secs < 0 || nanos < 0:
		return "Invalid duration: Expected positive duration"
	case secs > maxUsableSeconds:
		return "Invalid duration: Duration out-of-range"
	}
	return ""
}

func (e *encoder) seconds(secs int64, nanos int32) {
	if secs != 0 {
		e.buf = append(e.buf, 0x08)
		e.buf = protowire.AppendVarint(e.buf, uint64(secs))
	}
	if nanos != 0 {
		e.buf = append(e.buf, 0x10)
		e.buf = protowire.AppendVarint(e.buf, uint64(int64(nanos)))
	}
}

// parseDuration reads protobuf's JSON form of a duration; problem says what is wrong with it, in protobuf's words.
func parseDuration(s []byte) (secs int64, nanos int32, problem string) {
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if secs = secs*10 + int64(s[i]-'0'); secs > maxDurationSeconds {
			return 0, 0, "duration out of range"
		}
		i++
	}
	if i == 0 {
		return 0, 0, "duration must start with an integer"
	}
	if i < len(s) && s[i] == '.' {
		i++
		digits := 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			if digits++; digits > 9 {
				return 0, 0, "duration had bad nanoseconds: more than 9 decimals"
			}
			nanos = nanos*10 + int32(s[i]-'0')
		}
		if digits == 0 {
			return 0, 0, "duration had bad nanoseconds: no digit after the point"
		}
		for ; digits < 9; digits++ {
			nanos *= 10
		}
	}
	if string(s[i:]) != "s" {
		return 0, 0, "duration must end with a single 's'"
	}
	if secs == maxDurationSeconds && nanos > 0 {
		return 0, 0, "duration out of range"
	}
	if neg {
		secs, nanos = -secs, -nanos
	}
	return secs, nanos, ""
}

func (e *encoder) timestamp(n yamlpos.Node) {
	text, ok := e.stringFor(n, "a timestamp such as \"2006-01-02T15:04:05Z\"")
	if !ok {
		return
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil || at.Year() < 1 || at.Year() > 9999 || bytes.IndexByte(text, ',') >= 0 {
		e.fail(n, Error{Msg: "timestamp is not in RFC 3339 format", Found: e.found(n), Allowed: "a timestamp such as \"2006-01-02T15:04:05.5Z\""})
		return
	}
	e.seconds(at.Unix(), int32(at.Nanosecond()))
}

func (e *encoder) stringFor(n yamlpos.Node, what string) ([]byte, bool) {
	if e.tree.Kind(n) != yamlpos.String {
		e.fail(n, Error{Msg: "expected '\"', a string", Found: e.found(n), Allowed: what})
		return nil, false
	}
	return e.tree.Text(n), true
}

func (e *encoder) fieldMask(n yamlpos.Node) {
	text, ok := e.stringFor(n, "field paths joined by commas")
	if !ok || len(text) == 0 {
		return
	}
	for _, p := range strings.Split(string(text), ",") {
		var snake []byte
		for i := 0; i < len(p); i++ {
			c := p[i]
			switch {
			case c >= 'A' && c <= 'Z':
				snake = append(snake, '_', c+'a'-'A')
			case c == '_' || isLower(c) || c >= '0' && c <= '9' || c == '.':
				snake = append(snake, c)
			default:
				e.fail(n, Error{Msg: "unexpected character in FieldMask", Found: e.found(n)})
				return
			}
		}
		e.buf = append(e.buf, 0x0a)
		e.buf = protowire.AppendVarint(e.buf, uint64(len(snake)))
		e.buf = append(e.buf, snake...)
	}
}

// Tags of google.protobuf.Struct, Value and ListValue.
const (
	structFieldsTag = 0x0a
	entryKeyTag     = 0x0a
	entryValueTag   = 0x12
	valueNullTag    = 0x08
	valueNumberTag  = 0x11
	valueStringTag  = 0x1a
	valueBoolTag    = 0x20
	valueStructTag  = 0x2a
	valueListTag    = 0x32
	listValuesTag   = 0x0a
)

func (e *encoder) structure(n yamlpos.Node) {
	t := e.tree
	if t.Kind(n) != yamlpos.Map {
		e.fail(n, Error{Msg: "expected '{', a map", Found: e.found(n)})
		return
	}
	top := len(e.path)
	e.path = append(e.path, frame{})
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		key := t.Key(c)
		e.path[top] = frame{index: -1, key: key}
		e.buf = append(e.buf, structFieldsTag)
		entry := e.open()
		if len(key) > 0 {
			e.buf = append(e.buf, entryKeyTag)
			e.buf = protowire.AppendVarint(e.buf, uint64(len(key)))
			e.buf = append(e.buf, key...)
		}
		e.buf = append(e.buf, entryValueTag)
		value := e.open()
		e.value(c)
		e.close(value)
		e.close(entry)
	}
	e.path = e.path[:top]
}

func (e *encoder) values(n yamlpos.Node) {
	t := e.tree
	top := len(e.path)
	e.path = append(e.path, frame{})
	i := 0
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		e.path[top] = frame{index: i}
		e.buf = append(e.buf, listValuesTag)
		start := e.open()
		e.value(c)
		e.close(start)
		i++
	}
	e.path = e.path[:top]
}

func (e *encoder) value(n yamlpos.Node) {
	t := e.tree
	switch t.Kind(n) {
	case yamlpos.Null:
		e.buf = append(e.buf, valueNullTag, 0)
	case yamlpos.Bool:
		e.buf = append(e.buf, valueBoolTag, byte(protowire.EncodeBool(t.Bool(n))))
	case yamlpos.Number:
		e.number(n)
	case yamlpos.String:
		s := t.Text(n)
		e.buf = append(e.buf, valueStringTag)
		e.buf = protowire.AppendVarint(e.buf, uint64(len(s)))
		e.buf = append(e.buf, s...)
	case yamlpos.Map:
		e.buf = append(e.buf, valueStructTag)
		start := e.open()
		e.structure(n)
		e.close(start)
	case yamlpos.Seq:
		e.buf = append(e.buf, valueListTag)
		start := e.open()
		e.values(n)
		e.close(start)
	}
}

// number writes a number of a Value. Envoy's YAML reader keeps integers beyond 32 bits as strings, because a double
// cannot hold them all.
func (e *encoder) number(n yamlpos.Node) {
	text := e.tree.Text(n)
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(v, 0) {
		e.fail(n, Error{Msg: "invalid number: '" + shorten(string(text)) + "'", Allowed: "a number that a double can hold"})
		return
	}
	if e.tree.YAML() && (v < math.MinInt32 || v > math.MaxInt32) {
		e.buf = append(e.buf, valueStringTag)
		e.buf = protowire.AppendVarint(e.buf, uint64(len(text)))
		e.buf = append(e.buf, text...)
		return
	}
	e.buf = append(e.buf, valueNumberTag)
	e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(v))
}

// base64 writes a bytes field. Both alphabets are taken, padding may be missing.
func (e *encoder) base64(n yamlpos.Node, f *field) {
	text, ok := e.stringFor(n, "base64")
	if !ok {
		return
	}
	if len(text) == 0 && !f.keep {
		return
	}
	at := len(e.buf)
	e.buf = append(e.buf, f.tag...)
	start := e.open()
	out, bad := appendBase64(e.buf, text)
	if bad >= 0 {
		e.buf = e.buf[:at]
		e.fail(n, Error{Msg: "corrupt base64", Found: fmt.Sprintf("%s (at character %d)", e.found(n), bad+1), Allowed: "base64, standard or URL alphabet"})
		return
	}
	e.buf = out
	e.close(start)
}

// appendBase64 returns the position of the first bad character, -1 if there is none.
func appendBase64(dst, s []byte) ([]byte, int) {
	end := len(s)
	for end > 0 && len(s)-end < 2 && s[end-1] == '=' {
		end--
	}
	if end != len(s) && len(s)%4 != 0 || end%4 == 1 {
		return dst, max(0, len(s)-1)
	}
	var acc uint32
	bits := 0
	for i, c := range s[:end] {
		var v byte
		switch {
		case c >= 'A' && c <= 'Z':
			v = c - 'A'
		case c >= 'a' && c <= 'z':
			v = c - 'a' + 26
		case c >= '0' && c <= '9':
			v = c - '0' + 52
		case c == '+' || c == '-':
			v = 62
		case c == '/' || c == '_':
			v = 63
		default:
			return dst, i
		}
		acc, bits = acc<<6|uint32(v), bits+6
		if bits >= 8 {
			bits -= 8
			dst = append(dst, byte(acc>>bits))
		}
	}
	return dst, -1
}
