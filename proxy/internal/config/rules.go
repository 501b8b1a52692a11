package config

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// bounds are the least and the greatest value that a field takes, as text; "" where there is no bound. A field rule of the API may be
// narrower than the type.
type bounds struct {
	least, most string
	above       bool // least itself is not allowed
	below       bool // most itself is not allowed
}

// ruleOf returns the field rule of f that is written for values of its kind, nil if there is none. Options are decoded by reflection:
// it is only asked for when something is wrong.
func ruleOf(f *field) (rule protoreflect.Message) {
	if f == nil || f.desc == nil {
		return nil
	}
	f.desc.Options().ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.FullName() != "validate.rules" {
			return true
		}
		all := v.Message()
		one := all.Descriptor().Oneofs().ByName("type")
		if one == nil {
			return false
		}
		which := all.WhichOneof(one)
		if which != nil && which.Name() == "repeated" { // the rule is that of the elements
			list := all.Get(which).Message()
			items := list.Descriptor().Fields().ByName("items")
			if items == nil || !list.Has(items) {
				return false
			}
			all = list.Get(items).Message()
			which = all.WhichOneof(one)
		}
		if which != nil && which.Message() != nil {
			rule = all.Get(which).Message()
		}
		return false
	})
	return rule
}

// narrow puts the bounds of f's rule over those of its type.
func (b bounds) narrow(f *field) bounds {
	rule := ruleOf(f)
	if rule == nil {
		return b
	}
	at := func(name protoreflect.Name) (string, bool) {
		fd := rule.Descriptor().Fields().ByName(name)
		if fd == nil || fd.IsList() || !rule.Has(fd) {
			return "", false
		}
		return boundText(rule.Get(fd)), true
	}
	for _, x := range []struct {
		name protoreflect.Name
		to   *string
		open *bool
		is   bool
	}{{"gte", &b.least, &b.above, false}, {"gt", &b.least, &b.above, true}, {"lte", &b.most, &b.below, false}, {"lt", &b.most, &b.below, true}} {
		if v, ok := at(x.name); ok {
			*x.to, *x.open = v, x.is
		}
	}
	return b
}

func boundText(v protoreflect.Value) string {
	switch x := v.Interface().(type) {
	case protoreflect.Message:
		if d, ok := x.Interface().(*durationpb.Duration); ok {
			return seconds(d.AsDuration())
		}
		return ""
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case float32:
		return strconv.FormatFloat(float64(x), 'g', -1, 32)
	}
	return v.String()
}

// seconds writes d as configurations do: 1.5s, not 1m30s.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// of says what is allowed: "an integer from 0 to 65535", "a duration greater than 0s".
func (b bounds) of(what string) string {
	switch {
	case b.least != "" && b.most != "" && !b.above && !b.below:
		return what + " from " + b.least + " to " + b.most
	case b.least != "" && b.most != "":
		return what + " " + b.lower() + " and " + b.upper()
	case b.least != "":
		return what + " " + b.lower()
	case b.most != "":
		return what + " " + b.upper()
	}
	return what
}

func (b bounds) lower() string {
	if b.above {
		return "greater than " + b.least
	}
	return "of at least " + b.least
}

func (b bounds) upper() string {
	if b.below {
		return "less than " + b.most
	}
	return "of at most " + b.most
}

// allowedInteger says which integers the field that is being read takes, if its type has those from lo to hi. The bounds of 64 bits tell
// nobody anything.
func (e *encoder) allowedInteger(lo, hi string) string {
	b := bounds{least: lo, most: hi}
	if lo == strconv.FormatInt(math.MinInt64, 10) {
		b.least = ""
	}
	if hi == strconv.FormatInt(math.MaxInt64, 10) || hi == strconv.FormatUint(math.MaxUint64, 10) {
		b.most = ""
	}
	return b.narrow(e.at).of("an integer")
}

// allowedDuration says which durations it takes. Those above what Envoy can count are left to the message that meets one.
func (e *encoder) allowedDuration() string {
	return bounds{least: "0s"}.narrow(e.at).of("a duration") + `, in seconds with the unit, such as "1.5s"`
}

// allowedNumber says which numbers with a fraction it takes.
func (e *encoder) allowedNumber() string { return bounds{}.narrow(e.at).of("a number") }
