package server

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	aaccesslog "github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

func (s *Server) logDeps() *accesslog.Deps {
	return &accesslog.Deps{
		Manager: s.logs, Format: s.format, Runtime: s.runtime,
		Header: func(m *routev3.HeaderMatcher) (func(h *http.HeaderMap) bool, error) {
			f, err := route.HeaderMatcher(m)
			if err != nil {
				return nil, err
			}
			return f.Match, nil
		},
		String: func(m *matcherv3.StringMatcher) (func(string) bool, error) {
			f, err := route.StringMatcher(m)
			if err != nil {
				return nil, err
			}
			return f.Match, nil
		},
	}
}

// accessLogs builds loggers.
func (s *Server) accessLogs(list []*accesslogv3.AccessLog) (aaccesslog.Loggers, error) {
	return accesslog.NewAll(list, s.logDeps())
}

// mapperFilter builds the filter of a local reply mapper.
func (s *Server) mapperFilter(m *hcmv3.ResponseMapper) (aaccesslog.Filter, error) {
	return accesslog.NewFilter(m.GetFilter(), s.logDeps())
}

// ReopenLogs reopens the files of access logs. Safe from any goroutine.
func (s *Server) ReopenLogs() { s.main.Post(s.logs.Reopen) }
