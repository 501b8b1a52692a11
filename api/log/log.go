// Package log is the application log: loggers by component, with Envoy's levels, component names and line format, on log/slog.
//
// A Set belongs to one proxy and is given around as a value; nothing here is global. Loggers may be used from any goroutine and
// write at once, under a lock, to the Set's output: nothing that happens per request may be logged above debug.
package log

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
)

// The levels beyond those of slog.
const (
	Trace    = slog.LevelDebug - 4
	Debug    = slog.LevelDebug
	Info     = slog.LevelInfo
	Warning  = slog.LevelWarn
	Error    = slog.LevelError
	Critical = slog.LevelError + 4
	Off      = slog.LevelError + 8
)

// LevelNames is what ParseLevel takes, in order.
var LevelNames = []string{"trace", "debug", "info", "warning", "error", "critical", "off"}

// ParseLevel reads a level's name; "warn" is "warning" too. The error is Envoy's.
func ParseLevel(name string) (slog.Level, error) {
	if name == "warn" {
		name = "warning"
	}
	for i, n := range LevelNames {
		if n == name {
			return Trace + slog.Level(4*i), nil
		}
	}
	return Info, fmt.Errorf("error: invalid log level specified '%s'", name)
}

// LevelName returns the name of a level, of the next lower one if it is none of ours.
func LevelName(l slog.Level) string {
	i := min(max(int(l-Trace)/4, 0), len(LevelNames)-1)
	return LevelNames[i]
}

// DefaultFormat is the line format where none is configured (--log-format).
const DefaultFormat = "[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v"

// Config is what a Set is made of.
type Config struct {
	// Output is where lines go, one Write each.
	Output io.Writer
	// Format is a pattern as in --log-format; empty means DefaultFormat.
	Format string
	// Level is that of all components at first.
	Level slog.Level
	// Escape shows control characters of messages as C escapes (--log-format-escaped).
	Escape bool
	// Clock, if set, gives the time of lines instead of the system.
	Clock clock.Clock
}

// Set is the loggers of one proxy.
type Set struct {
	clock  clock.Clock
	escape bool

	mu      sync.Mutex
	out     io.Writer
	pattern pattern
	buf     []byte
	list    []*component
	byName  map[string]*component
	initial slog.Level // of components that are made later
	last    time.Time  // when the last entry was written
}

// component is a named logger and its level.
type component struct {
	name   string
	level  slog.LevelVar
	logger *slog.Logger
}

// New returns a Set with Envoy's components.
func New(c Config) *Set {
	if c.Format == "" {
		c.Format = DefaultFormat
	}
	s := &Set{clock: c.Clock, escape: c.Escape, out: c.Output, pattern: parsePattern(c.Format), byName: map[string]*component{}, initial: c.Level}
	for _, name := range components {
		s.add(name)
	}
	return s
}

// Discard returns a Set that writes nothing.
func Discard() *Set { return New(Config{Output: io.Discard, Level: Off}) }

func (s *Set) add(name string) *component {
	c := &component{name: name}
	c.level.Set(s.initial)
	c.logger = slog.New(&handler{set: s, c: c})
	s.list = append(s.list, c)
	s.byName[name] = c
	return c
}

// Logger returns the logger of a component. One that Envoy does not have (a foreign extension's) is made at first use.
func (s *Set) Logger(name string) *slog.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.byName[name]
	if !ok {
		c = s.add(name)
	}
	return c.logger
}

// SetLevel sets the level of one component; false if there is none of this name.
func (s *Set) SetLevel(name string, l slog.Level) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.byName[name]
	if ok {
		c.level.Set(l)
	}
	return ok
}

// SetAll sets the level of all components.
func (s *Set) SetAll(l slog.Level) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initial = l
	for _, c := range s.list {
		c.level.Set(l)
	}
}

// SetLevels sets levels from "upstream:debug,config:trace" (--component-log-level); either all or none. Errors are Envoy's.
func (s *Set) SetLevels(list string) error {
	type change struct {
		name  string
		level slog.Level
	}
	var changes []change
	for _, e := range strings.Split(list, ",") {
		name, level, ok := strings.Cut(e, ":")
		if !ok || strings.Contains(level, ":") {
			return fmt.Errorf("error: component log level not correctly specified '%s'", e)
		}
		l, err := ParseLevel(level)
		if err != nil {
			return err
		}
		s.mu.Lock()
		_, known := s.byName[name]
		s.mu.Unlock()
		if !known {
			return fmt.Errorf("error: invalid component specified '%s'", name)
		}
		changes = append(changes, change{name, l})
	}
	for _, c := range changes {
		s.SetLevel(c.name, c.level)
	}
	return nil
}

// ComponentLevel is a component's name and level.
type ComponentLevel struct {
	Name  string
	Level slog.Level
}

// Levels returns all components in Envoy's order.
func (s *Set) Levels() []ComponentLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ComponentLevel, len(s.list))
	for i, c := range s.list {
		out[i] = ComponentLevel{c.name, c.level.Level()}
	}
	return out
}

// SetFormat changes the line format.
func (s *Set) SetFormat(format string) {
	p := parsePattern(format)
	s.mu.Lock()
	s.pattern = p
	s.mu.Unlock()
}

// handler is the slog.Handler of a component.
type handler struct {
	set   *Set
	c     *component
	attrs string // preformatted, each with a leading space
	group string // prefix of keys
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool {
	at := h.c.level.Level()
	return l >= at && at < Off
}

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	s := h.set
	e := entry{level: r.Level, component: h.c.name, pc: r.PC, time: r.Time}
	if s.clock != nil {
		e.time = s.clock.Now()
	}
	e.message = append(e.message, r.Message...)
	e.message = append(e.message, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		e.message = appendAttr(e.message, h.group, a)
		return true
	})
	if s.escape {
		e.message = appendEscaped(nil, e.message)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() {
		e.elapsed = max(e.time.Sub(s.last), 0)
	}
	s.last = e.time
	s.buf = append(s.pattern.append(s.buf[:0], &e), '\n')
	_, err := s.out.Write(s.buf)
	return err
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	b := []byte(h.attrs)
	for _, a := range attrs {
		b = appendAttr(b, h.group, a)
	}
	n.attrs = string(b)
	return &n
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	n := *h
	n.group += name + "."
	return &n
}

// appendAttr appends " key=value", quoting values that would not be one word.
func appendAttr(dst []byte, group string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, m := range v.Group() {
			dst = appendAttr(dst, group, m)
		}
		return dst
	}
	if a.Equal(slog.Attr{}) {
		return dst
	}
	dst = append(dst, ' ')
	dst = append(append(append(dst, group...), a.Key...), '=')
	text := v.String()
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || r == 0x7f }) {
		return fmt.Appendf(dst, "%q", text)
	}
	return append(dst, text...)
}

// appendEscaped appends text with control characters as C escapes.
func appendEscaped(dst, text []byte) []byte {
	const letters = "abtnvfr" // \a is 7
	for _, b := range text {
		switch {
		case b == '\\' || b == '"' || b == '\'':
			dst = append(dst, '\\', b)
		case b >= 7 && b <= 13:
			dst = append(dst, '\\', letters[b-7])
		case b < ' ' || b >= 0x7f:
			dst = fmt.Appendf(dst, `\%03o`, b)
		default:
			dst = append(dst, b)
		}
	}
	return dst
}
