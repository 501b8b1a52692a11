package main

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Memory of the process. The data plane allocates almost nothing per request, but TLS handshakes and configuration updates do, in
// bursts: with a small live heap Go's default would collect every few milliseconds then, and afterwards keep what the burst had
// needed. So the collector gets a fixed headroom instead of a share, and when a burst is over its memory goes back to the system.
const (
	// headroom is how much garbage may pile up before a collection, in bytes, while the live heap is smaller than that.
	headroom = 32 << 20
	// quiet is the allocation per second below which the process counts as idle, in bytes.
	quiet = 256 << 10
	// worth is how much must be gained for memory to be given back, in bytes.
	worth = 2 << 20
)

// keepMemory watches the heap for the life of the process.
func keepMemory() {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	var last, floor uint64
	percent := 0
	for range time.Tick(time.Second) {
		metrics.Read(s)
		live, allocs := s[0].Value.Uint64(), s[1].Value.Uint64()
		held := s[2].Value.Uint64() + s[3].Value.Uint64()
		if p := gcPercent(live); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		if allocs-last < quiet && held > live+worth && held > floor+worth {
			debug.FreeOSMemory()
			metrics.Read(s)
			floor = s[2].Value.Uint64() + s[3].Value.Uint64()
		}
		last = allocs
	}
}

// gcPercent is GOGC for a live heap: headroom bytes, at least as much as the heap itself.
func gcPercent(live uint64) int {
	return int(max(100, headroom*100/max(live, 1<<20)))
}
