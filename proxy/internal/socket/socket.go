// Package socket says where listening sockets come from: the kernel, a parent process (hot restart), systemd, or a test. It owns
// no socket itself; what a Source returns belongs to the worker that asked.
package socket

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Source gives listening sockets. Calls come on the worker that will own the socket.
type Source interface {
	Listen(d event.Driver, spec *event.ListenSpec) (event.Handle, error)
}

// Prober is a Source that can tell whether it would give a socket: nil if so, ErrNone if it has none for the address. Calls come on the
// main loop, whose driver d is.
type Prober interface {
	Probe(d event.Driver, spec *event.ListenSpec) error
}

// Kernel opens new sockets.
type Kernel struct{}

// Listen opens a socket with the worker's driver.
func (Kernel) Listen(d event.Driver, spec *event.ListenSpec) (event.Handle, error) {
	return d.Listen(spec)
}

// Probe asks the driver; one that cannot tell in advance is taken to be able to listen.
func (Kernel) Probe(d event.Driver, spec *event.ListenSpec) error {
	if p, ok := d.(event.BindProber); ok {
		return p.Probe(spec)
	}
	return nil
}

// First asks several sources in turn: the first that does not answer ErrNone gives the socket.
type First []Source

// Listen asks the sources in order.
func (f First) Listen(d event.Driver, spec *event.ListenSpec) (event.Handle, error) {
	for _, s := range f {
		h, err := s.Listen(d, spec)
		if err != ErrNone {
			return h, err
		}
	}
	return event.NoHandle, ErrNone
}

// Probe asks the sources in order. One that cannot tell may have a socket, so that nothing is wrong yet.
func (f First) Probe(d event.Driver, spec *event.ListenSpec) error {
	for _, s := range f {
		p, ok := s.(Prober)
		if !ok {
			return nil
		}
		if err := p.Probe(d, spec); err != ErrNone {
			return err
		}
	}
	return ErrNone
}

type noneError struct{}

func (noneError) Error() string { return "no listening socket for this address here" }

// ErrNone says that a source has no socket for an address.
var ErrNone error = noneError{}
