package event

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var _ Prober = (*epoll)(nil)

// Peek implements Prober.
func (d *epoll) Peek(h Handle) (int, syscall.Errno) {
	for {
		r, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(h), uintptr(unsafe.Pointer(&d.peek)), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		return int(r), 0
	}
}

// Acknowledged implements Prober. The kernel counts the SYN, too.
func (d *epoll) Acknowledged(h Handle) (uint64, bool) {
	size := uint32(unsafe.Sizeof(d.info))
	_, _, e := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, uintptr(h), unix.SOL_TCP, unix.TCP_INFO, uintptr(unsafe.Pointer(&d.info)), uintptr(unsafe.Pointer(&size)), 0)
	known := uintptr(size) >= unsafe.Offsetof(d.info.Bytes_acked)+unsafe.Sizeof(d.info.Bytes_acked)
	if e != 0 || !known || d.info.Bytes_acked == 0 {
		return 0, false
	}
	return d.info.Bytes_acked - 1, true
}
