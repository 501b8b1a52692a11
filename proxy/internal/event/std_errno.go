//go:build !windows

package event

import "syscall"

// portable returns the POSIX number of e.
func portable(e syscall.Errno) syscall.Errno { return e }
