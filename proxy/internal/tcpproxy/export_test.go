package tcpproxy

import "github.com/dragoman-proxy/dragoman/proxy/internal/event"

// MaxPipes is the bound of a worker's pipes.
const MaxPipes = maxPipes

// LimitPipes sets it for one worker.
func LimitPipes(w *event.Worker, n int) { locals.Get(w).max = n }

// ClosePipes closes the pipes that wait for use and returns how many are not back.
func ClosePipes(w *event.Worker) int {
	l := locals.Get(w)
	for _, p := range l.free {
		l.splicer.ClosePipe(p)
		l.pipes--
	}
	l.free = nil
	return l.pipes
}
