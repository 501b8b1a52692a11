// Package simtest plays with whole proxies on a simulated network: scripted clients and upstreams, a network that misbehaves, and
// checks that what came out is what went in.
//
// Everything runs on the caller's goroutine under one seed (package proxy/internal/event/sim). Play returns what went wrong; the
// same seed plays the same game. It knows the proxy only as workers to step and an address to call.
package simtest

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// World and Faults are the simulated network's, for those outside of the engine.
type (
	World  = sim.World
	Faults = sim.Faults
)

// System is a proxy under test, or several.
type System interface {
	// Workers are stepped by the world: the main loop too, and those of every proxy.
	Workers() []*event.Worker
	// Close begins to end it. The workers are stepped on for a while; then no handle may be open.
	Close()
	// Busy describes what still goes on although no client is there.
	Busy() []string
	// Leaks describes what is still held after the end: buffers, gauges that are not zero.
	Leaks() []string
}

// Net says where things are in the world.
type Net struct {
	// Listen is where clients call.
	Listen network.Address
	// Upstreams are where the proxy finds its upstreams; any will do for any request.
	Upstreams []network.Address
}

// Build makes the system in the world, listening.
type Build func(w *World, n Net) (System, error)

// Protocol is what clients or upstreams speak.
type Protocol uint8

// HTTP1 is HTTP/1.1, HTTP2 is HTTP/2 with prior knowledge. TCP is bytes, which the proxy must carry both ways with half close.
const (
	HTTP1 Protocol = iota
	HTTP2
	TCP
)

// Weather is how the network and the upstreams behave.
type Weather uint8

const (
	// BySeed lets the seed choose.
	BySeed Weather = iota
	// Fair is a good network; Rainy cuts and delays. Nothing fails on both, so every request must be answered in full.
	Fair
	Rainy
	// Stormy breaks connections, and upstreams misbehave.
	Stormy
)

var weatherNames = [...]string{"by seed", "fair", "rainy", "stormy"}

func (w Weather) String() string { return weatherNames[w] }

// Leave is how a proxy is told to go.
type Leave uint8

const (
	// Stay: it is not.
	Stay Leave = iota
	// Drain: connections are told to end with their next answer; it goes on listening.
	Drain
	// StopListening: the same, and it listens no more. What it has accepted is served; attempts to connect may fail.
	StopListening
	// Shutdown: it closes everything. Nothing may be left of it.
	Shutdown
)

// leaver is a System that can be told to go.
type leaver interface{ Leave(how Leave) }

// UpstreamPort is where upstreams listen.
const UpstreamPort = 8080

// Options of a game.
type Options struct {
	Protocol Protocol
	// Upstream is what upstreams speak; with TCP it is the same.
	Upstream Protocol
	Weather  Weather
	// Clients and Requests of each; 0: a few.
	Clients, Requests int
	// Upstreams; 0: 2.
	Upstreams int
	// Retries is how often an upstream may see a request again.
	Retries int
	// Redirects lets upstreams of HTTP/1 answer some requests with a redirect to themselves first, up to twice, which the proxy must
	// follow.
	Redirects bool
	// Pipeline bounds how many requests a client sends before the first is answered; 0: 5.
	Pipeline int
	// Blind says that the proxy carries bytes without a look at them, so that upstreams must not do what only a proxy of their
	// protocol can hide.
	Blind bool
	// Leave happens while clients are there.
	Leave Leave
	// Trailers lets requests and answers have trailers, where their protocol has them; the proxy must pass them on.
	Trailers bool
	// Upgrades lets clients with HTTP/1 turn connections into tunnels (upgrade: sim), for upstreams with HTTP/1.
	Upgrades bool
	// NoAborts lets clients wait for every answer.
	NoAborts bool
	// Stats, if set, is given the counters of a proxy after each game, added up over all of them.
	Stats map[string]uint64
	// Trace, if set, is told of every event, for finding out.
	Trace func(line string)
}

// game is one run of Play.
type game struct {
	o       Options
	w       *World
	rnd     *rand.Source
	weather Weather
	net     Net
	sys     System
	servers []*sim.Server
	ledger  ledger
	mischief
	began   Weather // the weather before the probe
	stopped bool    // it listens no more
	shut    bool    // it has closed everything
	pending int     // clients that are not done
}

