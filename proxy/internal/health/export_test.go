package health

import "time"

// After is the time to the next check.
func (c *Checker) After(healthy, pending bool) time.Duration { return c.after(healthy, pending) }

var (
	Contains      = contains
	ServingStatus = servingStatus
	GRPCTimeout   = grpcTimeout
)
