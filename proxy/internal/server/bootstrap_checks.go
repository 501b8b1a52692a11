package server

import (
	"errors"
	"fmt"
	"os"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	enginesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/regex_engines/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// checkRegexEngine checks that the engine for regular expressions that the bootstrap asks for is the one that there is.
func (s *Server) checkRegexEngine() error {
	e := s.boot.GetDefaultRegexEngine()
	if e == nil || config.Holds(e.GetTypedConfig(), &enginesv3.GoogleRE2{}) {
		return nil
	}
	return s.located("default_regex_engine", config.Unregistered(e.GetName(), e.GetTypedConfig()))
}

// checkWatchdogs refuses both ways of writing watchdogs at once, and actions that Envoy does not have.
func (s *Server) checkWatchdogs() error {
	old, now := s.boot.GetWatchdog(), s.boot.GetWatchdogs() //nolint:staticcheck // deprecated, and valid
	if old != nil && now != nil {
		return s.located("watchdogs", errors.New("Only one of watchdog or watchdogs should be set!")) //nolint:staticcheck // Envoy's text
	}
	var errs config.Errors
	for path, d := range map[string]*bootstrapv3.Watchdog{
		"watchdog": old, "watchdogs.main_thread_watchdog": now.GetMainThreadWatchdog(), "watchdogs.worker_watchdog": now.GetWorkerWatchdog(),
	} {
		for i, a := range d.GetActions() {
			if x := config.Unregistered(a.GetConfig().GetName(), a.GetConfig().GetTypedConfig()); !x.Known() {
				errs.Collect("", s.located(fmt.Sprintf("%s.actions[%d].config", path, i), x))
			}
		}
	}
	return errs.Err()
}

// checkEventLog opens the log of ejected hosts, as Envoy does, though nothing is written to it yet.
func (s *Server) checkEventLog() error {
	path := s.boot.GetClusterManager().GetOutlierDetection().GetEventLogPath()
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // others may read logs
	if err != nil {
		return s.located("cluster_manager.outlier_detection.event_log_path", fmt.Errorf("unable to open file '%s': %w", path, err))
	}
	return f.Close()
}

// checkHeaderPrefix refuses another prefix of header names than the default, which may be written down.
func (s *Server) checkHeaderPrefix() error {
	switch s.boot.GetHeaderPrefix() {
	case "", "x-envoy":
		return nil
	default:
		return s.located("header_prefix", &config.Error{Msg: "not supported yet", Kind: config.Unsupported})
	}
}
