package server

import (
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

// checkHeaderPrefix refuses another prefix of header names than the default, which may be written down.
func (s *Server) checkHeaderPrefix() error {
	switch s.boot.GetHeaderPrefix() {
	case "", "x-envoy":
		return nil
	default:
		return s.located("header_prefix", &config.Error{Msg: "not supported yet", Kind: config.Unsupported})
	}
}
