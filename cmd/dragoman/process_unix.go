//go:build unix

package main

import (
	"os"
	"syscall"
)

// reopenSignal has the log files opened anew.
var reopenSignal os.Signal = syscall.SIGUSR1

// raiseLimits takes as many descriptors as the process may have.
func raiseLimits() {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) == nil && lim.Cur < lim.Max {
		lim.Cur = lim.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim)
	}
}
