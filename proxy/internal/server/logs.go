package server

import (
	"errors"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"

	aaccesslog "github.com/dragoman-proxy/dragoman/api/accesslog"
)

// accessLogs builds the loggers of a manager.
func (s *Server) accessLogs(list []*accesslogv3.AccessLog) (aaccesslog.Loggers, error) {
	if len(list) > 0 {
		return nil, errors.New("access_log is not supported yet")
	}
	return nil, nil
}
