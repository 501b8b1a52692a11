package event

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dragoman-proxy/dragoman/api/network"
)

func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return syscall.EINVAL
}

func socket(family, typ int) (int, syscall.Errno) {
	r, _, e := syscall.RawSyscall(syscall.SYS_SOCKET, uintptr(family), uintptr(typ|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), 0)
	return int(r), e
}

func noDelay(fd int) {
	one := int32(1)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, uintptr(unsafe.Pointer(&one)), 4, 0)
}

func family(a *network.Address) int {
	switch {
	case a.Path != "":
		return unix.AF_UNIX
	case a.IP.Addr().Is4():
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// encode writes a into sa and returns its length.
func encode(sa *syscall.RawSockaddrAny, a *network.Address) (uint32, syscall.Errno) {
	switch family(a) {
	case unix.AF_UNIX:
		u := (*syscall.RawSockaddrUnix)(unsafe.Pointer(sa))
		*u = syscall.RawSockaddrUnix{Family: unix.AF_UNIX}
		if len(a.Path) >= len(u.Path) {
			return 0, syscall.ENAMETOOLONG
		}
		for i := 0; i < len(a.Path); i++ {
			u.Path[i] = int8(a.Path[i])
		}
		if a.Path[0] == '@' {
			u.Path[0] = 0
			return uint32(2 + len(a.Path)), 0
		}
		return uint32(2 + len(a.Path) + 1), 0
	case unix.AF_INET:
		u := (*syscall.RawSockaddrInet4)(unsafe.Pointer(sa))
		*u = syscall.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(a.IP.Port()), Addr: a.IP.Addr().As4()}
		return uint32(unsafe.Sizeof(*u)), 0
	}
	u := (*syscall.RawSockaddrInet6)(unsafe.Pointer(sa))
	*u = syscall.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(a.IP.Port()), Addr: a.IP.Addr().As16()}
	if z := a.IP.Addr().Zone(); z != "" {
		i, err := net.InterfaceByName(z)
		if err != nil {
			return 0, syscall.EADDRNOTAVAIL
		}
		u.Scope_id = uint32(i.Index)
	}
	return uint32(unsafe.Sizeof(*u)), 0
}

// swap turns a port into network byte order, which the raw structures want.
func swap(p uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&p))
	return uint16(b[0])<<8 | uint16(b[1])
}

func decode(sa *syscall.RawSockaddrAny, size uint32) network.Address {
	switch sa.Addr.Family {
	case unix.AF_INET:
		u := (*syscall.RawSockaddrInet4)(unsafe.Pointer(sa))
		return network.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4(u.Addr), swap(u.Port)))
	case unix.AF_INET6:
		u := (*syscall.RawSockaddrInet6)(unsafe.Pointer(sa))
		ip := netip.AddrFrom16(u.Addr)
		if !ip.Is4In6() && u.Scope_id != 0 {
			ip = ip.WithZone(fmt.Sprint(u.Scope_id))
		}
		return network.AddrFrom(netip.AddrPortFrom(ip.Unmap(), swap(u.Port)))
	case unix.AF_UNIX:
		u := (*syscall.RawSockaddrUnix)(unsafe.Pointer(sa))
		n := int(size) - 2
		if n <= 0 {
			return network.Address{Path: "@"} // an unnamed client
		}
		b := make([]byte, 0, n)
		for i, c := range u.Path[:n] {
			if c == 0 {
				if i > 0 {
					break
				}
				c = '@'
			}
			b = append(b, byte(c))
		}
		return network.Address{Path: string(b)}
	}
	return network.Address{}
}

func (d *epoll) bind(fd int, a *network.Address) syscall.Errno {
	size, e := encode(&d.sa, a)
	if e != 0 {
		return e
	}
	_, _, e = syscall.RawSyscall(syscall.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&d.sa)), uintptr(size))
	return e
}

// Listen opens a listening socket with SO_REUSEADDR, as every server does, and SO_REUSEPORT if asked.
func (d *epoll) Listen(s *ListenSpec) (Handle, error) {
	h, err := d.bound(s)
	if err != nil {
		return NoHandle, err
	}
	backlog := s.Backlog
	if backlog <= 0 {
		backlog = unix.SOMAXCONN
	}
	if err := unix.Listen(int(h), backlog); err != nil {
		d.CloseHandle(h, false)
		return NoHandle, os.NewSyscallError("listen", errno(err))
	}
	if e := d.setOptions(h, s.Options, StateListening); e != 0 {
		d.CloseHandle(h, false)
		return NoHandle, os.NewSyscallError("setsockopt", e)
	}
	return h, nil
}

// Probe binds a socket and closes it.
func (d *epoll) Probe(s *ListenSpec) error {
	h, err := d.bound(s)
	if err != nil {
		return err
	}
	d.CloseHandle(h, false)
	if s.Address.IsUnix() && s.Address.Path[0] != '@' {
		_ = os.Remove(s.Address.Path)
	}
	return nil
}

// bound opens a socket and binds it.
func (d *epoll) bound(s *ListenSpec) (Handle, error) {
	fam := family(&s.Address)
	fd, e := socket(fam, unix.SOCK_STREAM)
	if e != 0 {
		return NoHandle, os.NewSyscallError("socket", e)
	}
	h := Handle(fd)
	fail := func(call string, e syscall.Errno) (Handle, error) {
		d.CloseHandle(h, false)
		return NoHandle, os.NewSyscallError(call, e)
	}
	set := func(level, name, v int) {
		if e == 0 {
			e = d.SetOption(h, &SocketOption{Level: level, Name: name, Int: v})
		}
	}
	if fam == unix.AF_UNIX {
		if s.Address.Path[0] != '@' {
			_ = os.Remove(s.Address.Path) // a socket that an earlier process left behind
		}
	} else {
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if s.ReusePort {
			set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
		if fam == unix.AF_INET6 {
			v := 0
			if s.V6Only {
				v = 1
			}
			set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, v)
		}
		if s.Transparent {
			set(unix.SOL_IP, unix.IP_TRANSPARENT, 1)
		}
		if s.Freebind {
			set(unix.SOL_IP, unix.IP_FREEBIND, 1)
		}
	}
	if e != 0 {
		return fail("setsockopt", e)
	}
	if e := d.setOptions(h, s.Options, StatePrebind); e != 0 {
		return fail("setsockopt", e)
	}
	if e := d.bind(fd, &s.Address); e != 0 {
		return fail("bind", e)
	}
	if fam == unix.AF_UNIX && s.Mode != 0 && s.Address.Path[0] != '@' {
		if err := os.Chmod(s.Address.Path, os.FileMode(s.Mode)); err != nil {
			return fail("chmod", errno(err))
		}
	}
	if e := d.setOptions(h, s.Options, StateBound); e != 0 {
		return fail("setsockopt", e)
	}
	return h, nil
}
