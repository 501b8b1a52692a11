package server

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// wire is a Driver without a kernel: what is sent to an upstream is answered at once by answer, and what is sent to a client is
// counted. It makes the user code of a request measurable, and its allocations countable, with nothing else around it.
type wire struct {
	next    event.Handle
	gens    map[event.Handle]uint32
	in      map[event.Handle][]byte // bytes that Recv will give
	client  map[event.Handle]bool
	ready   []event.Ready
	listen  event.Handle
	pending []event.Handle // accepted connections
	answer  []byte
	peers   map[event.Handle]upstreamPeer // upstreams that need more than one answer for every write
	newPeer func() upstreamPeer
	got     int
	last    []byte
	keep    bool
}

// upstreamPeer is the other end of an upstream connection: what it says to what it is sent. The bytes are its own until the next call.
type upstreamPeer interface{ serve(runs [][]byte) []byte }

func newWire(answer string) *wire {
	return &wire{next: 1, gens: map[event.Handle]uint32{}, in: map[event.Handle][]byte{}, client: map[event.Handle]bool{}, answer: []byte(answer),
		peers: map[event.Handle]upstreamPeer{}}
}

func (d *wire) handle() event.Handle { d.next++; return d.next }

func (d *wire) Wait(dst []event.Ready, timeout time.Duration) int {
	n := copy(dst, d.ready)
	d.ready = d.ready[:copy(d.ready, d.ready[n:])]
	return n
}
func (d *wire) Wake()  {}
func (d *wire) Close() {}
func (d *wire) Listen(*event.ListenSpec) (event.Handle, error) {
	d.listen = d.handle()
	return d.listen, nil
}
func (d *wire) Accept(event.Handle) (event.Handle, network.Address, syscall.Errno) {
	if len(d.pending) == 0 {
		return event.NoHandle, network.Address{}, syscall.EAGAIN
	}
	h := d.pending[0]
	d.pending = d.pending[1:]
	return h, network.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 7}), 40000)), 0
}
func (d *wire) Connect(*event.ConnectSpec) (event.Handle, syscall.Errno) {
	return d.handle(), syscall.EINPROGRESS
}
func (d *wire) Add(h event.Handle, gen uint32) syscall.Errno {
	d.gens[h] = gen
	if !d.client[h] && h != d.listen {
		d.ready = append(d.ready, event.Ready{H: h, Gen: gen, Ev: event.Writable})
	}
	return 0
}
func (d *wire) Remove(event.Handle) {}
func (d *wire) Recv(h event.Handle, p []byte) (int, syscall.Errno) {
	b := d.in[h]
	if len(b) == 0 {
		return 0, syscall.EAGAIN
	}
	n := copy(p, b)
	d.in[h] = b[n:]
	return n, 0
}
func (d *wire) Send(h event.Handle, p [][]byte) (int, syscall.Errno) {
	n := 0
	for _, b := range p {
		n += len(b)
		if d.keep {
			d.last = append(d.last, b...)
		}
	}
	if d.client[h] {
		d.got += n
		return n, 0
	}
	if d.newPeer == nil {
		d.push(h, d.answer)
		return n, 0
	}
	peer := d.peers[h]
	if peer == nil {
		peer = d.newPeer()
		d.peers[h] = peer
	}
	if out := peer.serve(p); len(out) > 0 {
		d.push(h, out)
	}
	return n, 0
}
func (d *wire) push(h event.Handle, b []byte) {
	d.in[h] = b
	d.ready = append(d.ready, event.Ready{H: h, Gen: d.gens[h], Ev: event.Readable})
}
func (d *wire) CloseWrite(event.Handle) syscall.Errno                     { return 0 }
func (d *wire) CloseHandle(event.Handle, bool)                            {}
func (d *wire) SocketError(event.Handle) syscall.Errno                    { return 0 }
func (d *wire) LocalAddress(event.Handle) network.Address                 { return network.Address{} }
func (d *wire) PeerAddress(event.Handle) network.Address                  { return network.Address{} }
func (d *wire) SetOption(event.Handle, *event.SocketOption) syscall.Errno { return 0 }

// connect makes a client connection and returns its handle.
func (d *wire) connect() event.Handle {
	h := d.handle()
	d.client[h] = true
	d.pending = append(d.pending, h)
	d.ready = append(d.ready, event.Ready{H: d.listen, Gen: d.gens[d.listen], Ev: event.Readable})
	return h
}
