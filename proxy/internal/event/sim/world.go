// Package sim is a network in memory under one seed: the third event.Driver, a clock that jumps from one thing that happens to the
// next, and scripted peers.
//
// A World and all that belongs to it live on one goroutine: Run steps the workers, the peers and the network in an order that the
// seed decides, and lets time pass. There are no goroutines, no maps whose order matters and no real time in it, so that the same
// seed gives the same Hash, in any process. It knows no protocol.
package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// World is a network, its clock and its chance. owner: one goroutine.
type World struct {
	// Trace, if set, is told of everything that goes into Hash.
	Trace func(at time.Duration, kind Kind, id uint32, n int)
	// TraceBytes, if set, is told of what is delivered to each end.
	TraceBytes func(id uint32, b []byte)

	seed   uint64
	rnd    *rand.Source
	faults Faults

	now     int64 // ns since the world began
	wallOff int64

	wire      agenda // what the network has under way
	timers    agenda // what peers wait for
	peers     []*Conn
	listeners []*listener
	drivers   []*driver
	stalled   []int64 // until when each worker of this Run stands still
	ports     uint16
	pipes     int // that are not closed
	conns     uint32
	hash      uint64
}

// NewWorld returns a World. It begins without faults.
func NewWorld(seed uint64) *World {
	w := &World{seed: seed, hash: fnvOffset, ports: firstPort, faults: Calm()}
	w.rnd = w.Rand("world")
	// Some fixed day, and not a whole second.
	w.wallOff = int64(1_700_000_000_123_456_789 + w.rnd.Uint64()%uint64(time.Hour*24*365))
	w.now = begin
	return w
}

// Seed returns what the world was made with.
func (w *World) Seed() uint64 { return w.seed }

// Rand returns a source of its own for something in the world: the same name gives the same numbers under the same seed.
func (w *World) Rand(name string) *rand.Source {
	var s [32]byte
	h := fnvOffset
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * fnvPrime
	}
	for i := range 8 {
		s[i] = byte(w.seed >> (8 * i))
		s[8+i] = byte(h >> (8 * i))
	}
	return rand.Seeded(s)
}

// SetFaults changes what goes wrong from now on. What is under way already stays as it is.
func (w *World) SetFaults(f Faults) { w.faults = f }

// Faults returns what goes wrong now.
func (w *World) Faults() Faults { return w.faults }

// Clock returns the world's clock.
func (w *World) Clock() clock.Clock { return (*worldClock)(w) }

// JumpWall sets the wall clock forward or back, as an administrator or NTP does. The monotonic clock does not care.
func (w *World) JumpWall(d time.Duration) { w.wallOff += int64(d) }

type worldClock World

func (c *worldClock) Now() time.Time { return time.Unix(0, c.now+c.wallOff) }
func (c *worldClock) Mono() int64    { return c.now }

// Errors of Run.
var (
	// ErrStuck: nothing is under way, no timer is armed, and the condition does not hold.
	ErrStuck = errors.New("nothing will ever happen again")
	// ErrTimeout: the time that was allowed has passed.
	ErrTimeout = errors.New("out of simulated time")
)

// roundTime bounds how much time one round of steps takes: the workers' own.
const roundTime = 20 * time.Microsecond

// Run steps the workers and the peers until the condition holds, at most for the given simulated time. While any of them has
// something to do, time passes slowly; when all are idle it jumps to what happens next.
func (w *World) Run(workers []*event.Worker, until func() bool, limit time.Duration) error {
	deadline := w.now + int64(limit)
	order := make([]int, len(workers)+1)
	w.stalled = make([]int64, len(workers))
	for !until() {
		if w.now > deadline {
			return ErrTimeout
		}
		busy := w.round(workers, order)
		next := w.now + int64(w.between(1, roundTime))
		if !busy {
			at := w.next(workers)
			if at < 0 {
				return ErrStuck
			}
			next = max(next, at)
		}
		w.pass(min(next, deadline+1))
	}
	return nil
}

