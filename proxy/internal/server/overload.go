package server

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/overload"
	"github.com/dragoman-proxy/dragoman/proxy/internal/runtime"
)

// connectionsKey is the runtime key that limits downstream connections where no resource monitor does.
const connectionsKey = "overload.global_downstream_max_connections"

// buildOverload makes what protects the process from too much work. Runtime and listeners need it.
func (s *Server) buildOverload() error {
	s.overload = overload.New()
	if err := s.overload.Configure(s.boot.GetOverloadManager(), s.store.Root()); err != nil {
		return s.located("overload_manager", err)
	}
	return nil
}

// overloadFromRuntime takes over the limit that runtime sets.
func (s *Server) overloadFromRuntime(r *runtime.Snapshot) {
	s.overload.SetMaxConnections(r.Uint(connectionsKey, 0))
}

// warnOfConnections says at the start what Envoy says of the limit of connections.
func (s *Server) warnOfConnections() {
	l := s.logger("main")
	_, limited := s.overload.MaxConnections()
	switch {
	case s.overload.Monitored():
	case limited:
		l.Warn("Usage of the deprecated runtime key overload.global_downstream_max_connections, consider switching to " +
			"`envoy.resource_monitors.global_downstream_max_connections` instead. This runtime key will be removed in future.")
	default:
		l.Warn("There is no configured limit to the number of allowed active downstream connections. Configure a limit in " +
			"`envoy.resource_monitors.global_downstream_max_connections` resource monitor.")
	}
}
