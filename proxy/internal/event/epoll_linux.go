package event

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// epoll is the Driver of Linux: edge-triggered epoll and raw, non-blocking system calls.
//
// I/O goes through RawSyscall: it skips the scheduler's entry and exit (about 60 ns a call, and no other goroutine can take the
// P away), which is right only because no call can block. Only a wait of a worker that has something to do goes through Syscall; a short
// one that is told to keep the P does not (WaitHeld), and one that is rare is the runtime's (Sleep).
type epoll struct {
	ep, wake int32
	ev       []epollEvent
	iov      [maxIov]syscall.Iovec
	msg      syscall.Msghdr
	sa       syscall.RawSockaddrAny
	info     unix.TCPInfo
	peek     byte
	gate     *gate
}

// maxIov is how many runs one Send takes.
const maxIov = 64

// epollEvent is the kernel's struct epoll_event, packed as on amd64; on other architectures Go pads the same way (see
// epollPad).
type epollEvent = unix.EpollEvent

const (
	epIn     = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	epHangUp = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	epAll    = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff
)

// NewEpoll returns the driver of one worker.
func NewEpoll() (Driver, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	efd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		_ = unix.Close(ep)
		return nil, err
	}
	d := &epoll{ep: int32(ep), wake: int32(efd), ev: make([]epollEvent, MaxEvents)}
	d.gate = newGate(d)
	if e := d.Add(Handle(efd), 0); e != 0 {
		d.Close()
		return nil, e
	}
	return d, nil
}

func (d *epoll) Close() {
	d.gate.close()
	_ = unix.Close(int(d.ep))
	_ = unix.Close(int(d.wake))
}

func (d *epoll) Wait(dst []Ready, timeout time.Duration) int {
	if timeout == 0 {
		return d.WaitHeld(dst, 0)
	}
	ms := -1
	if timeout > 0 {
		ms = milliseconds(timeout)
	}
	most := min(len(dst), len(d.ev))
	r, _, e := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(d.ep), uintptr(unsafe.Pointer(&d.ev[0])), uintptr(most), uintptr(ms), 0, 0)
	return d.take(dst, r, e)
}

// Sleep implements Sleeper.
func (d *epoll) Sleep(dst []Ready, timeout time.Duration) int {
	if n, ok := d.gate.sleep(dst, timeout); ok {
		return n
	}
	return d.Wait(dst, timeout) // without a descriptor to spare
}

// Rouse implements Sleeper.
func (d *epoll) Rouse() { d.gate.close() }

// WaitHeld implements Holder.
func (d *epoll) WaitHeld(dst []Ready, timeout time.Duration) int {
	r, e := d.poll(len(dst), timeout)
	return d.take(dst, r, e)
}

// poll asks the kernel for up to n events by a raw call, which waits for a short time at most.
func (d *epoll) poll(n int, timeout time.Duration) (uintptr, syscall.Errno) {
	r, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(d.ep), uintptr(unsafe.Pointer(&d.ev[0])), uintptr(min(n, len(d.ev))),
		uintptr(milliseconds(timeout)), 0, 0)
	return r, e
}

func milliseconds(d time.Duration) int { return int((d + time.Millisecond - 1) / time.Millisecond) }

// take turns the kernel's r events into ours.
func (d *epoll) take(dst []Ready, r uintptr, e syscall.Errno) int {
	if e != 0 { // EINTR: the runtime preempts by SIGURG
		return 0
	}
	n := 0
	for i := range d.ev[:r] {
		x := &d.ev[i]
		if x.Fd == d.wake {
			continue // edge-triggered: it need not be read
		}
		var ev Events
		if x.Events&epIn != 0 {
			ev |= Readable
		}
		if x.Events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
			ev |= Writable
		}
		if x.Events&epHangUp != 0 {
			ev |= HangUp
		}
		dst[n] = Ready{H: Handle(x.Fd), Gen: uint32(x.Pad), Ev: ev}
		n++
	}
	return n
}

func (d *epoll) Wake() {
	one := uint64(1)
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(d.wake), uintptr(unsafe.Pointer(&one)), 8)
}

func (d *epoll) Add(h Handle, gen uint32) syscall.Errno {
	ev := epollEvent{Events: uint32(epAll), Fd: int32(h), Pad: int32(gen)}
	_, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, uintptr(d.ep), unix.EPOLL_CTL_ADD, uintptr(h), uintptr(unsafe.Pointer(&ev)), 0, 0)
	return e
}

func (d *epoll) Remove(h Handle) {
	var ev epollEvent
	_, _, _ = syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, uintptr(d.ep), unix.EPOLL_CTL_DEL, uintptr(h), uintptr(unsafe.Pointer(&ev)), 0, 0)
}

func (d *epoll) Recv(h Handle, p []byte) (int, syscall.Errno) {
	for {
		r, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(h), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		return int(r), 0
	}
}

