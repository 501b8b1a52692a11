package match

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// String is a string matcher.
type String interface{ Match(s string) bool }

// stringMatch is a string matcher that is compiled.
type stringMatch struct {
	kind stringKind
	text string
	fold bool
	re   *regexp.Regexp
}

type stringKind uint8

const (
	exact stringKind = iota
	prefix
	suffix
	contains
	regex
)

func (m *stringMatch) Match(s string) bool {
	switch m.kind {
	case regex:
		return m.re.MatchString(s)
	case prefix:
		if len(s) < len(m.text) {
			return false
		}
		s = s[:len(m.text)]
	case suffix:
		if len(s) < len(m.text) {
			return false
		}
		s = s[len(s)-len(m.text):]
	case contains:
		if m.fold {
			return containsFold(s, m.text)
		}
		return strings.Contains(s, m.text)
	}
	if m.fold {
		return http.EqualFold(s, m.text)
	}
	return s == m.text
}

// containsFold finds text (lower-case) in s, whatever the case of s.
func containsFold(s, text string) bool {
	for i := 0; i+len(text) <= len(s); i++ {
		if http.EqualFold(s[i:i+len(text)], text) {
			return true
		}
	}
	return false
}

// Exact, Prefix, Suffix and Contains are string matchers as the older fields of header matchers have them.
func Exact(text string) String    { return &stringMatch{kind: exact, text: text} }
func Prefix(text string) String   { return &stringMatch{kind: prefix, text: text} }
func Suffix(text string) String   { return &stringMatch{kind: suffix, text: text} }
func Contains(text string) String { return &stringMatch{kind: contains, text: text} }

// Regex matches whole texts.
func Regex(text string) (String, error) {
	re, err := CompileRegex(text, true)
	if err != nil {
		return nil, err
	}
	return &stringMatch{kind: regex, re: re}, nil
}

// NewString compiles envoy.type.matcher.v3.StringMatcher.
func NewString(m *matcherv3.StringMatcher) (String, error) {
	switch x := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return newString(exact, x.Exact, m.IgnoreCase)
	case *matcherv3.StringMatcher_Prefix:
		return newString(prefix, x.Prefix, m.IgnoreCase)
	case *matcherv3.StringMatcher_Suffix:
		return newString(suffix, x.Suffix, m.IgnoreCase)
	case *matcherv3.StringMatcher_Contains:
		return newString(contains, x.Contains, m.IgnoreCase)
	case *matcherv3.StringMatcher_SafeRegex:
		return newString(regex, x.SafeRegex.GetRegex(), m.IgnoreCase)
	case *matcherv3.StringMatcher_Custom:
		return nil, config.Unregistered(x.Custom.GetName(), x.Custom.GetTypedConfig())
	}
	return nil, errors.New("match_pattern is required")
}

// newXDSString compiles xds.type.matcher.v3.StringMatcher.
func newXDSString(m *xdsmatcherv3.StringMatcher) (String, error) {
	switch x := m.GetMatchPattern().(type) {
	case *xdsmatcherv3.StringMatcher_Exact:
		return newString(exact, x.Exact, m.IgnoreCase)
	case *xdsmatcherv3.StringMatcher_Prefix:
		return newString(prefix, x.Prefix, m.IgnoreCase)
	case *xdsmatcherv3.StringMatcher_Suffix:
		return newString(suffix, x.Suffix, m.IgnoreCase)
	case *xdsmatcherv3.StringMatcher_Contains:
		return newString(contains, x.Contains, m.IgnoreCase)
	case *xdsmatcherv3.StringMatcher_SafeRegex:
		return newString(regex, x.SafeRegex.GetRegex(), m.IgnoreCase)
	case *xdsmatcherv3.StringMatcher_Custom:
		return nil, config.Unregistered(x.Custom.GetName(), x.Custom.GetTypedConfig())
	}
	return nil, errors.New("value_match is required")
}

func newString(k stringKind, text string, fold bool) (String, error) {
	switch {
	case k == regex && fold:
		return nil, errors.New("ignore_case has no effect for safe_regex.") //nolint:staticcheck // Envoy's text
	case k == regex:
		return Regex(text)
	case k == contains && fold:
		text = strings.ToLower(text)
	}
	return &stringMatch{kind: k, text: text, fold: fold}, nil
}

// CompileRegex compiles a regular expression; full makes it match whole strings only, as Envoy's safe_regex does.
func CompileRegex(text string, full bool) (*regexp.Regexp, error) {
	if full {
		// By itself first: what closes more than it opens would be whole within the anchors.
		if _, err := syntax.Parse(text, syntax.Perl); err != nil {
			return nil, regexError(err)
		}
		text = "^(?:" + text + ")$"
	}
	re, err := regexp.Compile(text) //ban:allow bannedcall compiled once, while configuration is built
	if err != nil {
		return nil, regexError(err)
	}
	return re, nil
}

// regexError turns Go's error into RE2's, which has no prefix.
func regexError(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	text := e.Code.String()
	if words, ok := re2Words[e.Code]; ok {
		text = words
	}
	text += ": " + e.Expr
	if e.Code == syntax.ErrInvalidPerlOp {
		text += ": RE2 has no lookaround and no back references"
	}
	return errors.New(text)
}

// re2Words are RE2's words where Go's are others.
var re2Words = map[syntax.ErrorCode]string{
	syntax.ErrInvalidNamedCapture:   "invalid named capture group",
	syntax.ErrInvalidPerlOp:         "invalid perl operator",
	syntax.ErrInvalidRepeatOp:       "bad repetition operator",
	syntax.ErrInvalidRepeatSize:     "invalid repetition size",
	syntax.ErrMissingBracket:        "missing ]",
	syntax.ErrMissingParen:          "missing )",
	syntax.ErrMissingRepeatArgument: "no argument for repetition operator",
	syntax.ErrTrailingBackslash:     "trailing \\ at end of regexp",
}
