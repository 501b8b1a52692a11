package overload

import (
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
	seen := map[string]bool{}
	for i, r := range m.GetResourceMonitors() {
		path, name := fmt.Sprintf("resource_monitors[%d]", i), r.GetName()
		switch {
		case seen[name]:
			return &config.Error{Path: path, Msg: "Duplicate resource monitor " + name}
		case !monitors[name]:
			return &config.Error{Path: path, Msg: "Didn't find a registered implementation for '" + name + "' with type URL: '" +
				r.GetTypedConfig().GetTypeUrl() + "'"}
		case name != connectionsMonitor:
			return &config.Error{Path: path, Msg: name + ": not supported yet"}
		}
		seen[name] = true
		var c connectionsv3.DownstreamConnectionsConfig
		if err := r.GetTypedConfig().UnmarshalTo(&c); err != nil {
			return &config.Error{Path: path + ".typed_config", Msg: err.Error()}
		}
		scope := root.Scope("overload." + name)
		s.denied = scope.Counter("failed_updates")
		scope.Gauge("pressure")
		s.SetMaxConnections(uint64(c.GetMaxActiveDownstreamConnections()))
		s.monitored = true
	}
	return config.Refuse(gaps, m, "")
}
