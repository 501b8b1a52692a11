package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// This file knows what was meant by addresses and durations that are not written as configurations want them. What was meant by a value
// in one piece where a message is wanted is in pieces.go, by a value of an enum in enums.go, by a name of the API before in oldnames.go.

// BadAddress is the error for text that should be an IP address, in Envoy's words; what was meant is said besides.
func BadAddress(text string) *Error {
	x := &Error{Kind: Invalid, Msg: "malformed IP address: " + text, Allowed: "an IP address"}
	x.Suggestion, x.Advice = meantAddress(text)
	return x
}

// BadRange is the error for a range of addresses whose address is none; the path is that of the range.
func BadRange(prefix string) *Error {
	x := BadAddress(prefix)
	x.Path = "address_prefix"
	if r := rangeForm(prefix); r != "" {
		x.Suggestion, x.Advice = r, ""
	} else if x.Suggestion == "" {
		x.Advice = ""
	}
	return x
}

// meantAddress returns the address that text was to be, "" if none is in it, and what to do besides.
func meantAddress(text string) (address, advice string) {
	if ip, err := netip.ParseAddr(strings.Trim(text, " []")); err == nil {
		return ip.String(), "an address stands without brackets"
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().String(), "the port goes into port_value: " + strconv.Itoa(int(at.Port()))
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Addr().String(), "one address, not a range"
	}
	switch scheme, rest, ok := strings.Cut(text, "://"); {
	case ok:
		address, _ = meantAddress(strings.TrimRight(rest, "/"))
		return address, "an address stands without " + scheme + "://"
	case text == "*":
		return "0.0.0.0", "or '::' for those of IPv6, too"
	case text == "localhost":
		return "127.0.0.1", namesAdvice
	case only(text, ".-_") && strings.Trim(text, "0123456789.") != "":
		return "", namesAdvice
	}
	return "", ""
}

const namesAdvice = "names are looked up only for endpoints of STRICT_DNS and LOGICAL_DNS clusters"

// only tells whether s has letters and digits and those of more only, and is not empty.
func only(s, more string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(more, r)
	})
}

// meantBool returns the boolean that text was to be, "" if that is not to be known.
func meantBool(text string) string {
	switch strings.ToLower(text) {
	case "on", "enable", "enabled", "1":
		return "true"
	case "off", "disable", "disabled", "0":
		return "false"
	}
	return ""
}

// meantInteger returns the integer that the text of n was to be, "" if that is not to be known: 50%, 1,000, 1_000, 1MB. Sizes are bytes,
// but for fields that say they are not.
func (e *encoder) meantInteger(n yamlpos.Node) string {
	if e.tree.Kind(n) != yamlpos.String {
		return ""
	}
	s := strings.TrimPrefix(strings.ToLower(string(e.tree.Text(n))), ":") // of a port
	if e.at != nil && e.at.list && strings.Contains(s, ",") {
		if list := strings.Split(strings.ReplaceAll(s, " ", ""), ","); !slices.ContainsFunc(list, func(x string) bool { return x == "" || strings.Trim(x, "0123456789") != "" }) {
			return "[" + strings.Join(list, ", ") + "]"
		}
		return ""
	}
	digits := strings.TrimLeft(s, "0123456789,_")
	number := strings.NewReplacer(",", "", "_", "").Replace(s[:len(s)-len(digits)])
	v, err := strconv.ParseUint(number, 10, 40)
	if err != nil {
		return ""
	}
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(digits), "b"), "i")
	shift, ok := map[string]uint{"": 0, "%": 0, "k": 10, "m": 20, "g": 30}[unit]
	if e.at != nil && strings.HasSuffix(e.at.name, "_kb") && shift >= 10 {
		shift -= 10
	}
	if v <<= shift; !ok || strconv.FormatUint(v, 10) == string(e.tree.Text(n)) || v > 1<<40 {
		return ""
	}
	return strconv.FormatUint(v, 10)
}

// meantDuration returns the duration that text was to be, as a configuration writes it, "" if it is not to be known: 5, 5S, 5 s, 1h30m,
// 2 minutes, 0,5s.
func meantDuration(text string) string {
	s := strings.ToLower(strings.ReplaceAll(text, " ", ""))
	if len(s) == 0 || len(s) > 64 {
		return ""
	}
	if i := strings.IndexByte(s, ','); i > 0 && !strings.Contains(s, ".") {
		s = s[:i] + "." + s[i+1:]
	}
	if last := s[len(s)-1]; last >= '0' && last <= '9' || last == '.' {
		s += "s"
	}
	if d, err := time.ParseDuration(shortUnits(strings.TrimPrefix(s, "pt"))); err == nil && d >= 0 {
		return seconds(d)
	}
	if days, ok := strings.CutSuffix(shortUnits(s), "d"); ok {
		if d, err := time.ParseDuration(days + "h"); err == nil && d >= 0 && d < 1<<57 {
			return seconds(24 * d)
		}
	}
	return ""
}

// shortUnits puts unitOf in the place of each word of s.
func shortUnits(s string) string {
	isUnit := func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' }
	var b strings.Builder
	for s != "" {
		n := len(s) - len(strings.TrimLeftFunc(s, isUnit))
		if n > 0 {
			b.WriteString(unitOf(s[:n]))
			s = s[n:]
		}
		n = len(s) - len(strings.TrimLeftFunc(s, func(r rune) bool { return !isUnit(r) }))
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

// unitOf shortens the name of a unit.
func unitOf(word string) string {
	switch strings.TrimSuffix(word, "s") {
	case "sec", "second":
		return "s"
	case "min", "minute":
		return "m"
	case "hr", "hour":
		return "h"
	case "day":
		return "d"
	case "msec", "milli", "millisecond":
		return "ms"
	case "usec", "micro", "microsecond":
		return "us"
	case "nsec", "nano", "nanosecond":
		return "ns"
	}
	return word
}
