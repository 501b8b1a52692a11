//go:build !linux

package bench

// threadCPU is not known here: the CPU histograms equal those of the clock.
func threadCPU() int64 { return now() }
