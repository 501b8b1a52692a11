//go:build !linux

package log

import "os"

// threadID is what %t prints: where threads have no number of the system, the process's.
func threadID() int { return os.Getpid() }
