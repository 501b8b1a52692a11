package server

import (
	"log/slog"

	"github.com/dragoman-proxy/dragoman/internal/invariant"
)

// logger returns the logger of one of Envoy's components. Lines are written where it happens, on the main loop: none of them
// belongs to a request.
func (s *Server) logger(component string) *slog.Logger { return s.cfg.Log.Logger(component) }

// watchBugs logs broken invariants as Envoy's bugs. The result ends it.
func (s *Server) watchBugs() (stop func()) {
	l := s.logger("envoy_bug")
	return invariant.Watch(func(r invariant.Report) {
		if r.Stack != nil {
			l.Error("envoy bug failure: " + r.String() + "\n" + string(r.Stack))
		}
	})
}
