package format

import (
	"strconv"
	"strings"
	"time"
)

// layout is a compiled time format: strftime (POSIX), with what abseil and Envoy add: %E3S, %E*S, %E3f, %Ez, %E4Y, and %f with a
// digit in front for fractions of a second.
type layout []timeVerb

// timeVerb is a literal and the conversion after it, 0 at the end.
type timeVerb struct {
	lit   string
	verb  byte
	ext   byte // 'E' for abseil's extensions
	width int  // digits of a fraction, -1 for "*"; least width of a number
	flag  byte // one of _ - 0 ^ #
}

func compileTime(format string) (layout, error) {
	if printsNewline(format) {
		return nil, errNewline
	}
	var out layout
	lit := ""
	for i := 0; i < len(format); {
		if format[i] != '%' {
			lit += format[i : i+1]
			i++
			continue
		}
		v, n := scanVerb(format[i:])
		switch {
		case n == 0: // not a conversion: printed as it is
			lit += "%"
			i++
		case v.verb == '%':
			lit += "%"
			i += n
			// %%f and %%3f: Envoy looks for fractions before anything else.
			if f, k := fraction(format[i-1:]); k > 0 {
				f.lit, lit = lit, ""
				out = append(out, f)
				i += k - 1
			}
		default:
			v.lit, lit = lit, ""
			out = append(out, v)
			i += n
		}
	}
	if lit != "" {
		out = append(out, timeVerb{lit: lit})
	}
	return out, nil
}

// printsNewline tells whether %n is in the format, with whatever flags, width and modifier. Its output could break a header,
// therefore Envoy refuses it.
func printsNewline(format string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		rest := strings.TrimLeft(format[i+1:], "-_0^#")
		rest = strings.TrimLeft(rest, "123456789")
		if rest != "" && (rest[0] == 'E' || rest[0] == 'O') {
			rest = rest[1:]
		}
		if strings.HasPrefix(rest, "n") {
			return true
		}
	}
	return false
}

// fraction reads %f or %3f.
func fraction(s string) (v timeVerb, n int) {
	if len(s) > 1 && s[1] == 'f' {
		return timeVerb{verb: 'f', width: 9}, 2
	}
	if len(s) > 2 && s[1] >= '1' && s[1] <= '9' && s[2] == 'f' {
		return timeVerb{verb: 'f', width: int(s[1] - '0')}, 3
	}
	return v, 0
}

// plainVerbs are the conversions without modifiers.
const plainVerbs = "aAbBcCdDeFgGhHIjklmMpPrRsStTuUVwWxXyYzZ%"

// scanVerb reads a conversion and returns its length, 0 if there is none.
func scanVerb(s string) (v timeVerb, n int) {
	if v, n = fraction(s); n > 0 {
		return v, n
	}
	i := 1
	if i < len(s) && strings.IndexByte("_-0^#", s[i]) >= 0 {
		v.flag = s[i]
		i++
	}
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' && i-start < 3 {
		v.width = v.width*10 + int(s[i]-'0')
		i++
	}
	if i == len(s) {
		return v, 0
	}
	switch {
	case s[i] == 'E' && i == 1:
		return scanExtended(s)
	case (s[i] == 'O' || s[i] == 'E') && i+1 < len(s) && strings.IndexByte("dHImMSuUVwWyYcCxX", s[i+1]) >= 0:
		v.verb = s[i+1]
		return v, i + 2
	case s[i] == ':':
		k := 0
		for i+k < len(s) && s[i+k] == ':' {
			k++
		}
		if i == 1 && k <= 3 && i+k < len(s) && s[i+k] == 'z' {
			return timeVerb{verb: 'z', ext: ':', width: k}, i + k + 1
		}
	case strings.IndexByte(plainVerbs, s[i]) >= 0:
		v.verb = s[i]
		return v, i + 1
	}
	return v, 0
}

