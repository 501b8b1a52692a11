package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxRuleDepth bounds how deep messages are looked into.
const maxRuleDepth = 100

// rules asks the field rules of m and of the messages in it by their descriptions, for messages without a generated validator. The words
// are those of the generated ones.
func (w *walker) rules(m protoreflect.Message, path string, depth int) {
	if depth > maxRuleDepth {
		return
	}
	d := m.Descriptor()
	for i := range d.Oneofs().Len() {
		o := d.Oneofs().Get(i)
		if !o.IsSynthetic() && m.WhichOneof(o) == nil && oneofRequired(o) {
			members := make([]string, o.Fields().Len())
			for i := range members {
				members[i] = string(o.Fields().Get(i).Name())
			}
			if !w.chosen(path, members) {
				at := join(path, string(o.Name()))
				w.add(Error{Path: at, Msg: "Proto constraint validation failed (field: \"" + string(o.Name()) + "\", reason: is required)", Allowed: "one of " + someOf(members, 20)})
			}
		}
	}
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		r := fieldRules{w: w, name: string(d.Name()) + "ValidationError." + goName(string(fd.Name()))}
		r.field(m, fd, join(path, string(fd.Name())), depth)
	}
}

// fieldRules asks the rules of one field.
type fieldRules struct {
	w    *walker
	name string // the field as errors name it
}

func (r *fieldRules) fail(path, format string, args ...any) {
	r.w.add(Error{Path: path, Msg: "Proto constraint validation failed (" + r.name + ": " + fmt.Sprintf(format, args...) + ")"})
}

func (r *fieldRules) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, path string, depth int) {
	if unresolved(fd) {
		return
	}
	all := optionsOf(fd.Options(), "validate.rules")
	rule := chosenRule(all)
	switch {
	case fd.IsMap():
		pairs := m.Get(fd).Map()
		r.count(path, rule, pairs.Len(), "pairs", "pair(s)")
		if fd.MapValue().Message() != nil && !skipped(rule.message("values")) {
			pairs.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				r.w.rules(v.Message(), path+"["+strconv.Quote(k.String())+"]", depth+1)
				return true
			})
		}
	case fd.IsList():
		list := m.Get(fd).List()
		r.count(path, rule, list.Len(), "items", "item(s)")
		if i := repeated(list); rule.flag("unique") && i >= 0 {
			at := "[" + strconv.Itoa(i) + "]"
			one := fieldRules{w: r.w, name: r.name + at}
			one.fail(path+at, "repeated value must contain unique items")
		}
		items := chosenRule(rule.message("items"))
		for i := range list.Len() {
			at := "[" + strconv.Itoa(i) + "]"
			one := fieldRules{w: r.w, name: r.name + at}
			one.value(fd, list.Get(i), true, items, path+at, depth)
		}
	default:
		if o := fd.ContainingOneof(); o != nil && !m.Has(fd) {
			return // another member, or none, is set
		}
		if all.message("message").flag("required") && !m.Has(fd) {
			r.fail(path, "value is required")
			return
		}
		r.value(fd, m.Get(fd), m.Has(fd), rule, path, depth)
	}
}

// value asks the rule of one value.
func (r *fieldRules) value(fd protoreflect.FieldDescriptor, v protoreflect.Value, has bool, rule ruleSet, path string, depth int) {
	switch {
	case fd.Message() == nil:
		r.scalar(fd.Kind(), fd.Enum(), v, rule, path)
	case !has:
		if rule.flag("required") {
			r.fail(path, "value is required")
		}
	case fd.Message().FullName() == "google.protobuf.Duration":
		r.duration(v.Message(), rule, path)
	case strings.HasPrefix(string(fd.Message().FullName()), "google.protobuf."):
		// Wrappers have the rules of what is in them.
		if inner := fd.Message().Fields().ByName("value"); inner != nil && inner.Message() == nil && !inner.IsList() && fd.Message().FullName() != "google.protobuf.Any" {
			r.scalar(inner.Kind(), nil, v.Message().Get(inner), rule, path)
		}
	case !rule.flag("skip"):
		r.w.rules(v.Message(), path, depth+1)
	}
}