// round steps everybody at most once, in the order of chance, and tells whether anybody has more to do.
func (w *World) round(workers []*event.Worker, order []int) (busy bool) {
	for i := range order {
		j := w.rnd.IntN(i + 1)
		order[i], order[j] = order[j], i
	}
	for _, i := range order {
		if w.chance(w.faults.SlowWorker) {
			busy = true // it was not this one's turn
			continue
		}
		if i == len(workers) {
			busy = w.runPeers() || busy
			continue
		}
		if w.stalls(i) {
			continue
		}
		n := workers[i].Step(false)
		if n > 0 {
			w.record(Step, uint32(i), n)
		}
		busy = busy || n > 0 || !workers[i].Idle()
	}
	return busy
}

func (w *World) stalls(worker int) bool {
	if w.chance(w.faults.WorkerStall) {
		w.stalled[worker] = w.now + int64(w.between(0, w.faults.WorkerStallMax))
	}
	return w.stalled[worker] > w.now
}

// next returns when something will happen, -1 if never.
func (w *World) next(workers []*event.Worker) int64 {
	at := w.wire.next(-1)
	at = w.timers.next(at)
	for i, k := range workers {
		due := w.stalled[i]
		if due <= w.now {
			d := k.NextTimer()
			if d < 0 {
				continue
			}
			due = w.now + int64(d)
		}
		if at < 0 || due < at {
			at = due
		}
	}
	return at
}

// pass lets time pass until at and does what the network does until then. Timers of peers come with their turn.
func (w *World) pass(at int64) {
	if w.chance(w.faults.ClockJump) {
		d := w.between(0, 2*w.faults.ClockJumpMax) - w.faults.ClockJumpMax
		w.record(ClockJumped, 0, int(d))
		w.JumpWall(d)
	}
	for {
		next := w.wire.next(-1)
		if next < 0 || next > at {
			w.now = max(w.now, at)
			return
		}
		w.now = max(w.now, next)
		w.wire.pop()()
	}
}

// slip lets a little time pass within a worker's pass, so that things arrive between two of its calls.
func (w *World) slip() {
	if w.chance(w.faults.Slip) {
		w.pass(w.now + int64(w.between(0, time.Millisecond)))
	}
}

// Pipes returns how many pipes are open.
func (w *World) Pipes() int { return w.pipes }

// Open describes every handle and server that is not closed, for leak checks.
func (w *World) Open() (open []string) {
	for _, d := range w.drivers {
		for h, s := range d.socks {
			switch {
			case s == nil:
			case s.lst != nil:
				open = append(open, fmt.Sprintf("%s: handle %d listens on %s", d.name, h, s.lst.addr))
			default:
				open = append(open, fmt.Sprintf("%s: handle %d, connection %d, %s to %s", d.name, h, s.end.id, s.end.local, s.end.remote))
			}
		}
	}
	for _, l := range w.listeners {
		if l.sock == nil {
			open = append(open, "a server on "+l.addr.String())
		}
	}
	return open
}

func (w *World) chance(c Chance) bool {
	return c > 0 && Chance(w.rnd.IntN(int(Always))) < c
}

// between returns a duration from lo to hi, both included.
func (w *World) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(w.rnd.Uint64()%uint64(hi-lo+1))
}

// Elapsed returns how much time has passed in the world.
func (w *World) Elapsed() time.Duration { return time.Duration(w.now - begin) }

func (w *World) port() uint16 {
	p := w.ports
	if w.ports++; w.ports == 0 {
		w.ports = firstPort
	}
	return p
}

// begin is where the monotonic clock starts: not at zero, which may mean none.
const begin = int64(time.Hour)

// firstPort is the first of the ports that nobody asked for by number.
const firstPort = 32768

// source is where a connection comes from that names no source.
func (w *World) source(to network.Address) network.Address {
	if !to.IP.IsValid() {
		return network.Address{Path: "@"}
	}
	a := v4
	if to.IP.Addr().Is6() {
		a = v6
	}
	return withPort(a, w.port())
}
