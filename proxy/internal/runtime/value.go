package runtime

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// Value is one value: its text, and what it means.
type Value struct {
	Raw         string
	kind        kind
	whole, bool bool
	uint        uint64
	denominator uint64
	double      float64
}

type kind uint8

const (
	text kind = iota
	number
	boolean
	fraction
)

// ErrNoAdminLayer is Envoy's text.
var ErrNoAdminLayer = errors.New("No admin layer specified") //nolint:staticcheck

// denominators are those of FractionalPercent.
var denominators = map[string]uint64{"HUNDRED": 100, "TEN_THOUSAND": 10_000, "MILLION": 1_000_000, "0": 100, "1": 10_000, "2": 1_000_000}

// ParseText reads a value that was written as text: in a file, as a string, in a query.
func ParseText(s string) Value {
	v := Value{Raw: s}
	if t := strings.TrimSpace(s); strings.EqualFold(t, "true") || strings.EqualFold(t, "false") {
		v.kind, v.bool = boolean, strings.EqualFold(t, "true")
		return v
	} else if f, err := strconv.ParseFloat(t, 64); err == nil {
		return newNumber(s, f)
	}
	return v.asFraction()
}

// asFraction recognizes the two lines of a FractionalPercent in YAML, and the same in braces.
func (v Value) asFraction() Value {
	body := strings.TrimSpace(v.Raw)
	if strings.HasPrefix(body, "{") && strings.HasSuffix(body, "}") {
		body = strings.ReplaceAll(body[1:len(body)-1], ",", "\n")
	}
	n, d, any := uint64(0), uint64(100), false
	for _, line := range strings.Split(body, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, val, ok := strings.Cut(line, ":")
		if !ok {
			return v
		}
		name, val = strings.Trim(name, " \t\r\""), strings.Trim(val, " \t\r\"")
		switch name {
		case "numerator":
			x, err := strconv.ParseUint(val, 10, 32)
			if err != nil {
				return v
			}
			n = x
		case "denominator":
			x, known := denominators[val]
			if !known {
				return v
			}
			d = x
		default:
			return v
		}
		any = true
	}
	if any {
		v.kind, v.uint, v.denominator = fraction, n, d
	}
	return v
}

func newNumber(raw string, f float64) Value {
	v := Value{Raw: raw, kind: number, double: f}
	if f >= 0 && f < math.MaxUint64 && f == math.Trunc(f) {
		v.whole, v.uint = true, uint64(f)
	}
	return v
}

// set puts a value in, within the bounds.
func (vs Values) set(key string, v Value) error {
	if _, old := vs[key]; !old && len(vs) >= MaxKeys {
		return fmt.Errorf("more than %d runtime keys in one layer", MaxKeys)
	}
	if len(key) > MaxValueBytes || len(v.Raw) > MaxValueBytes {
		return fmt.Errorf("a runtime value is longer than %d bytes", MaxValueBytes)
	}
	vs[key] = v
	return nil
}

// FromStruct reads the values of a static layer or of a discovery service. Nested keys are joined by dots.
func FromStruct(s *structpb.Struct) (Values, error) {
	out := Values{}
	for name, v := range s.GetFields() {
		if err := out.walk(name, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (vs Values) walk(key string, v *structpb.Value) error {
	switch x := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		return vs.set(key, newNumber(formatNumber(x.NumberValue), x.NumberValue))
	case *structpb.Value_BoolValue:
		return vs.set(key, Value{Raw: strconv.FormatBool(x.BoolValue), kind: boolean, bool: x.BoolValue})
	case *structpb.Value_StringValue:
		return vs.set(key, ParseText(x.StringValue))
	case *structpb.Value_StructValue:
		fields := x.StructValue.GetFields()
		if fields["numerator"] != nil || fields["denominator"] != nil {
			return vs.set(key, structFraction(fields))
		}
		if len(fields) == 0 {
			return vs.set(key, Value{})
		}
		for name, f := range fields {
			if err := vs.walk(key+"."+name, f); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("Invalid runtime entry value for %s", key) //nolint:staticcheck // Envoy's text
}

// structFraction reads a FractionalPercent that was written as a map.
func structFraction(fields map[string]*structpb.Value) Value {
	var b strings.Builder
	for _, name := range []string{"numerator", "denominator"} {
		switch x := fields[name].GetKind().(type) {
		case *structpb.Value_NumberValue:
			b.WriteString(name + ": " + strconv.FormatFloat(x.NumberValue, 'f', -1, 64) + "\n")
		case *structpb.Value_StringValue:
			b.WriteString(name + ": " + x.StringValue + "\n")
		}
	}
	return Value{Raw: strings.TrimSuffix(b.String(), "\n")}.asFraction()
}

// formatNumber writes a number as Envoy shows it, with six digits; the value itself keeps all of them.
func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
