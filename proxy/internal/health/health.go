// Package health finds out whether hosts are well by asking them: active health checks over HTTP, gRPC and TCP.
//
// A Checker belongs to one cluster and, with all that it holds, to the main loop: it owns a session for each host, with a timer and a
// connection of its own. It sets the host's flags and tells its owner of changes; it picks no host, builds no table, and workers never
// come here. The states and what leads from one to the other are Envoy's (docs: "Health checking", config.core.v3.HealthCheck).
package health

import (
	"time"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Options say how the hosts of a cluster are checked. They are immutable.
type Options struct {
	// Name tells checks apart, "" if it has none.
	Name string
	// Timeout bounds one check.
	Timeout time.Duration
	// The time from the end of a check to the next one: usually, for hosts that are not healthy, and, with Edge in the name, as long
	// as more results are needed for a change. The last two hold until the cluster has had a connection for traffic.
	Interval, UnhealthyInterval           time.Duration
	UnhealthyEdge, HealthyEdge            time.Duration
	NoTrafficInterval, NoTrafficHealthily time.Duration
	// InitialJitter and Jitter are the longest random times that are added, JitterPercent is the same as a share of the interval.
	InitialJitter, Jitter time.Duration
	JitterPercent         uint32
	// Healthy and Unhealthy are how many results in a row change a host's health.
	Healthy, Unhealthy uint32
	// NoReuse makes a connection for each check.
	NoReuse bool
	// LogFailures and LogSuccess write every result to the logs, not only changes.
	LogFailures, LogSuccess bool

	// HTTP, TCP or GRPC says what is asked: one is set.
	HTTP *HTTP
	TCP  *TCP
	GRPC *GRPC
}

// Runtime answers runtime keys.
type Runtime interface {
	Uint(key string, def uint64) uint64
	Fraction(key string, numerator, denominator uint64) (n, d uint64)
}

// Config is what a Checker is made of.
type Config struct {
	Worker  *event.Worker // the main loop
	Options *Options
	// Pools are the cluster's settings for connections.
	Pools *pool.Settings
	// Cluster is the cluster's name: the authority where nothing else is said.
	Cluster string
	// Stats is where the group of the checks begins (stats.HealthCheck).
	Stats apistats.GroupBase
	// Logs take the events; New takes them over, and Close releases them.
	Logs []Log
	// Runtime may be nil: defaults.
	Runtime Runtime
	// Used tells whether the cluster has had a connection for traffic.
	Used func() bool
	// OnResult is told of each result. It must not call the Checker.
	OnResult func(h *host.Host, r Result)
}

// Result is what a check led to.
type Result struct {
	// First: the host had no result before.
	First bool
	// Changed: flags of the host have, so that tables need to be built anew.
	Changed bool
	// Failed: the host became unhealthy by it.
	Failed bool
}

// Checker checks the hosts of one cluster. owner: main loop.
type Checker struct {
	Config
	sessions map[*host.Host]*session
	fresh    int // sessions without a result
	events   events
}

// New returns a Checker without hosts.
func New(c Config) *Checker {
	return &Checker{Config: c, sessions: make(map[*host.Host]*session), events: events{logs: c.Logs, kind: c.Options.kind()}}
}

// Fresh returns how many hosts have had no result yet.
func (c *Checker) Fresh() int { return c.fresh }

// Len returns how many hosts are checked.
func (c *Checker) Len() int { return len(c.sessions) }

// Add begins to check a host, unless it is checked already or wants no checks. The caller has set FailedActiveHC.
func (c *Checker) Add(h *host.Host) {
	if c.sessions[h] != nil || h.Extra != nil && h.Extra.NoHealthCheck {
		return
	}
	s := &session{c: c, h: h, first: true}
	s.timer.Fn = s.onTimer
	switch o := c.Options; {
	case o.TCP != nil:
		s.inquiry = &tcpInquiry{s: s}
	case o.GRPC != nil:
		s.inquiry = newAsker(s, &grpcJudge{s: s})
	default:
		s.inquiry = newAsker(s, &httpJudge{s: s})
	}
	c.sessions[h] = s
	c.fresh++
	h.SetFlag(host.Checked, true)
	c.count(h, 1)
	s.begin()
}

// Remove ends the checks of a host.
func (c *Checker) Remove(h *host.Host) {
	s := c.sessions[h]
	if s == nil {
		return
	}
	delete(c.sessions, h)
	if s.first {
		c.fresh--
	}
	c.count(h, -1)
	s.end()
}

// Close ends all checks. The flags of the hosts stay.
func (c *Checker) Close() {
	for _, s := range c.sessions { // the order does not show: nothing is told
		c.count(s.h, -1)
		s.end()
	}
	clear(c.sessions)
	c.fresh = 0
	for _, l := range c.events.logs {
		l.Release()
	}
	c.events.logs = nil
}

// FailNow takes a host for unhealthy that has said so in its answer to a request (x-envoy-immediate-health-check-fail).
func (c *Checker) FailNow(h *host.Host) {
	s := c.sessions[h]
	if s == nil {
		return
	}
	h.SetFlag(host.ExcludedViaImmediateHCFail, true)
	s.failed(byRequest, verdict{})
}

// count adds a host to the gauges, or takes it away.
func (c *Checker) count(h *host.Host, n int) {
	if !h.Has(host.FailedActiveHC) {
		c.gauge(stats.HealthCheckHealthy, n)
	}
	if h.Has(host.DegradedActiveHC) {
		c.gauge(stats.HealthCheckDegraded, n)
	}
}

// gauge moves a gauge, which two generations of a cluster share for a while.
func (c *Checker) gauge(i apistats.GaugeIndex, n int) {
	c.Worker.Stats.GaugeAdd(c.Stats.Gauge(i), int64(n))
}

func (c *Checker) inc(i apistats.CounterIndex) { c.Worker.Stats.Inc(c.Stats.Counter(i)) }

// after is the time to the next check.
func (c *Checker) after(healthy, pending bool) time.Duration {
	o := c.Options
	switch {
	case !c.Used() && healthy && !pending:
		return c.spread(o.NoTrafficHealthily, o.Jitter)
	case !c.Used():
		return c.spread(o.NoTrafficInterval, o.Jitter)
	case healthy && pending:
		return c.spread(o.HealthyEdge, o.Jitter)
	case healthy:
		return c.spread(o.Interval, o.Jitter)
	case pending:
		return c.spread(o.UnhealthyEdge, o.Jitter)
	}
	return c.spread(o.UnhealthyInterval, o.Jitter)
}

// spread adds chance to an interval, and keeps it within the bounds that runtime keys set in milliseconds.
func (c *Checker) spread(d, jitter time.Duration) time.Duration {
	if n := d / 100 * time.Duration(c.Options.JitterPercent); n >= time.Millisecond {
		d += c.chance(n)
	}
	if jitter >= time.Millisecond {
		d += c.chance(jitter)
	}
	if c.Runtime != nil {
		const longest = 1 << 40
		d = min(d, time.Duration(min(c.Runtime.Uint("health_check.max_interval", longest), longest))*time.Millisecond)
		d = max(d, time.Duration(min(c.Runtime.Uint("health_check.min_interval", 0), longest))*time.Millisecond)
	}
	return max(d, time.Millisecond) // 0 would never let go
}

func (c *Checker) chance(below time.Duration) time.Duration {
	return time.Duration(c.Worker.Rand.Uint64() % uint64(below))
}
