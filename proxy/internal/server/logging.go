package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/api/log"
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

// buildLog reads application_log_config.
func (s *Server) buildLog() error {
	p := s.boot.GetApplicationLogConfig().GetLogFormat()
	if p == nil {
		return nil
	}
	if f := s.cfg.Options.CommandLine.LogFormat; f != "" && f != log.DefaultFormat {
		return s.located("application_log_config.log_format",
			errors.New("Only one of ApplicationLogConfig.log_format or CLI option --log-format can be specified.")) //nolint:staticcheck // Envoy's text
	}
	switch f := p.GetLogFormat().(type) {
	case *bootstrapv3.Bootstrap_ApplicationLogConfig_LogFormat_TextFormat:
		s.cfg.Log.SetFormat(f.TextFormat)
	case *bootstrapv3.Bootstrap_ApplicationLogConfig_LogFormat_JsonFormat:
		text, err := jsonLogFormat(f.JsonFormat)
		if err != nil {
			return s.located("application_log_config.log_format.json_format", err)
		}
		s.cfg.Log.SetFormat(text)
	}
	return nil
}

// jsonLogFormat turns an object whose strings are patterns into one pattern. The message must be escaped: %j does it, %v and %_ do not.
func jsonLogFormat(p *structpb.Struct) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p.AsMap()); err != nil {
		return "", err
	}
	text := strings.TrimSuffix(b.String(), "\n")
	for _, flag := range []string{"%v", "%_"} {
		if strings.Contains(text, flag) {
			return "", errors.New("setJsonLogFormat error: INVALID_ARGUMENT: Usage of " + flag + " is unavailable for JSON log formats")
		}
	}
	return text, nil
}
