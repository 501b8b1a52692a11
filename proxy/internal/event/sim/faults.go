package sim

import "time"

// Chance is a probability, in millionths.
type Chance uint32

// Always is certainty.
const Always Chance = 1_000_000

// Percent returns a Chance of n in a hundred.
func Percent(n int) Chance { return Chance(n) * Always / 100 }

// Faults says what the network does to connections, and how likely. The zero value is a network without delay.
type Faults struct {
	// LatencyMin and LatencyMax bound the way of one segment. Segments of one direction never overtake each other; those of
	// different connections do.
	LatencyMin, LatencyMax time.Duration
	// Segment is the largest segment in bytes; 0: 64 KiB.
	Segment int
	// Tiny makes a segment one of 1 to 16 bytes, so that reads are partial.
	Tiny Chance
	// Stall holds a segment, and all behind it, up to StallMax.
	Stall    Chance
	StallMax time.Duration
	// Reset breaks the connection, per segment.
	Reset Chance

	// Refuse answers a connection attempt with a reset, BlackHole not at all, SYNLoss only after the retransmission.
	Refuse, BlackHole, SYNLoss Chance
	// AcceptFails makes Accept return EMFILE; the connection stays where it is.
	AcceptFails Chance

	// SmallBuffers gives a new connection socket buffers of one or two KiB.
	SmallBuffers Chance
	// ShortSend makes Send take only a part, although there is room.
	ShortSend Chance
	// Spurious repeats an event that was told already.
	Spurious Chance
	// FewEvents makes a Wait return less than there is.
	FewEvents Chance
	// Slip lets time pass within a worker's pass, before a call.
	Slip Chance
	// SlowWorker leaves a worker out of a round; WorkerStall stops it for up to WorkerStallMax, so that much waits for it then.
	SlowWorker     Chance
	WorkerStall    Chance
	WorkerStallMax time.Duration

	// ClockJump sets the wall clock, per round, by up to ClockJumpMax either way.
	ClockJump    Chance
	ClockJumpMax time.Duration
}

// Calm returns a good network: some latency, segments as they come, nothing lost. It is what checks run on.
func Calm() Faults {
	return Faults{LatencyMin: 20 * time.Microsecond, LatencyMax: 200 * time.Microsecond}
}

// Rough returns a network on which everything is cut and late, but nothing fails: what a proxy must take without any error.
func Rough() Faults {
	return Faults{
		LatencyMin: 10 * time.Microsecond, LatencyMax: 20 * time.Millisecond,
		Segment: 4096, Tiny: Percent(10), Stall: Percent(1), StallMax: 300 * time.Millisecond, SYNLoss: Percent(1),
		SmallBuffers: Percent(30), ShortSend: Percent(20),
		Spurious: Percent(5), FewEvents: Percent(10), Slip: Percent(5), SlowWorker: Percent(5),
		WorkerStall: Percent(1) / 4, WorkerStallMax: 20 * time.Millisecond,
		ClockJump: Percent(1) / 100, ClockJumpMax: time.Hour,
	}
}

// Hostile returns a network on which connections also break.
func Hostile() Faults {
	f := Rough()
	f.Reset = Percent(1) / 5
	f.Refuse, f.BlackHole = Percent(2), Percent(2)
	f.AcceptFails = Percent(1)
	return f
}
