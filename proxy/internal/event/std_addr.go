package event

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// stdNetwork returns the name that package net has for the kind of address, "" if it has none.
func stdNetwork(a *network.Address) string {
	switch {
	case a.IsUnix():
		return "unix"
	case !a.IP.IsValid():
		return ""
	case a.IP.Addr().Is4():
		return "tcp4"
	}
	return "tcp6"
}

func stdAddress(a net.Addr) network.Address {
	switch a := a.(type) {
	case *net.TCPAddr:
		ap := a.AddrPort()
		return network.AddrFrom(netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
	case *net.UnixAddr:
		if a.Name == "" {
			return network.Address{Path: "@"} // an unnamed client
		}
		return network.Address{Path: a.Name}
	}
	return network.Address{}
}

// stdErrno returns the error number in err. What package net says in words only is EIO.
func stdErrno(err error) syscall.Errno {
	var e syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return portable(e)
	case errors.Is(err, context.Canceled):
		return syscall.ECANCELED
	case errors.Is(err, net.ErrClosed):
		return syscall.EBADF
	}
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return syscall.ETIMEDOUT
	}
	return syscall.EIO
}

// stdCloseWrite sends the FIN. An error says that the connection is broken, which the reader finds out.
func stdCloseWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}

// stdAbort closes c with a reset.
func stdAbort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
