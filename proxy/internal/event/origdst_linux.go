package event

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// soOriginalDst is SO_ORIGINAL_DST of netfilter, the same number for both families.
const soOriginalDst = 80

// OriginalDestination implements OriginalDestiner: netfilter's REDIRECT keeps it.
func (d *epoll) OriginalDestination(h Handle) (network.Address, syscall.Errno) {
	level := uintptr(unix.SOL_IP)
	if a := d.LocalAddress(h).IP; a.IsValid() && a.Addr().Is6() && !a.Addr().Is4In6() {
		level = unix.SOL_IPV6
	}
	size := uint32(unsafe.Sizeof(d.sa))
	_, _, e := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, uintptr(h), level, soOriginalDst, uintptr(unsafe.Pointer(&d.sa)),
		uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return network.Address{}, e
	}
	return decode(&d.sa, size), 0
}
