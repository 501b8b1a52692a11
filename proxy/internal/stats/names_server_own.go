package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of BootstrapReloads.
const (
	ReloadApplied api.CounterIndex = 0
	ReloadPartial api.CounterIndex = 1
	ReloadRefused api.CounterIndex = 2

	ReloadAppliedTime api.GaugeIndex = 3
	ReloadRefusedTime api.GaugeIndex = 4
)

// BootstrapReloads counts bootstraps that were read anew, "server.dragoman.reload.". Nothing of it shows before the first one.
//
// applied counts those of which all serves, partial those of which something could not be applied or waits for a restart, and the old
// serves on there, refused those that changed nothing. The times are those of the last one that was applied, at least in part, and of the last one that was
// refused, in milliseconds since 1970, as Envoy's update_time.
var BootstrapReloads = api.MustTemplate("bootstrap reloads",
	api.LazyCounter(ReloadApplied, "applied"),
	api.LazyCounter(ReloadPartial, "partial"),
	api.LazyCounter(ReloadRefused, "refused"),
	api.LazyGauge(ReloadAppliedTime, "applied_time"),
	api.LazyGauge(ReloadRefusedTime, "refused_time"),
)
