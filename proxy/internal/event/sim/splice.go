package sim

import (
	"syscall"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// splicer is a driver with pipes, as the kernel has them.
type splicer struct {
	*driver
	pipes []*pipe
}

// pipe is a bounded queue. It counts bytes; the kernel counts pages, so that it may be full earlier.
type pipe struct {
	q    queue
	size int
}

var _ event.Splicer = (*splicer)(nil)

// SplicingDriver is Driver with an event.Splicer.
func (w *World) SplicingDriver(name string) event.Driver {
	return &splicer{driver: w.Driver(name).(*driver)}
}

// NewPipe implements event.Splicer. The pipe may be smaller than asked for.
func (d *splicer) NewPipe(size int) (event.Pipe, syscall.Errno) {
	p := &pipe{size: size}
	if d.w.chance(d.w.faults.SmallBuffers) {
		p.size = min(size, 4096)
	}
	d.pipes = append(d.pipes, p)
	d.w.pipes++
	n := int32(len(d.pipes) - 1)
	return event.Pipe{R: n, W: n}, 0
}

func (d *splicer) pipe(n int32) *pipe {
	if n < 0 || int(n) >= len(d.pipes) {
		return nil
	}
	return d.pipes[n]
}

// SpliceIn implements event.Splicer.
func (d *splicer) SpliceIn(h event.Handle, to event.Pipe, n int) (int, syscall.Errno) {
	e, err := d.conn(h)
	p := d.pipe(to.W)
	switch {
	case err != 0:
		return 0, err
	case p == nil:
		return 0, syscall.EBADF
	case p.q.len() >= p.size:
		return 0, syscall.EAGAIN
	}
	b := make([]byte, min(n, p.size-p.q.len()))
	k, err := e.recv(b)
	p.q.write(b[:k])
	return k, err
}

// SpliceOut implements event.Splicer.
func (d *splicer) SpliceOut(from event.Pipe, h event.Handle, n int, _ bool) (int, syscall.Errno) {
	e, err := d.conn(h)
	p := d.pipe(from.R)
	switch {
	case err != 0:
		return 0, err
	case p == nil:
		return 0, syscall.EBADF
	case p.q.len() == 0:
		return 0, syscall.EAGAIN
	}
	k, err := e.send([][]byte{p.q.b[p.q.at:][:min(n, p.q.len())]})
	p.q.at += k
	return k, err
}

// ClosePipe implements event.Splicer.
func (d *splicer) ClosePipe(p event.Pipe) {
	if d.pipe(p.R) != nil {
		d.pipes[p.R] = nil
		d.w.pipes--
	}
}
