package event

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// Adopter is a Driver that can listen on a net.Listener of the program around the proxy. Each worker has a handle of its own for it;
// from the first one on the listener is the proxy's: nobody else accepts from it.
type Adopter interface {
	Adopt(ln net.Listener) (Handle, error)
}

// Adopt shares ln among the drivers that adopt it, as Listen does with an address. It is closed with the last handle.
func (d *std) Adopt(ln net.Listener) (Handle, error) {
	stdListeners.Lock()
	defer stdListeners.Unlock()
	key := fmt.Sprintf("adopted %p", ln)
	l := stdListeners.by[key]
	if l == nil {
		l = &stdListener{key: key, ln: ln, share: true, space: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
		stdListeners.by[key] = l
		go l.accept()
	}
	return d.join(l), nil
}

// rawListener returns the socket under ln.
func rawListener(ln net.Listener) (syscall.RawConn, error) {
	c, ok := ln.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a listener of type %T has no file descriptor: only the std driver can use it", ln)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, os.NewSyscallError("dup", stdErrno(err))
	}
	return raw, nil
}
