// Package connection_limit is the network filter that bounds the connections of its filter chain: one more is closed, after a delay
// if the configuration has one.
//
// A filter belongs to one connection on its worker; the count is the chain's, over all workers, and exact.
package connection_limit //nolint:revive // Envoy's name

import (
	"errors"
	"sync/atomic"
	"time"

	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/connection_limit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.NetworkFilter{
	Info: ext.Info{
		Name:     "envoy.filters.network.connection_limit",
		TypeURLs: []string{"envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit"},
		Posture:  ext.RobustToUntrustedDownstream,
	},
	New: func(m proto.Message, ctx ext.FactoryContext) (func(d network.Dispatcher) network.ReadFilter, error) {
		c, err := newConfig(m.(*limitv3.ConnectionLimit), ctx)
		if err != nil {
			return nil, err
		}
		return func(network.Dispatcher) network.ReadFilter { return &filter{cfg: c} }, nil
	},
}

// The indices of the filter's stats.
const (
	active  stats.GaugeIndex   = 0
	limited stats.CounterIndex = 1
)

var template = stats.MustTemplate("connection limit filter",
	stats.Gauge(active, "active_connections"),
	stats.Counter(limited, "limited_connections"),
)

// config is shared by all connections of a chain.
type config struct {
	stats   stats.GroupBase
	max     int64
	delay   time.Duration
	runtime ext.Runtime
	key     string // of the runtime, "": none
	enabled bool   // what it is if there is no such key
	n       atomic.Int64
}

func newConfig(p *limitv3.ConnectionLimit, ctx ext.FactoryContext) (*config, error) {
	if p.GetMaxConnections() == nil {
		return nil, errors.New("max_connections: Field 'max_connections' is missing")
	}
	c := &config{max: int64(p.GetMaxConnections().GetValue()), delay: p.GetDelay().AsDuration(), enabled: true}
	c.runtime, c.key = ctx.Runtime(), p.GetRuntimeEnabled().GetRuntimeKey()
	if e := p.GetRuntimeEnabled().GetDefaultValue(); e != nil {
		c.enabled = e.GetValue()
	}
	c.stats = ctx.Scope().Scope("connection_limit").Scope(p.GetStatPrefix()).Group(template)
	return c, nil
}

// enter takes a place, or returns false if there is none.
func (c *config) enter() bool {
	for {
		n := c.n.Load()
		if n >= c.max {
			return false
		}
		if c.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// filter is one connection.
type filter struct {
	cfg      *config
	cb       network.ReadCallbacks
	timer    network.Timer
	entered  bool
	rejected bool
	counted  bool
}

// OnNewConnection implements network.ReadFilter.
func (f *filter) OnNewConnection(cb network.ReadCallbacks) network.FilterStatus {
	f.cb = cb
	enabled := f.cfg.enabled
	if f.cfg.key != "" {
		enabled = f.cfg.runtime.Bool(f.cfg.key, enabled)
	}
	if !enabled {
		return network.Continue
	}
	f.counted = true
	cb.Stats().GaugeAdd(f.cfg.stats.Gauge(active), 1)
	if f.cfg.enter() {
		f.entered = true
		return network.Continue
	}
	f.rejected = true
	cb.Stats().Inc(f.cfg.stats.Counter(limited))
	if f.cfg.delay > 0 {
		f.timer = cb.NewTimer(f.close)
		f.timer.Arm(f.cfg.delay)
	} else {
		f.close()
	}
	return network.StopIteration
}

func (f *filter) close() { f.cb.Connection().Close(network.NoFlush, "over_connection_limit") }

// OnData implements network.ReadFilter.
func (f *filter) OnData(*buffer.Buffer, bool) network.FilterStatus {
	if f.rejected {
		return network.StopIteration
	}
	return network.Continue
}

// Indifferent implements network.Indifferent.
func (f *filter) Indifferent() bool { return !f.rejected }

// OnEvent implements network.ReadFilter.
func (f *filter) OnEvent(e network.ConnEvent) {
	if e != network.RemoteClose && e != network.LocalClose {
		return
	}
	if f.timer != nil {
		f.timer.Disarm()
	}
	if f.counted {
		f.counted = false
		f.cb.Stats().GaugeSub(f.cfg.stats.Gauge(active), 1)
	}
	if f.entered {
		f.entered = false
		f.cfg.n.Add(-1)
	}
}
