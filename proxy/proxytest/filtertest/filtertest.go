// Package filtertest is what listener and network filters are tested with: a factory context with real stats, and a connection of
// which the test is the peer.
//
// Everything happens on the test's goroutine, inside the calls of this package: there is no worker and no socket.
package filtertest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Context is an ext.FactoryContext.
type Context struct {
	store *stats.Store
	shard *stats.Shard
	posts []func()
	timer []*Timer
	now   int64
}

// NewContext returns a Context without stats.
func NewContext() *Context {
	c := &Context{store: stats.NewStore()}
	c.shard = c.store.NewShard("worker_0")
	return c
}

// Scope implements ext.FactoryContext.
func (c *Context) Scope() apistats.Scope { return c.store.Root() }

// RootScope implements ext.FactoryContext.
func (c *Context) RootScope() apistats.Scope { return c.store.Root() }

// Clock implements ext.FactoryContext.
func (c *Context) Clock() clock.Clock { return clock.System() }

// Post implements ext.FactoryContext: f runs at once.
func (c *Context) Post(f func()) { f() }

// EachWorker implements ext.FactoryContext: there is one.
func (c *Context) EachWorker(f func(d network.Dispatcher)) { f(&dispatcher{c}) }

// HasCluster implements ext.FactoryContext.
func (c *Context) HasCluster(string) bool { return false }

// Format implements ext.FactoryContext.
func (c *Context) Format(string) (ext.Formatter, error) { return nil, nil }

// Stats returns all counters and gauges that are not zero.
func (c *Context) Stats() map[string]uint64 {
	sn := c.store.Begin(c.shard)
	c.shard.Snapshot(sn)
	c.store.Collect(sn)
	out := map[string]uint64{}
	for line := range strings.SplitSeq(string(stats.WriteAll(c.store.Text(stats.Query{}))), "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok {
			if n, err := strconv.ParseUint(v, 10, 64); err == nil && n > 0 {
				out[name] = n
			}
		}
	}
	return out
}

// dispatcher is the worker as filters see it.
type dispatcher struct{ c *Context }

func (d *dispatcher) Now() int64               { return d.c.now }
func (d *dispatcher) Wall() int64              { return d.c.now }
func (d *dispatcher) Post(f func())            { d.c.posts = append(d.c.posts, f) }
func (d *dispatcher) WorkerIndex() int         { return 0 }
func (d *dispatcher) Stats() apistats.Recorder { return d.c.shard }

func (d *dispatcher) NewTimer(f func()) network.Timer {
	t := &Timer{c: d.c, f: f}
	d.c.timer = append(d.c.timer, t)
	return t
}

// Timer is a filter's timer; Advance fires it.
type Timer struct {
	c  *Context
	f  func()
	at int64 // 0: not armed
}

// Arm implements network.Timer.
func (t *Timer) Arm(d time.Duration) { t.at = t.c.now + max(int64(d), 1) }

// Disarm implements network.Timer.
func (t *Timer) Disarm() { t.at = 0 }

// Advance lets time pass and fires what is due.
func (c *Context) Advance(d time.Duration) {
	c.now += int64(d)
	for _, t := range c.timer {
		if t.at > 0 && t.at <= c.now {
			t.at = 0
			t.f()
		}
	}
}

// Outcome is what became of a connection in a listener filter.
type Outcome uint8

// The outcomes.
const (
	Waits Outcome = iota
	Passed
	Closed
)

// String names an outcome.
func (o Outcome) String() string { return [...]string{"waits", "passed", "closed"}[o] }

// Conn is a connection in one listener filter.
type Conn struct {
	dispatcher
	f    network.ListenerFilter
	info network.ConnInfo
	// Original is what OriginalDestination answers, if it is valid.
	Original network.Address
	// Outcome is where it stands, Unread what is left for what comes after the filter.
	Outcome Outcome
	Unread  []byte
	call    bool
}

// Accept makes a connection between two addresses and gives it to a new filter of the extension.
func (c *Context) Accept(t testing.TB, x *ext.ListenerFilter, cfg proto.Message, info network.ConnInfo) *Conn {
	t.Helper()
	mk, err := x.New(cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	return c.AcceptWith(mk, info)
}

// AcceptWith is Accept for a configuration that was built already.
func (c *Context) AcceptWith(mk func(d network.Dispatcher) network.ListenerFilter, info network.ConnInfo) *Conn {
	n := &Conn{dispatcher: dispatcher{c}, info: info}
	n.f = mk(&n.dispatcher)
	n.do(func() network.FilterStatus { return n.f.OnAccept(n) })
	return n
}

func (n *Conn) do(f func() network.FilterStatus) {
	n.call = true
	st := f()
	n.call = false
	if st == network.Continue && n.Outcome == Waits {
		n.Outcome = Passed
	}
}

// Receive lets bytes arrive.
func (n *Conn) Receive(b []byte) {
	n.Unread = append(n.Unread, b...)
	if n.Outcome == Waits && len(n.Unread) > 0 && n.f.MaxReadBytes() > 0 {
		// The filter gets a copy that is overwritten afterwards: it may not keep views.
		lent := append([]byte(nil), n.Unread...)
		n.do(func() network.FilterStatus { return n.f.OnData(lent) })
		for i := range lent {
			lent[i] = 0xdb
		}
	}
}

// Info implements network.ListenerCallbacks.
func (n *Conn) Info() *network.ConnInfo { return &n.info }

// Consume implements network.ListenerCallbacks.
func (n *Conn) Consume(k int) { n.Unread = n.Unread[k:] }

// ContinueListenerFilter implements network.ListenerCallbacks.
func (n *Conn) ContinueListenerFilter(ok bool) {
	switch {
	case n.Outcome != Waits:
	case ok:
		n.Outcome = Passed
	default:
		n.Outcome = Closed
	}
}

// OriginalDestination implements network.ListenerCallbacks.
func (n *Conn) OriginalDestination() (network.Address, bool) { return n.Original, n.Original.Valid() }