func (r *fieldRules) scalar(kind protoreflect.Kind, enum protoreflect.EnumDescriptor, v protoreflect.Value, rule ruleSet, path string) {
	switch kind {
	case protoreflect.StringKind:
		r.text(v.String(), rule, path)
	case protoreflect.BytesKind:
		r.length(uint64(len(v.Bytes())), "", " bytes", rule, path)
	case protoreflect.EnumKind:
		if n := v.Enum(); rule.flag("defined_only") && enum != nil && enum.Values().ByNumber(n) == nil {
			r.fail(path, "value must be one of the defined enum values")
		}
		r.lists(strconv.Itoa(int(v.Enum())), rule, path)
	case protoreflect.BoolKind:
		if rule.has("const") && rule.get("const").Bool() != v.Bool() {
			r.fail(path, "value must equal %v", rule.get("const").Bool())
		}
	default:
		if rule.flag("ignore_empty") && number(v) == 0 {
			return
		}
		r.bounds(number(v), number, boundText, rule, path)
		r.lists(boundText(v), rule, path)
	}
}

func (r *fieldRules) text(s string, rule ruleSet, path string) {
	if rule.flag("ignore_empty") && s == "" {
		return
	}
	r.length(uint64(utf8.RuneCountInString(s)), "", " characters", rule, path)
	r.length(uint64(len(s)), "_bytes", " bytes", rule, path)
	if rule.has("pattern") {
		p := rule.get("pattern").String()
		re, err := regexp.Compile(p) //ban:allow bannedcall the API's own patterns, while configuration is built
		if err == nil && !re.MatchString(s) {
			r.fail(path, "value does not match regex pattern %q", p)
		}
	}
	if p := rule.get("prefix"); rule.has("prefix") && !strings.HasPrefix(s, p.String()) {
		r.fail(path, "value does not have prefix %q", p.String())
	}
	if p := rule.get("suffix"); rule.has("suffix") && !strings.HasSuffix(s, p.String()) {
		r.fail(path, "value does not have suffix %q", p.String())
	}
	if rule.has("well_known_regex") && strings.ContainsAny(s, "\x00\r\n") {
		r.fail(path, `value does not match regex pattern "^[^\x00\n\r]*$"`)
	}
	r.lists(s, rule, path)
}

// length asks min_len and max_len, or those with the suffix.
func (r *fieldRules) length(n uint64, suffix, unit string, rule ruleSet, path string) {
	least, most := "min_len", "max_len"
	if suffix != "" {
		least, most = "min"+suffix, "max"+suffix
	}
	if unit == " bytes" && n == 0 && rule.flag("ignore_empty") {
		return
	}
	switch {
	case rule.has(least) && n < rule.get(least).Uint():
		r.fail(path, "value length must be at least %d%s", rule.get(least).Uint(), unit)
	case rule.has(most) && n > rule.get(most).Uint():
		r.fail(path, "value length must be at most %d%s", rule.get(most).Uint(), unit)
	}
}

// lists asks in and not_in.
func (r *fieldRules) lists(text string, rule ruleSet, path string) {
	if in := rule.texts("in"); len(in) > 0 && !slices.Contains(in, text) {
		r.fail(path, "value must be in list [%s]", strings.Join(in, " "))
	}
	if not := rule.texts("not_in"); slices.Contains(not, text) {
		r.fail(path, "value must not be in list [%s]", strings.Join(not, " "))
	}
}

// count asks how many elements there may be.
func (r *fieldRules) count(path string, rule ruleSet, n int, what, word string) {
	least, most := rule.get("min_"+what), rule.get("max_"+what)
	if n == 0 && rule.flag("ignore_empty") {
		return
	}
	if rule.has("min_"+what) && uint64(n) < least.Uint() {
		r.fail(path, "value must contain at least %d %s", least.Uint(), word)
	}
	if rule.has("max_"+what) && uint64(n) > most.Uint() {
		r.fail(path, "value must contain no more than %d %s", most.Uint(), word)
	}
}

func (r *fieldRules) duration(m protoreflect.Message, rule ruleSet, path string) {
	fields := m.Descriptor().Fields()
	s, n := m.Get(fields.ByName("seconds")).Int(), m.Get(fields.ByName("nanos")).Int()
	as := func(v protoreflect.Value) float64 {
		d, ok := v.Message().Interface().(*durationpb.Duration)
		if !ok {
			return 0
		}
		return float64(d.GetSeconds()) + float64(d.GetNanos())/1e9
	}
	print := func(v protoreflect.Value) string { return time.Duration(as(v) * 1e9).String() }
	r.bounds(float64(s)+float64(n)/1e9, as, print, rule, path)
}