func (d *epoll) Send(h Handle, p [][]byte) (int, syscall.Errno) {
	for {
		var r uintptr
		var e syscall.Errno
		if len(p) == 1 {
			r, _, e = syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(h), uintptr(unsafe.Pointer(unsafe.SliceData(p[0]))), uintptr(len(p[0])),
				syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, 0, 0)
		} else {
			r, e = d.sendmsg(h, p)
		}
		if e == syscall.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		return int(r), 0
	}
}

func (d *epoll) sendmsg(h Handle, p [][]byte) (uintptr, syscall.Errno) {
	n := 0
	for _, b := range p {
		if n == maxIov {
			break
		}
		d.iov[n].Base = unsafe.SliceData(b)
		d.iov[n].SetLen(len(b))
		n++
	}
	d.msg = syscall.Msghdr{Iov: &d.iov[0], Iovlen: uint64(n)}
	r, _, e := syscall.RawSyscall(syscall.SYS_SENDMSG, uintptr(h), uintptr(unsafe.Pointer(&d.msg)), syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
	clear(d.iov[:n]) // do not keep the buffers alive
	runtime.KeepAlive(p)
	return r, e
}

func (d *epoll) Accept(l Handle) (Handle, network.Address, syscall.Errno) {
	for {
		size := uint32(unsafe.Sizeof(d.sa))
		r, _, e := syscall.RawSyscall6(syscall.SYS_ACCEPT4, uintptr(l), uintptr(unsafe.Pointer(&d.sa)), uintptr(unsafe.Pointer(&size)),
			syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0, 0)
		if e == syscall.EINTR || e == syscall.ECONNABORTED {
			continue
		}
		if e != 0 {
			return NoHandle, network.Address{}, e
		}
		if d.sa.Addr.Family != syscall.AF_UNIX {
			noDelay(int(r))
		}
		return Handle(r), decode(&d.sa, size), 0
	}
}

func (d *epoll) Connect(s *ConnectSpec) (Handle, syscall.Errno) {
	family := family(&s.Address)
	fd, e := socket(family, unix.SOCK_STREAM)
	if e != 0 {
		return NoHandle, e
	}
	h := Handle(fd)
	fail := func(e syscall.Errno) (Handle, syscall.Errno) {
		d.CloseHandle(h, false)
		return NoHandle, e
	}
	if family != unix.AF_UNIX {
		noDelay(fd)
	}
	if e := d.setOptions(h, s.Options, StatePrebind); e != 0 {
		return fail(e)
	}
	if s.Source.Valid() {
		if e := d.bind(fd, &s.Source); e != 0 {
			return fail(e)
		}
	}
	size, e := encode(&d.sa, &s.Address)
	if e != 0 {
		return fail(e)
	}
	_, _, e = syscall.RawSyscall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&d.sa)), uintptr(size))
	switch e {
	case 0, syscall.EINPROGRESS:
		return h, e
	case syscall.EINTR:
		return h, syscall.EINPROGRESS
	case syscall.EAGAIN: // a Unix socket whose backlog is full: as if refused, the caller may retry
		return fail(syscall.ECONNREFUSED)
	}
	return fail(e)
}

func (d *epoll) CloseWrite(h Handle) syscall.Errno {
	_, _, e := syscall.RawSyscall(syscall.SYS_SHUTDOWN, uintptr(h), unix.SHUT_WR, 0)
	return e
}

func (d *epoll) CloseHandle(h Handle, reset bool) {
	if reset {
		l := unix.Linger{Onoff: 1}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(h), unix.SOL_SOCKET, unix.SO_LINGER, uintptr(unsafe.Pointer(&l)), unsafe.Sizeof(l), 0)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(h), 0, 0)
}

func (d *epoll) SocketError(h Handle) syscall.Errno {
	v, err := unix.GetsockoptInt(int(h), unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return errno(err)
	}
	return syscall.Errno(v)
}

func (d *epoll) LocalAddress(h Handle) network.Address {
	return d.address(syscall.SYS_GETSOCKNAME, h)
}

func (d *epoll) PeerAddress(h Handle) network.Address {
	return d.address(syscall.SYS_GETPEERNAME, h)
}

func (d *epoll) address(trap uintptr, h Handle) network.Address {
	size := uint32(unsafe.Sizeof(d.sa))
	_, _, e := syscall.RawSyscall(trap, uintptr(h), uintptr(unsafe.Pointer(&d.sa)), uintptr(unsafe.Pointer(&size)))
	if e != 0 {
		return network.Address{}
	}
	return decode(&d.sa, size)
}

func (d *epoll) SetOption(h Handle, o *SocketOption) syscall.Errno {
	if o.Buf != nil {
		return errno(unix.SetsockoptString(int(h), o.Level, o.Name, string(o.Buf)))
	}
	return errno(unix.SetsockoptInt(int(h), o.Level, o.Name, o.Int))
}

func (d *epoll) setOptions(h Handle, opts []SocketOption, state uint8) syscall.Errno {
	for i := range opts {
		if opts[i].State == state {
			if e := d.SetOption(h, &opts[i]); e != 0 {
				return e
			}
		}
	}
	return 0
}
