package log_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/log"
)

type fixed time.Time

func (f fixed) Now() time.Time { return time.Time(f) }
func (f fixed) Mono() int64    { return 0 }

var at = fixed(time.Date(2026, 11, 29, 23, 6, 53, 923_004_005, time.UTC))

func set(format string, level slog.Level) (*log.Set, *bytes.Buffer) {
	var b bytes.Buffer
	return log.New(log.Config{Output: &b, Format: format, Level: level, Clock: at}), &b
}

func TestDefaultLine(t *testing.T) {
	s, b := set("", log.Info)
	s.Logger("main").Warn("caught signal", "name", "SIGTERM", "why", "a b", "n", 3, "empty", "")
	want := regexp.MustCompile(`^\[2026-11-29 23:06:53\.923\]\[\d+\]\[warning\]\[main\] \[api/log/log_test\.go:\d+\] ` +
		`caught signal name=SIGTERM why="a b" n=3 empty=""\n$`)
	if !want.Match(b.Bytes()) {
		t.Errorf("got %q", b)
	}
}

func TestFlags(t *testing.T) {
	for f, want := range map[string]string{
		"%l|%L|%n|%s|%v|%%|%k|%q|%":  "info|I|http|log_test.go|a\nb|%|%k|%q|",
		"%8l|%-8l|%=8l|%3!l|%^%l%$":  "    info|info    |  info  |inf|info",
		"%e|%f|%F|%E|%T|%D|%c":       "923|923004|923004005|1795993613|23:06:53|11/29/26|Sun Nov 29 23:06:53 2026",
		"%a %A %b %B %C %Y %m %d":    "Sun Sunday Nov November 26 2026 11 29",
		"%H %I %M %S %p %r %R %X %z": "23 11 06 53 PM 11:06:53 PM 23:06 23:06:53 +00:00",
		"%h [%+] [%*%&]":             "Nov [a\nb] []",
		"%u %i %o %O":                "0 0 0 0",
		"%5k %-9":                    "%k ", // a padding without a flag that is known is lost
		"%_":                         `a\nb`,
		`{"m":"%j"}`:                 `{"m":"a\nb"}`,
		"%g %!":                      "api/log/log_test.go TestFlags",
		"%99999l":                    strings.Repeat(" ", 60) + "info",
	} {
		s, b := set(f, log.Info)
		s.Logger("http").Info("a\nb")
		if got := strings.TrimSuffix(b.String(), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", f, got, want)
		}
	}
}

// ticking is a clock that goes on by 1.5 s at each look.
type ticking struct {
	fixed
	n *int
}

func (c ticking) Now() time.Time {
	*c.n++
	return time.Time(c.fixed).Add(time.Duration(*c.n) * 1500 * time.Millisecond)
}

func TestElapsed(t *testing.T) {
	var b bytes.Buffer
	s := log.New(log.Config{Output: &b, Format: "%u %i %o %O", Level: log.Info, Clock: ticking{at, new(int)}})
	s.Logger("http").Info("a")
	s.Logger("http").Info("b")
	if got, want := b.String(), "0 0 0 0\n1500000000 1500000 1500 1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLevels(t *testing.T) {
	s, b := set("%l %n %v", log.Warning)
	ctx := context.Background()
	upstream, main := s.Logger("upstream"), s.Logger("main")
	upstream.Info("no")
	main.Error("yes")
	if !s.SetLevel("upstream", log.Trace) || s.SetLevel("nologger", log.Trace) {
		t.Error("SetLevel knows the wrong names")
	}
	upstream.Log(ctx, log.Trace, "now")
	main.Info("still not")
	s.SetAll(log.Off)
	main.Log(ctx, log.Critical, "nothing")
	main.Log(ctx, log.Off, "nothing")
	if err := s.SetLevels("main:critical,config:warn"); err != nil {
		t.Error(err)
	}
	main.Log(ctx, log.Critical, "last")
	s.Logger("config").Warn("c")
	if got, want := b.String(), "error main yes\ntrace upstream now\ncritical main last\nwarning config c\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for list, want := range map[string]string{
		"blah:info":           "error: invalid component specified 'blah'",
		"main:blah":           "error: invalid log level specified 'blah'",
		"main":                "error: component log level not correctly specified 'main'",
		"http:info,main:blah": "error: invalid log level specified 'blah'",
	} {
		if err := s.SetLevels(list); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", list, err, want)
		}
	}
	levels := map[string]slog.Level{}
	for _, c := range s.Levels() {
		levels[c.Name] = c.Level
	}
	if len(levels) != 73 || levels["http"] != log.Off || levels["main"] != log.Critical {
		t.Errorf("%d components: %v", len(levels), levels)
	}
	if first := s.Levels()[0].Name; first != "a2a" {
		t.Errorf("the first is %s", first)
	}
}

func TestLevelNames(t *testing.T) {
	var got []string
	for _, n := range log.LevelNames {
		l, err := log.ParseLevel(n)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, log.LevelName(l))
	}
	if d := cmp.Diff(log.LevelNames, got); d != "" {
		t.Error(d)
	}
	if log.LevelName(-100) != "trace" || log.LevelName(100) != "off" || log.LevelName(log.Warning+1) != "warning" {
		t.Error("levels between have the wrong names")
	}
}

func TestAttributes(t *testing.T) {
	s, b := set("%v", log.Info)
	l := s.Logger("main").With("a", 1).WithGroup("g").With("b", 2)
	l.Info("m", "c", 3, slog.Group("h", "d", 4, "e", `x"y`))
	if got, want := b.String(), "m a=1 g.b=2 g.c=3 g.h.d=4 g.h.e=\"x\\\"y\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEscape(t *testing.T) {
	var b bytes.Buffer
	s := log.New(log.Config{Output: &b, Format: "%v", Escape: true})
	s.Logger("main").Info("a\n\t\"é\x01\\")
	if got, want := b.String(), `a\n\t\"\303\251\001\\`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Foreign components are made on first use and can be set like others; the format can change under use.
func TestThreads(t *testing.T) {
	s, b := set("%n %v", log.Info)
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 100 {
				s.Logger("mine").Info("x")
				s.SetLevel("mine", log.Info)
				s.SetFormat("%n %v")
				s.Levels()
			}
		}()
	}
	wg.Wait()
	if got := strings.Count(b.String(), "mine x\n"); got != 400 {
		t.Errorf("%d lines", got)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	f, err := log.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := log.New(log.Config{Output: f, Format: "%v"})
	s.Logger("main").Info("1")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	s.Logger("main").Info("2")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path + ".old": "1\n", path: "2\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := log.OpenFile(filepath.Join(dir, "nope", "x")); err == nil {
		t.Error("a file in no folder was opened")
	}
}