// scanExtended reads what follows %E.
func scanExtended(s string) (v timeVerb, n int) {
	rest := s[2:]
	v.ext = 'E'
	switch {
	case strings.HasPrefix(rest, "z"):
		return timeVerb{verb: 'z', ext: ':', width: 1}, 3
	case strings.HasPrefix(rest, "*z"):
		return timeVerb{verb: 'z', ext: ':', width: 2}, 4
	case strings.HasPrefix(rest, "*S"), strings.HasPrefix(rest, "*f"):
		return timeVerb{verb: rest[1], ext: 'E', width: -1}, 4
	case strings.HasPrefix(rest, "4Y"):
		return timeVerb{verb: 'Y', width: 4}, 4
	case rest != "" && strings.IndexByte("cCxXyY", rest[0]) >= 0:
		return timeVerb{verb: rest[0]}, 3
	case strings.HasPrefix(rest, "T"): // abseil's separator
		return timeVerb{verb: 'T', ext: 'E'}, 3
	}
	i := 0
	for i < len(rest) && i < 3 && rest[i] >= '0' && rest[i] <= '9' {
		v.width = v.width*10 + int(rest[i]-'0')
		i++
	}
	if i > 0 && i < len(rest) && (rest[i] == 'S' || rest[i] == 'f') {
		v.verb = rest[i]
		return v, i + 3
	}
	return v, 0
}

func (l layout) append(dst []byte, t time.Time) []byte {
	for i := range l {
		v := &l[i]
		dst = append(dst, v.lit...)
		if v.verb != 0 {
			dst = v.append(dst, t)
		}
	}
	return dst
}

func (v *timeVerb) append(dst []byte, t time.Time) []byte {
	switch v.verb {
	case 'f':
		return appendFraction(dst, t.Nanosecond(), v.width)
	case 'S':
		dst = v.number(dst, t.Second(), 2)
		if v.ext == 'E' && v.width != 0 {
			dst = append(dst, '.')
			k := len(dst)
			if dst = appendFraction(dst, t.Nanosecond(), v.width); v.width < 0 && len(dst) == k {
				dst = dst[:k-1]
			}
		}
		return dst
	case 'T':
		if v.ext == 'E' {
			return append(dst, 'T')
		}
		return appendClock(dst, t)
	case 'z':
		return v.zone(dst, t)
	}
	if dst, ok := v.appendNumber(dst, t); ok {
		return dst
	}
	return v.appendText(dst, t)
}

