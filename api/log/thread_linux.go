package log

import "syscall"

// threadID is what %t prints.
func threadID() int { return syscall.Gettid() }
