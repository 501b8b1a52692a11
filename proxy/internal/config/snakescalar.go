package config

import (
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// AppendString writes a JSON string with the escapes of C++ protobuf, which also hides the characters that HTML or a
// terminal could take for something else.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = escapeASCII(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !hidden(r) {
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		if r > 0xffff {
			r -= 0x10000
			dst = appendU16(appendU16(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
		} else {
			dst = appendU16(dst, r)
		}
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func escapeASCII(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return appendU16(dst, rune(c))
}

func appendU16(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// hidden is the set of characters beyond ASCII that C++ protobuf escapes: controls, directions, separators, tags.
func hidden(r rune) bool {
	switch {
	case r < 0xa0, r == 0xad, r >= 0x600 && r <= 0x603, r == 0x6dd, r == 0x70f, r == 0x17b4, r == 0x17b5,
		r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2064, r >= 0x206a && r <= 0x206f,
		r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0x1d173 && r <= 0x1d17a, r == 0xe0001, r >= 0xe0020 && r <= 0xe007f:
		return true
	}
	return false
}

func appendEnum(dst []byte, d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) []byte {
	if d.FullName() == "google.protobuf.NullValue" {
		return append(dst, "null"...)
	}
	if v := d.Values().ByNumber(n); v != nil {
		return append(append(append(dst, '"'), v.Name()...), '"')
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// appendFloat writes a number as C's %.15g does, or %.17g if that loses something (%.6g and %.9g for a float).
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	short, long := 15, 17
	if bits == 32 {
		short, long = 6, 9
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, v, 'g', short, bits)
	if back, err := strconv.ParseFloat(string(dst[at:]), bits); err != nil || back != v {
		dst = strconv.AppendFloat(dst[:at], v, 'g', long, bits)
	}
	return dst
}

func appendDuration(dst []byte, secs, nanos int64) []byte {
	if secs < 0 || nanos < 0 {
		dst = append(dst, '-')
		secs, nanos = -secs, -nanos
	}
	dst = strconv.AppendInt(dst, secs, 10)
	return append(appendNanos(dst, nanos), 's')
}

// appendNanos writes a fraction of a second with 3, 6 or 9 decimals, nothing for 0.
func appendNanos(dst []byte, nanos int64) []byte {
	if nanos == 0 {
		return dst
	}
	digits := 9
	for digits > 3 && nanos%1000 == 0 {
		nanos /= 1000
		digits -= 3
	}
	s := strconv.FormatInt(nanos, 10)
	dst = append(dst, '.')
	for range digits - len(s) {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}
