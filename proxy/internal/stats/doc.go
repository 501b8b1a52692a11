// Package stats is the stats store of the data plane.
//
// A Store belongs to the main loop: it knows the names, gives ids out and prints. Each thread that counts owns a Shard:
// plain memory, no atomics, no locks, pages that are allocated when they are first touched. What a shard holds is copied by its
// own thread (Shard.Snapshot, run there by a Post) and handed back to the main loop (Store.Collect), which serves the
// last copy it has. Snapshots are immutable and share the pages that did not change.
//
// A group of stats (a cluster, a listener) costs one record and its prefix until it is touched: names come from a
// template, values from pages that do not exist yet and therefore print as zero, as Envoy prints them.
//
// The package never blocks, never starts a goroutine and never reads a clock.
package stats
