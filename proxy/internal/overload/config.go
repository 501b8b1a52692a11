package overload

import (
	"errors"
	"fmt"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
)

const connectionsMonitor = "envoy.resource_monitors.global_downstream_max_connections"

// monitors are those that Envoy has.
var monitors = map[string]bool{
	connectionsMonitor: true, "envoy.resource_monitors.fixed_heap": true, "envoy.resource_monitors.cgroup_memory": true,
	"envoy.resource_monitors.cpu_utilization": true, "envoy.resource_monitors.injected_resource": true,
}

// Configure reads the bootstrap's overload_manager; nil is none. Errors name the field below it.
func (s *State) Configure(m *overloadv3.OverloadManager, root apistats.Scope) error {
	if m == nil {
		return nil
	}
	var errs config.Errors
	seen := map[string]bool{}
	for i, r := range m.GetResourceMonitors() {
		path, name := fmt.Sprintf("resource_monitors[%d]", i), r.GetName()
		if seen[name] {
			errs.Collect(path+".name", errors.New("Duplicate resource monitor "+name)) //nolint:staticcheck // Envoy's text
			continue
		}
		seen[name] = true
		errs.Collect(path, s.monitor(r, root))
	}
	errs.Collect("", config.Refuse(gaps, m, ""))
	return errs.Err()
}

func (s *State) monitor(r *overloadv3.ResourceMonitor, root apistats.Scope) error {
	name := r.GetName()
	switch {
	case !monitors[name]:
		return config.Unregistered(name, r.GetTypedConfig())
	case name != connectionsMonitor:
		return &config.Error{Msg: name + ": not supported yet", Extension: name}
	}
	var c connectionsv3.DownstreamConnectionsConfig
	if err := config.Into(r.GetTypedConfig(), &c); err != nil {
		return config.At("typed_config", err)
	}
	scope := root.Scope("overload." + name)
	s.denied = scope.Counter("failed_updates")
	scope.Gauge("pressure")
	s.SetMaxConnections(uint64(c.GetMaxActiveDownstreamConnections()))
	s.monitored = true
	return nil
}
