// Package tls is TLS as a transport socket of conn.Conn: crypto/tls over buffers that the worker owns.
//
// The handshake runs as a coroutine on the worker's thread, since crypto/tls cannot be resumed in the middle of one; records go
// through a net.Conn that answers "try again" when it has no bytes, which crypto/tls takes well once the handshake is done. All
// of it belongs to the connection's worker. Contexts (context.go) are immutable and shared; settings.go makes them from protobufs.
package tls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// MaxHandshakes bounds the handshakes that wait for their peers on one worker: each holds about 73 KB. Beyond it, connections are
// closed at once.
const MaxHandshakes = 8192

// again is the error of a Read that has no bytes: crypto/tls goes on after it, as it is temporary.
type again struct{}

func (again) Error() string   { return "no more bytes for now" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

var errAgain net.Error = again{}

// Transport is the TLS of one connection. It is its own net.Conn under crypto/tls. owner: worker.
type Transport struct {
	c      *conn.Conn
	ctx    *Context
	tc     *tls.Conn
	co     *event.Coro
	pend   []byte            // ciphertext that crypto/tls has not read
	part   part              // once open: a record that is not complete
	left   int               // handshake: bytes left of the current record, so that nothing is read ahead of it
	err    error             // of the handshake
	local  *x509.Certificate // a server's choice
	wire   *buffer.Buffer
	open   bool
	dead   bool
	notify bool
	slot   bool // counted in the worker's handshakes
}

// local is what tls keeps per worker.
type local struct {
	plain      []byte
	parts      [][]byte // for reuse
	handshakes int
}

var locals = event.NewLocal(func(*event.Worker) *local { return &local{plain: make([]byte, 16<<10+256)} })

// Handshakes returns how many handshakes are in progress on w.
func Handshakes(w *event.Worker) int { return locals.Get(w).handshakes }

// Start begins the handshake. A client sends its hello.
func (t *Transport) Start(c *conn.Conn) {
	t.c = c
	l := locals.Get(c.Worker())
	if l.handshakes >= MaxHandshakes {
		t.fail(errors.New("too many TLS handshakes in progress"))
		return
	}
	l.handshakes++
	t.slot = true
	if t.ctx.client {
		t.tc = tls.Client(t, t.ctx.clientConfig(c))
		t.resume()
		return
	}
	t.tc = tls.Server(t, t.ctx.config)
}

// resume runs the handshake until it wants more bytes.
func (t *Transport) resume() {
	done := false
	if t.co == nil {
		done = t.c.Worker().Go(func(co *event.Coro) {
			t.co = co
			t.err = t.tc.Handshake()
		}).Done()
	} else {
		done = t.co.Resume()
	}
	if !done {
		return
	}
	t.co = nil
	t.free()
	if t.dead {
		return
	}
	if t.err != nil {
		t.fail(t.err)
		return
	}
	t.done()
}

// free gives the worker's place for a handshake back.
func (t *Transport) free() {
	if t.slot {
		t.slot = false
		locals.Get(t.c.Worker()).handshakes--
	}
}

// done: the handshake is over. What it agreed on is copied: ConnectionState takes locks.
func (t *Transport) done() {
	t.open = true
	w := t.c.Worker()
	state := t.tc.ConnectionState()
	t.c.Info.HandshakeDone = w.Now()
	t.c.Info.Protocol = state.NegotiatedProtocol
	t.c.Info.TLS = t.ctx.info(&state, t.local)
	t.ctx.count(w, &state)
	if err := t.ctx.doubt(&state); err != nil {
		t.c.Info.TLS.Verified = false
		w.Stats.Inc(t.ctx.stats.Counter(failureCounter(err)))
	}
	forget(t.tc)
	rest := t.pend
	t.pend = nil
	t.c.Ready()
	if len(rest) > 0 && !t.dead {
		t.Feed(t.c, rest)
	}
}

func (t *Transport) fail(err error) {
	w := t.c.Worker()
	if t.slot {
		t.free()
	}
	w.Stats.Inc(t.ctx.stats.Counter(failureCounter(err)))
	t.c.Fail(failureText(err))
}

// Feed takes ciphertext.
func (t *Transport) Feed(c *conn.Conn, b []byte) {
	if t.dead {
		return
	}
	if !t.open {
		t.pend = append(t.pend, b...)
		t.resume()
		return
	}
	l := locals.Get(c.Worker())
	if t.part.buf != nil {
		var complete bool
		if b, complete = t.part.fill(b); !complete {
			return
		}
		ok := t.decrypt(l, t.part.buf)
		t.dropPart(l)
		if !ok {
			return
		}
	}
	n, size := whole(b)
	if n > 0 && !t.decrypt(l, b[:n]) {
		return
	}
	if b = b[n:]; len(b) > 0 {
		t.part = part{buf: append(l.takePart(), b...), size: size}
	}
}

// decrypt delivers what is in whole records, and tells whether the connection goes on.
func (t *Transport) decrypt(l *local, records []byte) bool {
	lent := lend(t.tc, records)
	if !lent {
		t.pend = records
	}
	for {
		n, err := t.tc.Read(l.plain)
		if n > 0 {
			t.c.Deliver(l.plain[:n])
			if t.dead {
				return false
			}
		}
		if err == nil && lent && drained(t.tc) {
			// Whole records were all that there is. To ask for more would cost crypto/tls an allocation.
			forget(t.tc)
			return true
		}
		if err == nil {
			continue
		}
		t.pend = nil
		switch {
		case err == error(errAgain):
			forget(t.tc)
			return true
		case errors.Is(err, io.EOF):
			t.c.PeerDone()
		default:
			t.fail(err)
		}
		return false
	}
}

func (t *Transport) dropPart(l *local) {
	if t.part.buf != nil {
		l.putPart(t.part.buf)
		t.part = part{}
	}
}

// EOF is the socket's end. A peer that goes without close_notify has truncated nothing that HTTP would not notice.
func (t *Transport) EOF(*conn.Conn) {}

// Broken is the socket's end by an error during the handshake.
func (t *Transport) Broken(*conn.Conn) {
	if t.co != nil && !t.dead {
		t.c.Info.SetEnd().TransportFailure = connectionReset
	}
}

// Seal encrypts what waits into records.
func (t *Transport) Seal(c *conn.Conn, plain, wire *buffer.Buffer) {
	t.wire = wire
	for plain.Len() > 0 && wire.Len() < 128<<10 {
		run := plain.Front()
		if _, err := t.tc.Write(run); err != nil {
			t.wire = nil
			t.fail(err)
			return
		}
		plain.Drain(len(run))
	}
	t.wire = nil
}

// CloseNotify sends the alert that ends our side, once.
func (t *Transport) CloseNotify(c *conn.Conn) bool {
	if t.notify || !t.open {
		return false
	}
	t.notify = true
	t.wire = c.Wire()
	err := t.tc.CloseWrite()
	t.wire = nil
	return err == nil
}

// Destroy frees what is left. A handshake in progress ends: its Read returns EOF.
func (t *Transport) Destroy() {
	if t.dead {
		return
	}
	t.dead = true
	t.free()
	if t.c != nil { // otherwise the connection never came up, and nothing has begun
		t.dropPart(locals.Get(t.c.Worker()))
	}
	if co := t.co; co != nil {
		t.co = nil
		co.Stop()
	}
}

// Read is crypto/tls's: the next bytes of ciphertext. During the handshake it waits as a coroutine, and stops at the end of a
// record, so that what follows the handshake stays for Feed.
func (t *Transport) Read(p []byte) (int, error) {
	if t.open {
		if len(t.pend) == 0 {
			return 0, errAgain
		}
		n := copy(p, t.pend)
		t.pend = t.pend[n:]
		return n, nil
	}
	for {
		if t.dead {
			return 0, io.EOF
		}
		if t.left == 0 && len(t.pend) >= 5 {
			t.left = 5 + int(t.pend[3])<<8 + int(t.pend[4])
		}
		if t.left > 0 && len(t.pend) > 0 {
			break
		}
		if !t.co.Wait() {
			return 0, io.EOF
		}
	}
	n := min(len(p), t.left, len(t.pend))
	copy(p, t.pend[:n])
	t.pend = t.pend[n:]
	t.left -= n
	return n, nil
}

// Write is crypto/tls's: records to be sent. It takes everything.
func (t *Transport) Write(p []byte) (int, error) {
	if t.wire != nil {
		t.wire.Append(p)
	} else if !t.dead {
		t.c.Wire().Append(p)
	}
	return len(p), nil
}

// The rest of net.Conn. crypto/tls wants addresses and sets deadlines, which mean nothing here.

// Close does nothing: the connection belongs to conn.Conn.
func (t *Transport) Close() error { return nil }

type noAddr struct{}

func (noAddr) Network() string { return "tcp" }
func (noAddr) String() string  { return "" }

// LocalAddr returns no address.
func (t *Transport) LocalAddr() net.Addr { return noAddr{} }

// RemoteAddr returns no address, but not nil.
func (t *Transport) RemoteAddr() net.Addr { return noAddr{} }

// SetDeadline does nothing.
func (t *Transport) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (t *Transport) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (t *Transport) SetWriteDeadline(time.Time) error { return nil }
