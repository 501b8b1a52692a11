package accesslog

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// local is what one worker has for all files. owner: its worker.
type local struct {
	m       *Manager
	w       *event.Worker
	ctx     format.Context
	batches []*batch // by File.id
	waiting []*batch // those that hold lines
	timer   event.Timer
}

// batch collects lines for one file.
type batch struct {
	f       *File
	b       []byte
	n       uint64
	waiting bool
}

// batch returns the batch of f, nil if f has been released: then the line is lost, and counted.
func (l *local) batch(f *File) *batch {
	if f.gone.Load() {
		l.w.Stats.Inc(l.m.base.Counter(linesDropped))
		return nil
	}
	if f.id < len(l.batches) {
		if b := l.batches[f.id]; b != nil && b.f == f {
			return b
		}
	}
	for len(l.batches) <= f.id {
		l.batches = append(l.batches, nil)
	}
	b := &batch{f: f}
	l.batches[f.id] = b
	return b
}

// wrote takes over the buffer of b with one more line.
func (l *local) wrote(b *batch, buf []byte) {
	added := len(buf) - len(b.b)
	b.b = buf
	b.n++
	l.w.Stats.Inc(l.m.base.Counter(writeBuffered))
	l.w.Stats.GaugeAdd(l.m.base.Gauge(writeTotalBuffered), int64(added))
	if len(buf) > l.m.cfg.FlushSize {
		l.hand(b)
		return
	}
	if !b.waiting {
		b.waiting = true
		l.waiting = append(l.waiting, b)
		if !l.timer.Armed() {
			l.w.Arm(&l.timer, l.m.cfg.FlushInterval)
		}
	}
}

// hand gives the lines of b to the writer.
func (l *local) hand(b *batch) {
	if b.n == 0 {
		return
	}
	size := len(b.b)
	next, ok := b.f.push(lines{b.b, b.n})
	if !ok {
		l.w.Stats.Add(l.m.base.Counter(linesDropped), b.n)
		l.w.Stats.GaugeSub(l.m.base.Gauge(writeTotalBuffered), int64(size))
	}
	// A file that fills its batches gets the next one at once in its full size.
	if next == nil && size > l.m.cfg.FlushSize {
		next = make([]byte, 0, size+size/8)
	}
	b.b, b.n = next, 0
}

func (l *local) onTimer() {
	for i, b := range l.waiting {
		if b.n > 0 {
			l.w.Stats.Inc(l.m.base.Counter(flushedByTimer))
			l.hand(b)
		}
		b.waiting = false
		l.waiting[i] = nil
	}
	l.waiting = l.waiting[:0]
}

// flush hands everything over.
func (l *local) flush() {
	for _, b := range l.batches {
		if b != nil {
			l.hand(b)
		}
	}
}

// forget hands over what there is for a released file and drops its batch.
func (l *local) forget(f *File) {
	if f.id >= len(l.batches) || l.batches[f.id] == nil || l.batches[f.id].f != f {
		return
	}
	l.hand(l.batches[f.id])
	l.batches[f.id] = nil
}
