package server

import (
	enginesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/regex_engines/v3"
)

// checkRegexEngine checks that the engine for regular expressions that the bootstrap asks for is the one that there is.
func (s *Server) checkRegexEngine() error {
	e := s.boot.GetDefaultRegexEngine()
	if e == nil || e.GetTypedConfig().MessageIs(&enginesv3.GoogleRE2{}) {
		return nil
	}
	return s.located("default_regex_engine", unknownExtension(e.GetName(), e.GetTypedConfig()))
}
