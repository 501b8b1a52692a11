package event

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dragoman-proxy/dragoman/api/clock"
)

// gate lets the goroutine of an epoll driver sleep in the runtime's poller, as one that reads from a connection does, instead of in a
// system call of its own. Around a system call that blocks the runtime's monitor has to take the P away, and each time that it
// did so it looks every 20 us for a while: with few requests a second that costs more than the requests (docs/design/0001).
//
// The driver's epoll is in the runtime's poller like any other descriptor that does not block: a poll that finds nothing is its EAGAIN,
// and what comes after it wakes the goroutine up. It is taken out while the worker is busy, when each event would wake a thread for
// nothing. Putting it in makes the kernel walk through the worker's sockets, which is why that does not happen often.
type gate struct {
	d     *epoll
	file  *os.File // a duplicate of the driver's epoll, nil while it is not in the runtime's poller
	raw   syscall.RawConn
	try   func(uintptr) bool
	dst   []Ready
	n     int
	until int64 // the deadline of file, by clk.Mono, in full ticks of timers; 0: none
	clk   clock.Clock
}

func newGate(d *epoll) *gate {
	g := &gate{d: d, clk: clock.System()}
	g.try = func(uintptr) bool {
		r, e := g.d.poll(len(g.dst), 0)
		g.n = g.d.take(g.dst, r, e)
		return r > 0 && e == 0 // the driver's own wake-up too, of which dst has nothing
	}
	return g
}

// open puts the driver's epoll into the runtime's poller.
func (g *gate) open() error {
	fd, err := unix.FcntlInt(uintptr(g.d.ep), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // what the runtime goes by
		_ = unix.Close(fd)
		return err
	}
	g.file, g.until = os.NewFile(uintptr(fd), "epoll"), 0
	if g.raw, err = g.file.SyscallConn(); err == nil {
		err = g.file.SetReadDeadline(time.Time{}) // refused for what is not in the runtime's poller
	}
	if err != nil {
		g.close()
	}
	return err
}

func (g *gate) close() {
	if g.file != nil {
		_ = g.file.Close()
		g.file = nil
	}
}

// sleep waits for events, until timeout is over, rounded up to a tick of timers; negative: for as long as it takes. ok is false if it
// cannot wait.
func (g *gate) sleep(dst []Ready, timeout time.Duration) (n int, ok bool) {
	if g.file == nil && g.open() != nil {
		return 0, false
	}
	var until int64
	if timeout > 0 {
		until = (g.clk.Mono() + int64(timeout) + 1<<tickShift - 1) >> tickShift << tickShift
	}
	if until != g.until { // mostly it is still the same timer
		g.until = until
		var at time.Time
		if until > 0 {
			at = g.clk.Now().Add(time.Duration(until - g.clk.Mono()))
		}
		_ = g.file.SetReadDeadline(at)
	}
	g.dst, g.n = dst, 0
	_ = g.raw.Read(g.try)
	return g.n, true
}
