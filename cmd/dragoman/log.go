package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/log"
)

// appLog is the application log of the process.
type appLog struct {
	set  *log.Set
	file *log.File // nil: standard error
}

// openLog makes the log that the flags describe. Beside an error it returns one that writes to standard error.
func openLog(f *flags) (*appLog, error) {
	l := &appLog{}
	var out io.Writer = os.Stderr
	var failed error
	if f.logPath != "" {
		var err error
		if l.file, err = log.OpenFile(f.logPath); err != nil {
			failed = fmt.Errorf("Failed to open log-file '%s'. e.what(): %w", f.logPath, err) //nolint:staticcheck // Envoy's text
		} else {
			out = l.file
		}
	}
	level, err := log.ParseLevel(f.logLevel)
	if err != nil {
		return l, err
	}
	l.set = log.New(log.Config{Output: out, Format: f.logFormat, Level: level, Escape: f.logEscaped})
	if f.componentLogLevel != "" {
		if err := l.set.SetLevels(f.componentLogLevel); err != nil {
			return l, err
		}
	}
	return l, failed
}

// reopen opens the file anew, after it was moved away.
func (l *appLog) reopen() {
	if l.file == nil {
		return
	}
	if err := l.file.Reopen(); err != nil {
		l.set.Logger("main").Error("cannot reopen the log file", "error", err)
	}
}

// refuse says why the proxy does not start, in the log and, where it would not be seen there, on standard error; it returns the exit
// code.
func (l *appLog) refuse(f *flags, err error) int {
	main := l.set.Logger("main")
	if f.mode == "validate" {
		main.Log(context.Background(), log.Critical, fmt.Sprintf("error initializing configuration '%s': %v", f.configPath, err))
		if l.file != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return 1
	}
	main.Log(context.Background(), log.Critical, fmt.Sprintf("error `%v` initializing config '%s'", err, f.configPath))
	main.Info("exiting")
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// levelName is a level as /server_info shows it.
func levelName(text string) string {
	l, err := log.ParseLevel(text)
	if err != nil {
		return text
	}
	return log.LevelName(l)
}

// list splits a comma-separated list; "" is an empty one.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// withoutExtensions takes extensions out of sets by their names, with or without their category; unknown are names that none has.
func withoutExtensions(sets []ext.Set, disabled string) (left []ext.Set, unknown []string) {
	names := map[string]bool{}
	for _, n := range list(disabled) {
		names[n] = false
	}
	if len(names) == 0 {
		return sets, nil
	}
	off := func(category, name string) bool {
		gone := false
		for _, n := range []string{name, category + "/" + name} {
			if _, ok := names[n]; ok {
				names[n], gone = true, true
			}
		}
		return gone
	}
	for _, s := range sets {
		var x ext.Set
		for _, f := range s.HTTPFilters {
			if !off("envoy.filters.http", f.Name) {
				x.HTTPFilters = append(x.HTTPFilters, f)
			}
		}
		for _, f := range s.NetworkFilters {
			if !off("envoy.filters.network", f.Name) {
				x.NetworkFilters = append(x.NetworkFilters, f)
			}
		}
		for _, f := range s.ListenerFilters {
			if !off("envoy.filters.listener", f.Name) {
				x.ListenerFilters = append(x.ListenerFilters, f)
			}
		}
		left = append(left, x)
	}
	for _, n := range list(disabled) {
		if !names[n] {
			unknown = append(unknown, n)
		}
	}
	return left, unknown
}