// bounds asks gt, gte, lt and lte.
func (r *fieldRules) bounds(x float64, of func(protoreflect.Value) float64, print func(protoreflect.Value) string, rule ruleSet, path string) {
	low, lowWord, open := "gt", "greater than ", "("
	if rule.has("gte") {
		low, lowWord, open = "gte", "greater than or equal to ", "["
	}
	high, highWord, end := "lt", "less than ", ")"
	if rule.has("lte") {
		high, highWord, end = "lte", "less than or equal to ", "]"
	}
	under := rule.has(low) && (x < of(rule.get(low)) || low == "gt" && x == of(rule.get(low)))
	over := rule.has(high) && (x > of(rule.get(high)) || high == "lt" && x == of(rule.get(high)))
	switch {
	case !under && !over:
	case rule.has(low) && rule.has(high):
		r.fail(path, "value must be inside range %s%s, %s%s", open, print(rule.get(low)), print(rule.get(high)), end)
	case under:
		r.fail(path, "value must be %s%s", lowWord, print(rule.get(low)))
	default:
		r.fail(path, "value must be %s%s", highWord, print(rule.get(high)))
	}
}

// ruleSet is one message of field rules, read by the names of its fields; nil has none.
type ruleSet struct{ m protoreflect.Message }

func (r ruleSet) has(name string) bool {
	if r.m == nil {
		return false
	}
	fd := r.m.Descriptor().Fields().ByName(protoreflect.Name(name))
	return fd != nil && r.m.Has(fd)
}

// get returns the value of a field that the rule has, or its zero.
func (r ruleSet) get(name string) (v protoreflect.Value) {
	if r.m == nil {
		return v
	}
	if fd := r.m.Descriptor().Fields().ByName(protoreflect.Name(name)); fd != nil {
		v = r.m.Get(fd)
	}
	return v
}

func (r ruleSet) flag(name string) bool { return r.has(name) && r.get(name).Bool() }

func (r ruleSet) message(name string) ruleSet {
	if !r.has(name) {
		return ruleSet{}
	}
	return ruleSet{r.get(name).Message()}
}

func (r ruleSet) texts(name string) (out []string) {
	if !r.has(name) {
		return nil
	}
	list := r.get(name).List()
	for i := range list.Len() {
		out = append(out, boundText(list.Get(i)))
	}
	return out
}

// chosenRule is the rule of the kind that is written; that of messages has the flags skip and required in it.
func chosenRule(all ruleSet) ruleSet {
	if all.m == nil {
		return ruleSet{}
	}
	one := all.m.Descriptor().Oneofs().ByName("type")
	if one == nil {
		return ruleSet{}
	}
	if fd := all.m.WhichOneof(one); fd != nil && fd.Message() != nil {
		return ruleSet{all.m.Get(fd).Message()}
	}
	return all.message("message")
}

func skipped(all ruleSet) bool { return all.message("message").flag("skip") }

// optionsOf returns an extension among options that is a message.
func optionsOf(options protoreflect.ProtoMessage, name protoreflect.FullName) (out ruleSet) {
	options.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.FullName() == name && fd.Message() != nil {
			out.m = v.Message()
		}
		return out.m == nil
	})
	return out
}

func oneofRequired(o protoreflect.OneofDescriptor) (required bool) {
	o.Options().ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		required = required || fd.FullName() == "validate.required" && v.Bool()
		return !required
	})
	return required
}

// repeated returns the first element that was there before, -1 if there is none.
func repeated(list protoreflect.List) int {
	seen := map[any]bool{}
	for i := range list.Len() {
		switch x := list.Get(i).Interface().(type) {
		case string, int32, int64, uint32, uint64, protoreflect.EnumNumber, bool, float32, float64:
			if seen[x] {
				return i
			}
			seen[x] = true
		}
	}
	return -1
}

// number is the value of a numeric field or rule. Bounds of 64 bits lose what no configuration comes near.
func number(v protoreflect.Value) float64 {
	switch x := v.Interface().(type) {
	case int32:
		return float64(x)
	case int64:
		return float64(x)
	case uint32:
		return float64(x)
	case uint64:
		return float64(x)
	case float32:
		return float64(x)
	case float64:
		return x
	}
	return 0
}
