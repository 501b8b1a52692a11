package bench

import "syscall"

// rusageThread is RUSAGE_THREAD.
const rusageThread = 1

// threadCPU is what the calling thread has used so far, in ns.
func threadCPU() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(rusageThread, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