// clean tells whether every request must be answered in full.
func (g *game) clean() bool { return g.weather != Stormy && !g.shut }

// Limits of a game, in simulated time.
const (
	playTime   = time.Hour
	settleTime = 3 * time.Minute // longer than any attempt to connect
	leaveTime  = 10 * time.Second
	endTime    = time.Minute
	// patience is how long a client waits for the next byte of an answer.
	patience = 90 * time.Second
)

// Play plays one game and returns what went wrong.
func Play(seed uint64, build Build, o Options) (err error) {
	g := &game{o: o, w: sim.NewWorld(seed), weather: o.Weather}
	g.ledger.g = g
	g.rnd = g.w.Rand("game")
	if o.Trace != nil {
		g.w.Trace = func(at time.Duration, k sim.Kind, id uint32, n int) {
			o.Trace(fmt.Sprintf("%v %v %d %d", at, k, id, n))
		}
		g.w.TraceBytes = func(id uint32, b []byte) {
			if n := len(b); n > 200 {
				o.Trace(fmt.Sprintf("  to %d: %q ... %q", id, b[:100], b[n-100:]))
			} else {
				o.Trace(fmt.Sprintf("  to %d: %q", id, b))
			}
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("SEED=%d (%v): at %v: panic: %v\n%s", seed, g.began, g.w.Elapsed(), p, debug.Stack())
		}
	}()
	if err := g.play(build); err != nil {
		return fmt.Errorf("SEED=%d (%v): %w", seed, g.began, err)
	}
	return nil
}

// Hash is like Play, for comparing runs.
func Hash(seed uint64, build Build, o Options) (uint64, error) {
	var w *World
	err := Play(seed, func(x *World, n Net) (System, error) {
		w = x
		return build(x, n)
	}, o)
	return w.Hash(), err
}

func (g *game) play(build Build) error {
	g.setUp()
	if err := g.serve(); err != nil {
		return err
	}
	var err error
	if g.sys, err = build(g.w, g.net); err != nil {
		return err
	}
	if p, ok := g.sys.(pusher); ok {
		g.push(p, g.w.Rand("push"))
	}
	for i := range g.o.Clients {
		g.client(fmt.Sprint("client", i), g.o.Requests, g.w.Rand(fmt.Sprint("client", i)))
	}
	if err := g.leave(); err != nil {
		return err
	}
	if err := g.run(playTime, func() bool { return g.pending == 0 }); err != nil {
		return fmt.Errorf("%w: %s", err, g.ledger.open())
	}
	// Whatever happened, the proxy must serve again once the weather is good.
	g.w.SetFaults(sim.Calm())
	g.weather, g.mischief, g.o.NoAborts = Fair, mischief{}, true
	if err := g.pause(settleTime); err != nil {
		return err
	}
	if !g.stopped {
		g.client("probe", 3, g.w.Rand("probe"))
	}
	if err := g.run(playTime, func() bool { return g.pending == 0 }); err != nil {
		return fmt.Errorf("the probe afterwards: %w: %s", err, g.ledger.open())
	}
	// The last client was done before the last upstream.
	if err := g.pause(leaveTime); err != nil {
		return err
	}
	g.ledger.close()
	if busy := g.sys.Busy(); len(busy) > 0 {
		return errors.New("still busy after the last client: " + strings.Join(busy, "; "))
	}
	if err := g.end(); err != nil {
		return err
	}
	return g.ledger.err()
}

// leave tells the proxy to go, at some time.
func (g *game) leave() error {
	if g.o.Leave == Stay {
		return nil
	}
	l, ok := g.sys.(leaver)
	if !ok {
		return errors.New("the system cannot be told to go")
	}
	g.w.After(time.Duration(g.w.Rand("leave").IntN(3e8)), func() {
		g.stopped = g.o.Leave >= StopListening
		g.shut = g.o.Leave == Shutdown
		g.ledger.clean = g.ledger.clean && !g.shut
		l.Leave(g.o.Leave)
	})
	return nil
}

