package event

import (
	"syscall"

	"golang.org/x/sys/unix"
)

var _ Splicer = (*epoll)(nil)

// NewPipe implements Splicer. The kernel may give less than size: unprivileged users have a budget of pages for all their pipes.
func (d *epoll) NewPipe(size int) (Pipe, syscall.Errno) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return Pipe{}, errno(err)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fds[1]), unix.F_SETPIPE_SZ, uintptr(size))
	return Pipe{R: int32(fds[0]), W: int32(fds[1])}, 0
}

// SpliceIn implements Splicer. p should be empty: EAGAIN from a pipe that has bytes may also mean that the pipe is full.
func (d *epoll) SpliceIn(h Handle, p Pipe, n int) (int, syscall.Errno) {
	return splice(int32(h), p.W, n, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
}

// SpliceOut implements Splicer. more holds back a last partial segment, as MSG_MORE does.
func (d *epoll) SpliceOut(p Pipe, h Handle, n int, more bool) (int, syscall.Errno) {
	flags := unix.SPLICE_F_MOVE | unix.SPLICE_F_NONBLOCK
	if more {
		flags |= unix.SPLICE_F_MORE
	}
	return splice(p.R, int32(h), n, flags)
}

// splice never blocks: the sockets and the pipe are non-blocking. A peer that is gone gives EPIPE; the runtime ignores the SIGPIPE
// that comes with it for all but the standard streams.
func splice(from, to int32, n, flags int) (int, syscall.Errno) {
	for {
		r, _, e := syscall.RawSyscall6(syscall.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n), uintptr(flags))
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		return int(r), 0
	}
}

// ClosePipe implements Splicer.
func (d *epoll) ClosePipe(p Pipe) {
	_ = unix.Close(int(p.R))
	_ = unix.Close(int(p.W))
}

// SharedHandles implements Sharer: file descriptors belong to the process.
func (d *epoll) SharedHandles() bool { return true }
