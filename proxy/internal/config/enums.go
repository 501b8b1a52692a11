package config

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// meantEnum returns the one of an enum's names that text was to be, "" if that is not to be known: a name with a slip, one of its words
// or its first letters, another name that shares words with it, or a number that has a meaning of its own.
func meantEnum(text string, names []string) string {
	words := wordsOf(text)
	if s := named(otherWords[strings.ToUpper(text)], names); s != "" {
		return s
	}
	if s := nearest(strings.Join(words, ""), names); s != "" {
		return s
	}
	if n, err := strconv.Atoi(text); err == nil {
		if s := named(numberNames[n], names); s != "" {
			return s
		}
	}
	if s := sameDigits(text, names); s != "" {
		return s
	}
	best, most := "", 0
	for _, name := range names {
		its := wordsOf(name)
		if initials(its) == strings.ToUpper(text) && len(its) > 1 {
			return name
		}
		shared := 0
		for _, w := range words {
			for _, x := range its {
				if w == x {
					shared++
				}
			}
		}
		if shared > most {
			best, most = name, shared
		}
	}
	return best
}

// otherWords are what values were called in the API before, or are elsewhere, where another value looks more like it, or none does.
var otherWords = map[string]string{
	"INTERNAL": "SAME_IP_OR_LOOPBACK", "LOCAL": "SAME_IP_OR_LOOPBACK",
	"ORIGINAL_DST_LB": "CLUSTER_PROVIDED", "P2C": "LEAST_REQUEST", "LEAST_CONN": "LEAST_REQUEST", "LEAST_CONNECTIONS": "LEAST_REQUEST",
	">=": "GE", "<=": "LE", "=": "EQ", "==": "EQ", "!=": "NE",
	"DOWN": "UNHEALTHY", "UP": "HEALTHY", "HI": "HIGH", "NONE": "ACCEPT_UNTRUSTED", "PERCENT": "HUNDRED",
}

// numberNames are words for numbers that people write in place of them.
var numberNames = map[int]string{
	100: "HUNDRED", 10_000: "TEN_THOUSAND", 1_000_000: "MILLION", // denominators
	301: "MOVED_PERMANENTLY", 302: "FOUND", 303: "SEE_OTHER", 307: "TEMPORARY_REDIRECT", 308: "PERMANENT_REDIRECT",
	404: "NOT_FOUND", 500: "INTERNAL_SERVER_ERROR", 503: "SERVICE_UNAVAILABLE",
}

func named(name string, names []string) string {
	for _, n := range names {
		if n == name {
			return n
		}
	}
	return ""
}

// wordsOf are the words of a name, in capitals.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToUpper(s), func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

func initials(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteByte(w[0])
	}
	return b.String()
}

// sameDigits is the first name that has the digits of text: 1.2, h2, ipv4.
func sameDigits(text string, names []string) string {
	want := digitsOf(text)
	if want == "" || len(text) > 8 {
		return ""
	}
	for _, n := range names {
		if digitsOf(n) == want {
			return n
		}
	}
	return ""
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// allowedNames are the names of f's enum that its rule allows.
func (s *schema) allowedNames(f *field) []string {
	names := s.enumOf(f).names()
	rule := ruleOf(f)
	if rule == nil {
		return names
	}
	fd := rule.Descriptor().Fields().ByName("not_in")
	if fd == nil || !fd.IsList() {
		return names
	}
	not := map[protoreflect.EnumNumber]bool{}
	for l, i := rule.Get(fd).List(), 0; i < l.Len(); i++ {
		not[protoreflect.EnumNumber(l.Get(i).Int())] = true
	}
	values := f.desc.Enum().Values()
	out := names[:0]
	for i := range values.Len() {
		if !not[values.Get(i).Number()] {
			out = append(out, names[i])
		}
	}
	return out
}
