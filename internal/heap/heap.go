// Package heap keeps the memory of a process that serves: room for the garbage of bursts, and back to the system when one is over.
//
// The data plane allocates almost nothing per request, but TLS handshakes and configuration updates do, in bursts. With a small live
// heap Go's default would collect every few milliseconds then, and afterwards keep what the burst had needed. It changes settings of
// the whole process, so only main programs call it; it runs on a goroutine of its own.
package heap

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// headroom is how much garbage may pile up before a collection, in bytes, while the live heap is smaller than that.
	headroom = 32 << 20
	// period is how often the heap is looked at.
	period = time.Second
	// quiet is the allocation per period below which the process counts as idle, in bytes.
	quiet = 256 << 10
	// worth is how much must be gained for memory to be given back, in bytes, and at least worthShare of the live heap: a
	// collection costs CPU in proportion to that.
	worth      = 2 << 20
	worthShare = 8
)

// Prepare sets the collector for a small heap. It is for the start, before Keep.
func Prepare() { debug.SetGCPercent(Percent(0)) }

// Keep watches the heap until ctx ends.
func Keep(ctx context.Context) {
	k := keeper{percent: Percent(0), set: func(p int) { debug.SetGCPercent(p) }, free: debug.FreeOSMemory, read: read}
	t := time.NewTicker(period)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			k.look()
		}
	}
}

// Percent is GOGC for a live heap: headroom bytes, at least as much as the heap itself.
func Percent(live uint64) int {
	return int(max(100, headroom*100/max(live, 1<<20)))
}

// sample is what the runtime tells of the heap, in bytes.
type sample struct {
	live   uint64 // what the last collection found
	allocs uint64 // allocated in all
	held   uint64 // objects, dead ones too, and what is free and was not given back
}

// keeper is the state of Keep.
type keeper struct {
	percent int
	allocs  uint64 // at the last look
	floor   uint64 // the least that was held since memory was given back
	set     func(percent int)
	free    func()
	read    func() sample
}

// look adapts the collector, and gives memory back if a burst is over and has left enough of it.
func (k *keeper) look() {
	s := k.read()
	if p := Percent(s.live); p != k.percent {
		k.percent = p
		k.set(p)
	}
	k.floor = min(k.floor, s.held)
	if gain := max(worth, s.live/worthShare); s.allocs-k.allocs < quiet && s.held > s.live+gain && s.held > k.floor+gain {
		k.free()
		s = k.read()
		k.floor = s.held
	}
	k.allocs = s.allocs
}

func read() sample {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return sample{live: s[0].Value.Uint64(), allocs: s[1].Value.Uint64(),
		held: s[2].Value.Uint64() + s[3].Value.Uint64()}
}
