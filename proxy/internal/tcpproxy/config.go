package tcpproxy

import (
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// DefaultIdleTimeout is idle_timeout.
const DefaultIdleTimeout = time.Hour

// Deps is what the configuration is built with.
type Deps struct {
	// Root is the root scope.
	Root apistats.Scope
	// Slot returns the slot of a cluster, which may have no cluster yet; Lookup finds clusters that filters name.
	Slot   func(name string) *cluster.Slot
	Lookup func(name string) *cluster.Slot
	// AccessLogs builds loggers.
	AccessLogs func(list []*accesslogv3.AccessLog) (accesslog.Loggers, error)
	// BufferLimit is the high watermark of the downstream connection in bytes, 0: none.
	BufferLimit int
}

// Config is one configured TCP proxy, shared by all workers.
type Config struct {
	Stats       apistats.GroupBase // stats.TCP
	Logs        accesslog.Loggers
	BufferLimit int
	// IdleTimeout and MaxDuration are 0 for none; Jitter adds up to that share of MaxDuration, in percent.
	IdleTimeout, MaxDuration time.Duration
	Jitter                   float64
	MaxAttempts              int
	// Connect says when the upstream connection is begun.
	Connect      ConnectMode
	MaxEarlyData int
	// LogStart, LogConnected and LogInterval ask for lines besides the last one.
	LogStart, LogConnected bool
	LogInterval            time.Duration
	// hashes make the hash for consistent hashing.
	hashes []hashPolicy

	lookup  func(name string) *cluster.Slot
	targets []target
	total   uint64
}

// ConnectMode says when the upstream connection is begun.
type ConnectMode uint8

// The modes, in the order of Envoy's enum.
const (
	Immediate ConnectMode = iota
	OnData
	OnHandshake
)

// target is one cluster of a choice by weight.
type target struct {
	slot *cluster.Slot
	upTo uint64
}

// New checks and compiles a configuration.
func New(p *tcpv3.TcpProxy, d *Deps) (*Config, error) {
	c := &Config{BufferLimit: d.BufferLimit, MaxAttempts: 1, lookup: d.Lookup, IdleTimeout: DefaultIdleTimeout}
	var errs config.Errors
	errs.Collect("", config.Refuse(gaps, p, ""))
	errs.Collect("", c.readTargets(p, d))
	if t := p.GetIdleTimeout(); t != nil {
		c.IdleTimeout = t.AsDuration()
	}
	if n := p.GetMaxConnectAttempts(); n != nil {
		c.MaxAttempts = int(n.GetValue())
	}
	c.MaxDuration = p.GetMaxDownstreamConnectionDuration().AsDuration()
	c.Jitter = p.GetMaxDownstreamConnectionDurationJitterPercentage().GetValue()
	errs.Collect("", c.readConnect(p))
	c.readHash(p.GetHashPolicy())
	c.Stats = d.Root.Scope("tcp").Scope(p.GetStatPrefix()).Group(stats.TCP)
	errs.Collect("access_log", c.readLogs(p, d))
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) readTargets(p *tcpv3.TcpProxy, d *Deps) error {
	switch x := p.GetClusterSpecifier().(type) {
	case *tcpv3.TcpProxy_Cluster:
		c.targets = []target{{slot: d.Slot(x.Cluster), upTo: 1}}
		c.total = 1
	case *tcpv3.TcpProxy_WeightedClusters:
		for _, w := range x.WeightedClusters.GetClusters() {
			c.total += uint64(w.GetWeight())
			c.targets = append(c.targets, target{slot: d.Slot(w.GetName()), upTo: c.total})
		}
	}
	return nil
}

func (c *Config) readConnect(p *tcpv3.TcpProxy) error {
	c.Connect = ConnectMode(p.GetUpstreamConnectMode())
	n := p.GetMaxEarlyDataBytes()
	c.MaxEarlyData = int(n.GetValue())
	if c.Connect == OnData && n == nil {
		return &config.Error{Path: "max_early_data_bytes",
			Msg: "max_early_data_bytes must be set when upstream_connect_mode is ON_DOWNSTREAM_DATA"}
	}
	return nil
}

func (c *Config) readLogs(p *tcpv3.TcpProxy, d *Deps) (err error) {
	o := p.GetAccessLogOptions()
	for old, set := range map[string]bool{"access_log_flush_interval": p.GetAccessLogFlushInterval() != nil, "flush_access_log_on_connected": p.GetFlushAccessLogOnConnected()} { //nolint:staticcheck // as below
		if o != nil && set {
			return &config.Error{Path: "access_log_options", Kind: config.Invalid, Msg: "Only one of " + old + " or access_log_options can be specified."}
		}
	}
	c.LogStart = o.GetFlushAccessLogOnStart()
	c.LogConnected = o.GetFlushAccessLogOnConnected() || p.GetFlushAccessLogOnConnected()                    //nolint:staticcheck // deprecated, still read by Envoy
	for _, t := range []*durationpb.Duration{p.GetAccessLogFlushInterval(), o.GetAccessLogFlushInterval()} { //nolint:staticcheck // as above
		if t != nil {
			c.LogInterval = t.AsDuration()
		}
	}
	c.Logs, err = d.AccessLogs(p.GetAccessLog())
	return err
}
