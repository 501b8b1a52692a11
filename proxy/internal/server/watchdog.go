package server

import (
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// The watchdog's limits where they are not set.
const (
	defaultMiss     = 200 * time.Millisecond
	defaultMegaMiss = time.Second
)

// watchdog counts passes of event loops that took too long. It needs no thread and wakes nobody: each loop notes how long its passes
// took, and the notes are read whenever the stats are collected. A loop that does not even answer then is logged.
type watchdog struct {
	each []watched // the main loop's first, then the workers'
}

// watched is one loop. owner: that loop.
type watched struct {
	own, all          astats.GroupBase // stats.Watchdog
	misses, megaMiss  uint64           // counted already
	silent            bool             // owner: main loop
	missFor, megaMFor time.Duration
}

func (d *watchdog) build(s *Server) {
	root := s.store.Root()
	main, workers := s.boot.GetWatchdogs().GetMainThreadWatchdog(), s.boot.GetWatchdogs().GetWorkerWatchdog()
	if old := s.boot.GetWatchdog(); old != nil { //nolint:staticcheck // deprecated, and valid
		main, workers = old, old
	}
	for i, w := range append([]*event.Worker{s.main}, s.workers...) {
		all, cfg := "workers", workers
		if i == 0 {
			all, cfg = "main_thread", main
		}
		x := watched{own: root.Scope("server").Scope(w.Name).Group(stats.Watchdog), all: root.Scope(all).Group(stats.Watchdog)}
		x.missFor, x.megaMFor = limits(cfg)
		w.Passes.Limits = [2]int64{int64(x.missFor), int64(x.megaMFor)}
		d.each = append(d.each, x)
	}
}

func limits(p *bootstrapv3.Watchdog) (miss, mega time.Duration) {
	miss, mega = defaultMiss, defaultMegaMiss
	if t := p.GetMissTimeout(); t != nil {
		miss = t.AsDuration()
	}
	if t := p.GetMegamissTimeout(); t != nil {
		mega = t.AsDuration()
	}
	return miss, mega
}

// look counts what w has noted since the last time. owner: w.
func (d *watchdog) look(w *event.Worker) {
	x := &d.each[w.Index+1]
	add := func(i astats.CounterIndex, now uint64, before *uint64) {
		if now != *before {
			w.Stats.Add(x.own.Counter(i), now-*before)
			w.Stats.Add(x.all.Counter(i), now-*before)
			*before = now
		}
	}
	add(stats.WatchdogWatchdogMiss, w.Passes.Slow[0], &x.misses)
	add(stats.WatchdogWatchdogMegaMiss, w.Passes.Slow[1], &x.megaMiss)
}

// answered notes which loops have answered; those that have not are logged, once.
func (d *watchdog) answered(s *Server, silent []*stats.Shard) {
	for i := range d.each[1:] {
		x, w := &d.each[i+1], s.workers[i]
		was := x.silent
		x.silent = false
		for _, sh := range silent {
			x.silent = x.silent || sh == w.Stats
		}
		switch {
		case x.silent && !was:
			s.logger("main").Warn("an event loop does not answer", "thread", w.Name, "for", collectDeadline)
		case was && !x.silent:
			s.logger("main").Warn("an event loop answers again", "thread", w.Name)
		}
	}
}