// appendNumber appends the conversions that print one number.
func (v *timeVerb) appendNumber(dst []byte, t time.Time) (_ []byte, ok bool) {
	switch v.verb {
	case 'Y':
		return v.number(dst, t.Year(), 1), true
	case 'm':
		return v.number(dst, int(t.Month()), 2), true
	case 'd':
		return v.number(dst, t.Day(), 2), true
	case 'H':
		return v.number(dst, t.Hour(), 2), true
	case 'M':
		return v.number(dst, t.Minute(), 2), true
	case 's':
		return v.number(dst, int(t.Unix()), 1), true
	case 'j':
		return v.number(dst, t.YearDay(), 3), true
	case 'y':
		return v.number(dst, t.Year()%100, 2), true
	case 'C':
		return v.number(dst, t.Year()/100, 2), true
	case 'I':
		return v.number(dst, hour12(t), 2), true
	case 'e':
		return v.spaced(dst, t.Day()), true
	case 'k':
		return v.spaced(dst, t.Hour()), true
	case 'l':
		return v.spaced(dst, hour12(t)), true
	case 'u':
		return v.number(dst, (int(t.Weekday())+6)%7+1, 1), true
	case 'w':
		return v.number(dst, int(t.Weekday()), 1), true
	case 'U':
		return v.number(dst, (t.YearDay()+6-int(t.Weekday()))/7, 2), true
	case 'W':
		return v.number(dst, (t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2), true
	case 'V':
		_, week := t.ISOWeek()
		return v.number(dst, week, 2), true
	case 'G':
		year, _ := t.ISOWeek()
		return v.number(dst, year, 1), true
	case 'g':
		year, _ := t.ISOWeek()
		return v.number(dst, year%100, 2), true
	}
	return dst, false
}

// appendText appends the conversions that print words, or several numbers (in the C locale).
func (v *timeVerb) appendText(dst []byte, t time.Time) []byte {
	switch v.verb {
	case 'a':
		return v.cased(dst, t.Weekday().String()[:3])
	case 'A':
		return v.cased(dst, t.Weekday().String())
	case 'b', 'h':
		return v.cased(dst, t.Month().String()[:3])
	case 'B':
		return v.cased(dst, t.Month().String())
	case 'p':
		return v.cased(dst, ampm(t))
	case 'P':
		return append(dst, strings.ToLower(ampm(t))...)
	case 'D', 'x':
		dst = append(append2(dst, int(t.Month())), '/')
		dst = append(append2(dst, t.Day()), '/')
		return append2(dst, t.Year()%100)
	case 'F':
		dst = append(appendPadded(dst, t.Year(), 1), '-')
		dst = append(append2(dst, int(t.Month())), '-')
		return append2(dst, t.Day())
	case 'R':
		dst = append(append2(dst, t.Hour()), ':')
		return append2(dst, t.Minute())
	case 'X':
		return appendClock(dst, t)
	case 'r':
		dst = append(append2(dst, hour12(t)), ':')
		dst = append(append2(dst, t.Minute()), ':')
		dst = append(append2(dst, t.Second()), ' ')
		return append(dst, ampm(t)...)
	case 'c':
		dst = append(append(dst, t.Weekday().String()[:3]...), ' ')
		dst = append(append(dst, t.Month().String()[:3]...), ' ')
		dst = append((&timeVerb{}).spaced(dst, t.Day()), ' ')
		dst = append(appendClock(dst, t), ' ')
		return appendPadded(dst, t.Year(), 1)
	case 't':
		return append(dst, '\t')
	case 'Z':
		name, _ := t.Zone()
		return append(dst, name...)
	}
	return dst
}

func hour12(t time.Time) int { return (t.Hour()+11)%12 + 1 }

func ampm(t time.Time) string {
	if t.Hour() < 12 {
		return "AM"
	}
	return "PM"
}

func appendClock(dst []byte, t time.Time) []byte {
	h, m, s := t.Clock()
	dst = append(append2(dst, h), ':')
	dst = append(append2(dst, m), ':')
	return append2(dst, s)
}

// number appends n with leading zeros to width, as flags ask.
func (v *timeVerb) number(dst []byte, n, width int) []byte {
	if v.ext != 'E' && v.width > width {
		width = v.width
	}
	switch v.flag {
	case '-':
		return strconv.AppendInt(dst, int64(n), 10)
	case '_':
		return appendFilled(dst, n, width, ' ')
	}
	return appendPadded(dst, n, width)
}

// spaced appends n with a leading space to two characters.
func (v *timeVerb) spaced(dst []byte, n int) []byte {
	switch v.flag {
	case '-':
		return strconv.AppendInt(dst, int64(n), 10)
	case '0':
		return appendPadded(dst, n, 2)
	}
	return appendFilled(dst, n, max(v.width, 2), ' ')
}

func (v *timeVerb) cased(dst []byte, s string) []byte {
	switch {
	case v.flag == '^' || v.flag == '#' && v.verb != 'p':
		s = strings.ToUpper(s)
	case v.flag == '#':
		s = strings.ToLower(s)
	}
	return append(dst, s...)
}

// appendFraction appends the first digits of ns; width -1 leaves trailing zeros out.
func appendFraction(dst []byte, ns, width int) []byte {
	start := len(dst)
	dst = appendPadded(dst, ns, 9)
	if width < 0 {
		for len(dst) > start && dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
		return dst
	}
	for ; width > 9; width-- {
		dst = append(dst, '0')
	}
	if width < 9 {
		dst = dst[:start+width]
	}
	return dst
}

// zone appends +hhmm, or with colons: 1 +hh:mm, 2 +hh:mm:ss, 3 as short as possible.
func (v *timeVerb) zone(dst []byte, t time.Time) []byte {
	_, offset := t.Zone()
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	h, m, s := offset/3600, offset/60%60, offset%60
	dst = append2(append(dst, sign), h)
	if v.ext != ':' {
		return append2(dst, m)
	}
	if v.width < 3 || m != 0 || s != 0 {
		dst = append2(append(dst, ':'), m)
	}
	if v.width == 2 || v.width == 3 && s != 0 {
		dst = append2(append(dst, ':'), s)
	}
	return dst
}
