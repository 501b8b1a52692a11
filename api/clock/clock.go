// Package clock is the seam for time. The data plane reads time only through it (or through its worker, which reads it once a
// pass), so that tests and the simulation own time.
package clock

import "time"

// Clock tells the time. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the wall-clock time.
	Now() time.Time
	// Mono returns nanoseconds since some fixed point; it never goes back.
	Mono() int64
}

// System returns the real clock.
func System() Clock { return &system{start: time.Now()} }

type system struct{ start time.Time }

func (s *system) Now() time.Time { return time.Now() }
func (s *system) Mono() int64    { return int64(time.Since(s.start)) }
