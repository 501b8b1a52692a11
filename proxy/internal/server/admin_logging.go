package server

import (
	"log/slog"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
)

var logLevels = log.LevelNames

// logChange is one thing that /logging was asked to do.
type logChange struct {
	name  string // "": all
	level slog.Level
}

// serveLogging answers /logging: it changes levels, and lists them.
func (s *Server) serveLogging(r *admin.Request, done func(*admin.Response)) {
	changes, problem := s.logChanges(r)
	if problem != "" {
		done(admin.Fail(400, "error: "+problem+"\n\nusage: /logging?<name>=<level> (change single level)\n"+
			"usage: /logging?paths=name1:level1,name2:level2,... (change multiple levels)\n"+
			"usage: /logging?level=<level> (change all levels)\n"+
			"usage: /logging?group=<group_name>:<level> (change group of loggers)\n"+
			"levels: "+strings.Join(logLevels, " ")+" \n"+s.activeLoggers()))
		return
	}
	for _, c := range changes {
		if c.name == "" {
			s.cfg.Log.SetAll(c.level)
		} else {
			s.cfg.Log.SetLevel(c.name, c.level)
		}
	}
	done(admin.OK(s.activeLoggers()))
}

// logChanges reads the parameters; either all of them are right or nothing is changed.
func (s *Server) logChanges(r *admin.Request) (list []logChange, problem string) {
	switch {
	case len(r.Query) == 0:
		return nil, ""
	case len(r.Query) > 1:
		return nil, "invalid number of query parameters"
	}
	for key, values := range r.Query {
		v := values[0]
		pairs := []string{key + ":" + v}
		switch key {
		case "level":
			if v == "" {
				return nil, ""
			}
			l, err := log.ParseLevel(v)
			if err != nil {
				return nil, "unknown logger level"
			}
			return []logChange{{"", l}}, ""
		case "paths":
			pairs = strings.Split(v, ",")
		case "group":
			pairs = []string{v}
		}
		for _, p := range pairs {
			c, problem := s.logChange(p)
			if problem != "" {
				return nil, problem
			}
			list = append(list, c)
		}
	}
	return list, ""
}

func (s *Server) logChange(pair string) (logChange, string) {
	name, level, ok := strings.Cut(pair, ":")
	if !ok || name == "" || level == "" {
		return logChange{}, "empty logger name or empty logger level"
	}
	l, err := log.ParseLevel(level)
	if err != nil {
		return logChange{}, "unknown logger level"
	}
	for _, c := range s.cfg.Log.Levels() {
		if c.Name == name {
			return logChange{name, l}, ""
		}
	}
	return logChange{}, "unknown logger name"
}

func (s *Server) activeLoggers() string {
	var b strings.Builder
	b.WriteString("active loggers:\n")
	for _, c := range s.cfg.Log.Levels() {
		b.WriteString("  " + c.Name + ": " + log.LevelName(c.Level) + "\n")
	}
	b.WriteString("\n")
	return b.String()
}
