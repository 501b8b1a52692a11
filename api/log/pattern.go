package log

import (
	"encoding/json"
	"log/slog"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// module is cut off the paths of source files, as Envoy prints them below its own root.
const module = "github.com/dragoman-proxy/dragoman/"

// pattern is a compiled line format: spdlog's flags, and those that Envoy adds or means otherwise (%_, %j, %+ and %*).
type pattern []flag

// flag is a literal and the conversion after it, 0 at the end.
type flag struct {
	lit   string
	verb  byte
	width int
	align byte // '-' left, '=' centre, 0 right
	cut   bool // to width
}

// maxWidth bounds the padding of a flag, as in spdlog.
const maxWidth = 64

// verbs are the conversions that are known; others are printed as they are written.
const verbs = "vtPnlLaAbhBcCYDxmdHIMSefFEprRTXz^$+*&sg#!@%_jiouO"

// entry is one line to be.
type entry struct {
	time      time.Time
	level     slog.Level
	component string
	message   []byte
	pc        uintptr
	frame     runtime.Frame
	elapsed   time.Duration // since the entry before
}

func parsePattern(s string) pattern {
	var p pattern
	lit := ""
	for i := 0; i < len(s); {
		if s[i] != '%' {
			lit += s[i : i+1]
			i++
			continue
		}
		f, n := parseFlag(s[i+1:])
		if i+1+n == len(s) && f.verb == 0 {
			break // nothing comes after the %: it is left out
		}
		if f.verb == 0 {
			lit += "%"
			i += 1 + n
			continue
		}
		f.lit, lit = lit, ""
		p = append(p, f)
		i += 1 + n
	}
	if lit != "" {
		p = append(p, flag{lit: lit})
	}
	return p
}

// parseFlag reads what follows "%": alignment, width, "!" for cutting, and the conversion. Of one that is unknown only what is before
// it is read, and is lost, as in spdlog.
func parseFlag(s string) (f flag, n int) {
	i := 0
	if s != "" && (s[i] == '-' || s[i] == '=') {
		f.align = s[i]
		i++
	}
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		f.width = min(f.width*10+int(s[i]-'0'), maxWidth)
		i++
	}
	if i > start && i+1 < len(s) && s[i] == '!' && strings.IndexByte(verbs, s[i+1]) >= 0 {
		f.cut = true
		i++
	}
	if i == len(s) || strings.IndexByte(verbs, s[i]) < 0 {
		return f, i
	}
	f.verb = s[i]
	return f, i + 1
}

func (p pattern) append(dst []byte, e *entry) []byte {
	for i := range p {
		f := &p[i]
		dst = append(dst, f.lit...)
		if f.verb == 0 {
			continue
		}
		start := len(dst)
		dst = e.append(dst, f.verb)
		if f.width > 0 {
			dst = f.pad(dst, start)
		}
	}
	return dst
}

// pad brings what was appended from start on to the flag's width.
func (f *flag) pad(dst []byte, start int) []byte {
	n := len(dst) - start
	if n >= f.width {
		if f.cut {
			dst = dst[:start+f.width]
		}
		return dst
	}
	left := f.width - n
	switch f.align {
	case '-':
		left = 0
	case '=':
		left /= 2
	}
	right := f.width - n - left
	text := string(dst[start:])
	dst = append(dst[:start], strings.Repeat(" ", left)...)
	dst = append(dst, text...)
	return append(dst, strings.Repeat(" ", right)...)
}

func (e *entry) append(dst []byte, verb byte) []byte {
	switch verb {
	case 'v':
		return append(dst, e.message...)
	case '_':
		return append(dst, strings.ReplaceAll(string(e.message), "\n", `\n`)...)
	case 'j':
		return e.appendJSON(dst)
	case 'n':
		return append(dst, e.component...)
	case 'l':
		return append(dst, LevelName(e.level)...)
	case 'L':
		return append(dst, LevelName(e.level)[0]-'a'+'A')
	case 't':
		return strconv.AppendInt(dst, int64(threadID()), 10)
	case 'P':
		return strconv.AppendInt(dst, int64(os.Getpid()), 10)
	case '%':
		return append(dst, '%')
	case '^', '$': // colours
		return dst
	case '+': // the message without its tags; there are none
		return append(dst, e.message...)
	case '*', '&': // tags of the message, mapped diagnostic context
		return dst
	case 'u':
		return strconv.AppendInt(dst, int64(e.elapsed), 10)
	case 'i':
		return strconv.AppendInt(dst, e.elapsed.Microseconds(), 10)
	case 'o':
		return strconv.AppendInt(dst, e.elapsed.Milliseconds(), 10)
	case 'O':
		return strconv.AppendInt(dst, int64(e.elapsed/time.Second), 10)
	case 's', 'g', '#', '!', '@':
		return e.appendSource(dst, verb)
	}
	return e.appendTime(dst, verb)
}

// appendJSON appends the message as the inside of a JSON string.
func (e *entry) appendJSON(dst []byte) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(string(e.message)); err != nil {
		return dst
	}
	return append(dst, strings.TrimSuffix(b.String(), "\n")[1:b.Len()-2]...)
}

func (e *entry) appendSource(dst []byte, verb byte) []byte {
	if e.frame.PC == 0 && e.pc != 0 {
		e.frame, _ = runtime.CallersFrames([]uintptr{e.pc}).Next()
		if i := strings.Index(e.frame.Function, module); i >= 0 {
			// Where the source lies on the builder's disk says nothing: the package says where it is in the module.
			dir := e.frame.Function[i+len(module):]
			slash := strings.LastIndexByte(dir, '/')
			dot := strings.IndexByte(dir[slash+1:], '.')
			if dot >= 0 {
				dir = dir[:slash+1+dot]
			}
			e.frame.File = path.Join(strings.TrimSuffix(dir, "_test"), path.Base(e.frame.File))
		} else if strings.HasPrefix(e.frame.Function, "main.") {
			e.frame.File = path.Join("cmd", path.Base(path.Dir(e.frame.File)), path.Base(e.frame.File))
		}
	}
	switch verb {
	case 's':
		return append(dst, path.Base(e.frame.File)...)
	case 'g':
		return append(dst, e.frame.File...)
	case '#':
		return strconv.AppendInt(dst, int64(e.frame.Line), 10)
	case '!':
		name := e.frame.Function
		return append(dst, name[strings.LastIndexByte(name, '.')+1:]...)
	}
	dst = append(append(dst, e.frame.File...), ':')
	return strconv.AppendInt(dst, int64(e.frame.Line), 10)
}

// layouts are the conversions that the standard library can print.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'c': "Mon Jan 2 15:04:05 2006", 'C': "06", 'Y': "2006", 'D': "01/02/06",
	'x': "01/02/06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04",
	'T': "15:04:05", 'X': "15:04:05", 'z': "-07:00",
}

func (e *entry) appendTime(dst []byte, verb byte) []byte {
	ns := e.time.Nanosecond()
	switch verb {
	case 'e':
		return appendDigits(dst, ns/1e6, 3)
	case 'f':
		return appendDigits(dst, ns/1e3, 6)
	case 'F':
		return appendDigits(dst, ns, 9)
	case 'E':
		return strconv.AppendInt(dst, e.time.Unix(), 10)
	}
	return e.time.AppendFormat(dst, layouts[verb])
}

func appendDigits(dst []byte, v, width int) []byte {
	text := strconv.Itoa(v)
	for n := len(text); n < width; n++ {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}
