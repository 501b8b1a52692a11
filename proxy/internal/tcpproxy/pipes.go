package tcpproxy

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

const (
	// pipeSize is what is asked for as the size of a pipe in bytes: the largest that Linux gives to everybody.
	pipeSize = 1 << 20
	// maxPipes bounds the pipes of a worker (two descriptors each). Flows beyond that are copied.
	maxPipes = 512
	// maxFreePipes bounds those that wait for use.
	maxFreePipes = 16
)

// local is what a worker keeps for its TCP proxies.
type local struct {
	splicer event.Splicer // nil: the driver has none
	free    []event.Pipe
	pipes   int           // all, those in use included
	max     int           // maxPipes, less in tests
	lend    buffer.Buffer // shows bytes that were just read to WriteData
}

var locals = event.NewLocal(func(w *event.Worker) *local {
	l := &local{max: maxPipes}
	l.splicer, _ = w.Driver.(event.Splicer)
	l.lend.Init(&w.Bufs)
	return l
})

// get returns an empty pipe.
func (l *local) get() (event.Pipe, bool) {
	if k := len(l.free); k > 0 {
		p := l.free[k-1]
		l.free = l.free[:k-1]
		return p, true
	}
	if l.pipes >= l.max {
		return event.Pipe{}, false
	}
	p, e := l.splicer.NewPipe(pipeSize)
	if e != 0 {
		return event.Pipe{}, false
	}
	l.pipes++
	return p, true
}

// put gives a pipe back. One that is not empty can be of no further use.
func (l *local) put(p event.Pipe, empty bool) {
	if !empty || len(l.free) == maxFreePipes {
		l.pipes--
		l.splicer.ClosePipe(p)
		return
	}
	l.free = append(l.free, p)
}
