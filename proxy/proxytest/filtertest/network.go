package filtertest

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Network is a connection in one network filter.
type Network struct {
	dispatcher
	f    network.ReadFilter
	info network.ConnInfo
	pool buffer.Pool
	in   buffer.Buffer
	// Sent is what was written, "$" behind it is our FIN. Passed is what the filter let through.
	Sent, Passed string
	// Closed is how it was closed: "" if it was not.
	Closed string
	// Status is what the filter answered last, Pauses how often reading was disabled and not enabled again.
	Status    network.FilterStatus
	Pauses    int
	HalfClose bool
	high      bool
}

// Connect makes a connection and gives it to a new filter of the extension.
func (c *Context) Connect(t testing.TB, x *ext.NetworkFilter, cfg proto.Message, info network.ConnInfo) *Network {
	t.Helper()
	mk, err := x.New(cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	return c.ConnectWith(mk, info)
}

// ConnectWith is Connect for a configuration that was built already.
func (c *Context) ConnectWith(mk func(d network.Dispatcher) network.ReadFilter, info network.ConnInfo) *Network {
	n := &Network{dispatcher: dispatcher{c}, info: info}
	n.in.Init(&n.pool)
	n.f = mk(&n.dispatcher)
	n.Status = n.f.OnNewConnection(n)
	return n
}

// Receive lets bytes arrive, and the peer's end.
func (n *Network) Receive(b string, end bool) {
	n.in.AppendString(b)
	n.Status = n.f.OnData(&n.in, end)
	if n.Status == network.Continue {
		n.Passed += string(n.in.Bytes())
		n.in.Reset()
	}
}

// Event tells the filter of an event.
func (n *Network) Event(e network.ConnEvent) { n.f.OnEvent(e) }

// Left returns the bytes that the filter has neither taken nor passed on.
func (n *Network) Left() string { return string(n.in.Bytes()) }

// Live returns how many slabs are in use.
func (n *Network) Live() int { return n.pool.Live() }

// Connection implements network.ReadCallbacks.
func (n *Network) Connection() network.Connection { return n }

// ContinueReading implements network.ReadCallbacks.
func (n *Network) ContinueReading() {
	n.Status = network.Continue
	n.Passed += string(n.in.Bytes())
	n.in.Reset()
}

// EnableHalfClose implements network.ReadCallbacks.
func (n *Network) EnableHalfClose() { n.HalfClose = true }

// Info implements network.Connection.
func (n *Network) Info() *network.ConnInfo { return &n.info }

// Write implements network.Connection.
func (n *Network) Write(data *buffer.Buffer, end bool) {
	n.Sent += string(data.Bytes())
	data.Reset()
	if end {
		n.Sent += "$"
	}
}

// Close implements network.Connection.
func (n *Network) Close(t network.CloseType, reason string) {
	n.Closed = [...]string{"flush", "flush and delay", "no flush", "abort"}[t]
	if reason != "" {
		n.Closed += ": " + reason
	}
}

// ReadDisable implements network.Connection.
func (n *Network) ReadDisable(disable bool) {
	if disable {
		n.Pauses++
	} else {
		n.Pauses--
	}
}

// SetBufferLimit implements network.Connection.
func (n *Network) SetBufferLimit(int) {}

// AboveHighWatermark implements network.Connection.
func (n *Network) AboveHighWatermark() bool { return n.high }
