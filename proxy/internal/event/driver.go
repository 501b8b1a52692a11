package event

import (
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// Handle names a socket within a Driver: a file descriptor with epoll, an index otherwise. NoHandle is none.
type Handle int32

// NoHandle is not a socket.
const NoHandle Handle = -1

// Events says what a socket is ready for.
type Events uint8

// Readable, Writable and HangUp (the peer has closed its side, or an error is pending) as edges: they are reported once, when
// they become true.
const (
	Readable Events = 1 << iota
	Writable
	HangUp
)

// Ready is one event of Driver.Wait.
type Ready struct {
	H   Handle
	Gen uint32
	Ev  Events
}

// Driver does the I/O of one worker. All methods but Wake belong to the worker's thread and never block, except Wait.
//
// Calls have the meaning of the non-blocking socket calls of POSIX; errors are syscall.Errno values, EAGAIN when nothing can be
// done now. There are three: epoll (Linux), std (a goroutine per net.Conn, portable), sim (memory, under one seed).
type Driver interface {
	// Wait fills dst with what is ready, waiting up to timeout; 0 does not wait, negative waits until Wake. A signal or a Wake
	// may make it return 0 early.
	Wait(dst []Ready, timeout time.Duration) int
	// Wake makes a Wait in progress, or the next one, return. Safe from any goroutine.
	Wake()
	// Close frees the driver; all sockets must be closed.
	Close()

	// Listen opens a listening socket. workers is how many workers share the address, so that SO_REUSEPORT is set for more
	// than one (spec.ReusePort).
	Listen(spec *ListenSpec) (Handle, error)
	// Accept takes one connection.
	Accept(l Handle) (h Handle, peer network.Address, err syscall.Errno)
	// Connect starts a connection. err is EINPROGRESS mostly; then Writable comes, and SocketError tells how it went.
	Connect(spec *ConnectSpec) (h Handle, err syscall.Errno)

	// Add begins to report events of h with gen; Remove ends it (Close includes it).
	Add(h Handle, gen uint32) syscall.Errno
	Remove(h Handle)

	// Recv reads once into p. 0, 0 is end of stream.
	Recv(h Handle, p []byte) (int, syscall.Errno)
	// Send writes once from the runs of p, without a signal when the peer is gone (EPIPE).
	Send(h Handle, p [][]byte) (int, syscall.Errno)
	// CloseWrite ends our side (FIN).
	CloseWrite(h Handle) syscall.Errno
	// CloseHandle closes h. reset asks for an RST instead of a FIN.
	CloseHandle(h Handle, reset bool)

	SocketError(h Handle) syscall.Errno
	LocalAddress(h Handle) network.Address
	PeerAddress(h Handle) network.Address
	// SetOption applies one socket option; drivers that have none ignore it with ENOPROTOOPT.
	SetOption(h Handle, o *SocketOption) syscall.Errno
}

// Holder is a Driver that can wait without giving up the goroutine's P.
type Holder interface {
	// WaitHeld is Wait for a short time, at most some milliseconds: until it returns nobody else can run on this P, and what
	// wants to stop the world must first interrupt it by a signal.
	WaitHeld(dst []Ready, timeout time.Duration) int
}

// Sleeper is a Driver with a way to wait that costs less where waits are rare and long, and more where they are not.
type Sleeper interface {
	// Sleep is Wait. The calling goroutine should not be locked to its thread.
	Sleep(dst []Ready, timeout time.Duration) int
	// Rouse gives up what the next Sleep would need anew. It is cheap if there is nothing to give up.
	Rouse()
}

// Splicer is a Driver that can move bytes between sockets inside the kernel (Linux: splice(2) over a pipe).
type Splicer interface {
	// NewPipe returns a pipe of about size bytes.
	NewPipe(size int) (Pipe, syscall.Errno)
	// SpliceIn moves up to n bytes from h into p; 0, 0 is end of stream.
	SpliceIn(h Handle, p Pipe, n int) (int, syscall.Errno)
	// SpliceOut moves up to n bytes of p to h.
	SpliceOut(p Pipe, h Handle, n int, more bool) (int, syscall.Errno)
	ClosePipe(p Pipe)
}

// Prober is a Driver that can look at a connection without taking anything from it.
type Prober interface {
	// Peek tells what Recv would find: something (1), the end of the stream (0 without an error), nothing (EAGAIN), or an error, which
	// may be told by this alone.
	Peek(h Handle) (n int, err syscall.Errno)
	// Acknowledged returns how many bytes of all that Send took the peer's system has acknowledged; ok is false if that is not known.
	// It may be asked after an error, until CloseHandle.
	Acknowledged(h Handle) (n uint64, ok bool)
}

// Sharer is a Driver that may be handed a connection that another one of its kind has accepted, before either has added it.
type Sharer interface{ SharedHandles() bool }

// OriginalDestiner is a Driver that knows where a connection was addressed to before the kernel redirected it to us.
type OriginalDestiner interface {
	OriginalDestination(h Handle) (network.Address, syscall.Errno)
}

// Pipe is a kernel pipe of a Splicer.
type Pipe struct{ R, W int32 }

// SocketOption is one setsockopt: an integer or bytes.
type SocketOption struct {
	Level, Name int
	Int         int
	Buf         []byte // if not nil, instead of Int
	// State says when to apply it: before bind, after bind, after listen (Envoy's SocketOption.SocketState).
	State uint8
}

// States of SocketOption.
const (
	StatePrebind uint8 = iota
	StateBound
	StateListening
)

// BindProber is a Driver that can tell whether an address could be listened on, without listening there: nobody can connect meanwhile.
type BindProber interface {
	Probe(spec *ListenSpec) error
}

// ListenSpec says how to open a listening socket.
type ListenSpec struct {
	// Name is the listener's, "" for further sockets of one: a Source may have something for it.
	Name      string
	Address   network.Address
	Backlog   int
	ReusePort bool
	// Worker is the worker's index; a Source that hands over sockets of a parent process needs it.
	Worker      int
	Transparent bool
	Freebind    bool
	V6Only      bool
	Mode        uint32 // permissions of a Unix socket, 0: the umask's
	Options     []SocketOption
}

// ConnectSpec says how to connect.
type ConnectSpec struct {
	Address network.Address
	// Source is the address to bind to before, if valid.
	Source  network.Address
	Options []SocketOption
}
