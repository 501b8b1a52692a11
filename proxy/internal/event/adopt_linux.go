package event

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Adopt returns a descriptor of its own for ln's socket: closing it leaves ln as it was.
func (d *epoll) Adopt(ln net.Listener) (Handle, error) {
	raw, err := rawListener(ln)
	if err != nil {
		return NoHandle, err
	}
	fd := -1
	var dup error
	if err = raw.Control(func(p uintptr) { fd, dup = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0) }); err == nil {
		err = dup
	}
	if err != nil {
		return NoHandle, os.NewSyscallError("dup", err)
	}
	return Handle(fd), nil
}