// lost is how a request ends with its connection.
func (g *game) lost(e syscall.Errno) string {
	if g.stopped && e != 0 {
		return notAccepted
	}
	return fmt.Sprintf("connection lost (%v)", e)
}

// pusher is a System whose configuration may change.
type pusher interface{ Push(r *rand.Source) }

// push changes the configuration every now and then, as long as there are clients.
func (g *game) push(p pusher, r *rand.Source) {
	g.w.After(time.Duration(r.IntN(2e8)), func() {
		if g.pending > 0 {
			p.Push(r)
			g.push(p, r)
		}
	})
}

// setUp draws what was left open.
func (g *game) setUp() {
	if g.o.Clients == 0 {
		g.o.Clients = 1 + g.rnd.IntN(6)
	}
	if g.o.Requests == 0 {
		g.o.Requests = 1 + g.rnd.IntN(6)
	}
	if g.o.Pipeline == 0 {
		g.o.Pipeline = 5
	}
	if g.o.Upstreams == 0 {
		g.o.Upstreams = 2
	}
	if g.weather == BySeed {
		g.weather = Fair + Weather(g.rnd.IntN(3))
	}
	switch g.weather {
	case Rainy:
		g.w.SetFaults(sim.Rough())
	case Stormy:
		g.w.SetFaults(sim.Hostile())
		g.mischief = someMischief()
		if g.o.Blind {
			g.garbage = 0
		}
	}
	g.began, g.ledger.clean = g.weather, g.clean()
	g.net.Listen = network.AddrFrom(netip.MustParseAddrPort("10.0.0.1:80"))
	for i := range g.o.Upstreams {
		g.net.Upstreams = append(g.net.Upstreams, network.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i + 1)}), UpstreamPort)))
	}
}

func (g *game) serve() error {
	for i, a := range g.net.Upstreams {
		r := g.w.Rand(fmt.Sprint("upstream", i))
		s, err := g.w.Serve(a, func(*sim.Conn) sim.Script {
			switch {
			case g.o.Protocol == TCP:
				return &tcpUpstream{g: g, rnd: r}
			case g.o.Upstream == HTTP2:
				return &h2Upstream{g: g, rnd: r}
			}
			return &h1Upstream{g: g, rnd: r}
		})
		if err != nil {
			return err
		}
		g.servers = append(g.servers, s)
	}
	return nil
}

func (g *game) client(name string, requests int, r *rand.Source) {
	g.pending++
	start := time.Duration(r.IntN(1e8))
	switch g.o.Protocol {
	case TCP:
		g.w.After(start, (&tcpClient{g: g, name: name, rnd: r, left: requests}).next)
	case HTTP2:
		g.w.After(start, (&h2Client{g: g, name: name, rnd: r, left: requests, depth: []int{1, 3, 100}[r.IntN(3)]}).connect)
	default:
		c := &h1Client{g: g, name: name, rnd: r, left: requests, depth: min(g.o.Pipeline, []int{1, 1, 1, 2, 5}[r.IntN(5)])}
		g.w.After(start, c.connect)
	}
}

func (g *game) run(limit time.Duration, until func() bool) error {
	if err := g.w.Run(g.sys.Workers(), func() bool { return until() || g.ledger.failed() }, limit); err != nil {
		return errors.Join(g.ledger.err(), err)
	}
	return g.ledger.err()
}

func (g *game) pause(d time.Duration) error {
	over := false
	g.w.After(d, func() { over = true })
	return g.run(2*d, func() bool { return over })
}

// end closes the system, then the upstreams, and looks at what is left.
func (g *game) end() error {
	g.sys.Close()
	if err := g.pause(endTime); err != nil {
		return err
	}
	for _, s := range g.servers {
		s.Close()
	}
	if s, ok := g.sys.(interface{ Stats() map[string]uint64 }); ok && g.o.Stats != nil {
		for name, v := range s.Stats() {
			g.o.Stats[name] += v
		}
	}
	left := append(g.w.Open(), g.sys.Leaks()...)
	if len(left) > 0 {
		return errors.New("left after the end: " + strings.Join(left, "; "))
	}
	return nil
}
