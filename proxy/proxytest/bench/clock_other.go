//go:build !linux

package bench

// threadCPU is not known here: the CPU histograms stay empty.
func threadCPU() int64 { return 0 }
