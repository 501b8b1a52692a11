package conn_test

import (
	"bytes"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// far is a peer that keeps what it gets.
type far struct{ got []byte }

func (f *far) Open(*sim.Conn)                  {}
func (f *far) Data(_ *sim.Conn, b []byte)      { f.got = append(f.got, b...) }
func (f *far) End(c *sim.Conn)                 { c.CloseWrite() }
func (f *far) Closed(*sim.Conn, syscall.Errno) {}

// near is a handler that does one thing when it is connected.
type near struct {
	onConnected func()
	closed      bool
}

func (n *near) OnConnected()        { n.onConnected() }
func (n *near) OnData(b []byte) int { return len(b) }
func (n *near) OnEOF()              {}
func (n *near) OnHighWatermark()    {}
func (n *near) OnLowWatermark()     {}
func (n *near) OnClose(conn.Closed) { n.closed = true }

// Large data that is sent at once comes after all that waits already, in however many pieces that is.
func TestLargeDataKeepsItsPlace(t *testing.T) {
	for _, pieces := range []int{0, 1, 14, 15, 16, 17, 100} {
		w := sim.NewWorld(1)
		at := network.AddrFrom(netip.MustParseAddrPort("10.0.0.1:80"))
		f := &far{}
		s, err := w.Serve(at, func(*sim.Conn) sim.Script { return f })
		if err != nil {
			t.Fatal(err)
		}
		k := event.New(event.Config{Name: "worker_0", Driver: w.Driver("worker_0"), Clock: w.Clock(), Rand: w.Rand("worker_0")})
		n := &near{}
		c := conn.Dial(k, &event.ConnectSpec{Address: at}, nil, n)
		var want []byte
		n.onConnected = func() {
			write := func(b []byte) {
				var data buffer.Buffer
				data.Init(&k.Bufs)
				data.Append(b)
				want = append(want, b...)
				c.WriteData(&data)
			}
			for i := range pieces {
				write(bytes.Repeat([]byte{byte(i)}, 1000))
			}
			write(bytes.Repeat([]byte{200}, 20_000))
			write([]byte("end"))
			c.Close(network.FlushWrite, "")
		}
		if err := w.Run([]*event.Worker{k}, func() bool { return n.closed && len(f.got) >= len(want) }, time.Minute); err != nil {
			t.Errorf("%d pieces: %v after %d bytes of %d", pieces, err, len(f.got), len(want))
			continue
		}
		if !bytes.Equal(f.got, want) {
			t.Errorf("%d pieces: the bytes came in another order", pieces)
		}
		s.Close()
		if live := k.Bufs.Live(); live != 0 {
			t.Errorf("%d pieces: %d slabs are left", pieces, live)
		}
	}
}
