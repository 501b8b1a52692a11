package xds

import (
	"slices"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// lives are the resources of a type that end by themselves unless the control plane says that they go on (TTL). owner: main loop.
type lives struct {
	k     *kind
	until map[string]int64
	timer event.Timer
}

func (l *lives) init(k *kind) {
	l.k = k
	l.timer.Fn = l.expire
}

// set says how long a resource lives from now on; 0 is without end.
func (l *lives) set(name string, ttl time.Duration) {
	if ttl <= 0 {
		l.end(name)
		return
	}
	if l.until == nil {
		l.until = map[string]int64{}
	}
	main := l.k.m.s.Main
	at := main.Now() + int64(ttl)
	l.until[name] = at
	if !l.timer.Armed() || at < l.timer.Deadline() {
		main.Arm(&l.timer, ttl)
	}
}

// end forgets a resource.
func (l *lives) end(name string) { delete(l.until, name) }

// expire ends what has lived long enough.
func (l *lives) expire() {
	main := l.k.m.s.Main
	now := main.Now()
	var over []string
	next := int64(0)
	for n, at := range l.until {
		if at <= now {
			over = append(over, n)
			delete(l.until, n)
		} else if next == 0 || at < next {
			next = at
		}
	}
	if next != 0 {
		main.Arm(&l.timer, time.Duration(next-now))
	}
	if len(over) > 0 {
		slices.Sort(over)
		l.k.m.enqueue(arrival{url: l.k.url, expired: over, gen: l.k.m.link.gen})
	}
}

func (l *lives) close() { l.k.m.s.Main.Remove(&l.timer) }
