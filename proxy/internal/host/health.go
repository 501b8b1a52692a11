package host

// Flag is a reason for which a host is not simply healthy, or a mark. Names are those that /clusters prints.
type Flag uint32

// The flags.
const (
	FailedActiveHC Flag = 1 << iota
	FailedOutlierCheck
	FailedEDSHealth
	DegradedActiveHC
	DegradedEDSHealth
	PendingDynamicRemoval
	PendingActiveHC
	ExcludedViaImmediateHCFail
	ActiveHCTimeout
	EDSStatusDraining
	DegradedOutlier
	// Removed: the host is no longer in its cluster. Connections to it close after their last stream.
	Removed
	// Checked: the host has active health checks, which want to know if it says in an answer that it is not well.
	Checked
)

var flagNames = []struct {
	f    Flag
	name string
}{
	{FailedActiveHC, "/failed_active_hc"},
	{FailedOutlierCheck, "/failed_outlier_check"},
	{FailedEDSHealth, "/failed_eds_health"},
	{DegradedActiveHC, "/degraded_active_hc"},
	{DegradedEDSHealth, "/degraded_eds_health"},
	{PendingDynamicRemoval, "/pending_dynamic_removal"},
	{PendingActiveHC, "/pending_active_hc"},
	{ExcludedViaImmediateHCFail, "/excluded_via_immediate_hc_fail"},
	{ActiveHCTimeout, "/active_hc_timeout"},
	{EDSStatusDraining, "/eds_status_draining"},
	{DegradedOutlier, "/degraded_outlier"},
}

const (
	unhealthy = FailedActiveHC | FailedOutlierCheck | FailedEDSHealth | EDSStatusDraining
	degraded  = DegradedActiveHC | DegradedEDSHealth | DegradedOutlier
	excluded  = PendingActiveHC | ExcludedViaImmediateHCFail | EDSStatusDraining
)

// Health is a host's coarse health.
type Health uint8

// The three states of Health.
const (
	Healthy Health = iota
	Degraded
	Unhealthy
)

// Health returns what the flags amount to.
func (h *Host) Health() Health {
	switch f := Flag(h.flags.Load()); {
	case f&unhealthy != 0:
		return Unhealthy
	case f&degraded != 0:
		return Degraded
	}
	return Healthy
}

// Excluded tells whether the host does not count when the share of healthy hosts is computed: it waits for its first health
// check, excluded itself, or is draining.
func (h *Host) Excluded() bool { return Flag(h.flags.Load())&excluded != 0 }

// Has tells whether one of the flags is set.
func (h *Host) Has(f Flag) bool { return Flag(h.flags.Load())&f != 0 }

// SetFlag sets or clears f and tells whether that changed something. owner: main loop.
func (h *Host) SetFlag(f Flag, on bool) bool {
	old := Flag(h.flags.Load())
	now := old &^ f
	if on {
		now = old | f
	}
	if now == old {
		return false
	}
	h.flags.Store(uint32(now))
	return true
}

// AppendFlags appends what /clusters prints as health_flags: "healthy", or the set flags.
func (h *Host) AppendFlags(dst []byte) []byte {
	f := Flag(h.flags.Load())
	n := len(dst)
	for i := range flagNames {
		if f&flagNames[i].f != 0 {
			dst = append(dst, flagNames[i].name...)
		}
	}
	if len(dst) == n {
		dst = append(dst, "healthy"...)
	}
	return dst
}

// Result is how a try fared that brought no response.
type Result uint8

// Results, as outlier detection tells them apart.
const (
	// ConnectSuccess and ConnectFailed, ConnectTimeout: what became of a connection.
	ConnectSuccess Result = iota
	ConnectFailed
	ConnectTimeout
	// RequestSuccess and RequestFailed: a TCP session, or a request that was reset or timed out.
	RequestSuccess
	RequestFailed
	RequestTimeout
)

// Monitor is told how requests to a host fared. It is called by all workers.
type Monitor interface {
	// PutResponse is told the code of a response.
	PutResponse(code int)
	PutResult(r Result)
}
