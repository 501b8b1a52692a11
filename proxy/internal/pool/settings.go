package pool

import (
	"sync/atomic"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// Protocol says what a pool's connections speak.
type Protocol uint8

// The protocols of a cluster. A pool has one of the first three.
const (
	HTTP1 Protocol = iota
	HTTP2
	// Auto: what ALPN agreed on.
	Auto
	// Downstream: as the client does.
	Downstream
)

// TransportFactory makes the transport sockets of a cluster's connections (TLS). It is shared by all workers.
type TransportFactory interface {
	// New returns the transport of one new connection to h; nil for plain bytes. ALPN's outcome must be in the connection's
	// Info.Protocol before Conn.Ready is called. A failure tells why there can be no connection now (secrets are missing).
	// alpn is what to offer if the configuration names no protocols; nil: nothing.
	New(w *event.Worker, h *host.Host, alpn []string) (t conn.Transport, failure string)
}

// Names are what a request says about the TLS of the connection that carries it (auto_sni, auto_san_validation). Pools of different
// names share no connections.
type Names struct {
	// SNI is the server name to ask for, "" for the configuration's. SAN is what the server's certificate must be for, "" for what the
	// configuration says.
	SNI, SAN string
}

// Namer is a TransportFactory that heeds Names.
type Namer interface {
	NewNamed(w *event.Worker, h *host.Host, alpn []string, sni, san string) (t conn.Transport, failure string)
}

// The defaults of Options.
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultIdleTimeout    = time.Hour
	DefaultBufferLimit    = 1 << 20
)

// Options are how a cluster's connections are made and kept. They are immutable and shared by clusters that are configured
// alike.
type Options struct {
	Protocol Protocol
	H1       *h1.Options
	H2       *h2.Options

	ConnectTimeout time.Duration
	// IdleTimeout closes connections without requests; 0: never. MaxDuration drains connections of that age; 0: never.
	IdleTimeout time.Duration
	MaxDuration time.Duration
	// Preconnect is how much room for streams there should be, as a multiple of those that there are; 1 or less: as much as is needed now.
	Preconnect float64
	// Predict is the same for all pools of a cluster on a worker, for the hosts that are picked next.
	Predict float64
	// MaxRequests is how many requests a connection carries; 0: any number.
	MaxRequests uint32
	// Keepalive pings HTTP/2 connections that long after the last answer to a ping, give or take KeepaliveJitter percent; 0: never.
	// A connection that does not answer within KeepaliveTimeout is closed. KeepaliveIdle pings when a stream begins after that
	// much silence; 0: never.
	Keepalive, KeepaliveTimeout, KeepaliveIdle time.Duration
	KeepaliveJitter                            uint32
	// AutoSNI and AutoSAN make Names of a request's authority, or of its header SNIHeader.
	AutoSNI, AutoSAN bool
	SNIHeader        string
	// MaxStreamDuration bounds each stream; 0: not.
	MaxStreamDuration time.Duration
	// BufferLimit is the high watermark of a connection's write buffer in bytes; 0: none.
	BufferLimit uint32
	// Filters are the upstream HTTP filters that requests of the cluster go through, for the router; nil: those of the router.
	Filters any
	// Policies are what the cluster says in place of the routes of its requests, for the router (*route.ClusterPolicies); nil: nothing.
	Policies any
	// Source and Sockets are for every connection's socket.
	Source  network.Address
	Sockets []event.SocketOption
}

// Settings are what the pools of one cluster share. Immutable once a worker has seen it, except for what is atomic.
type Settings struct {
	*Options
	// Stats is where the cluster's group begins (stats.Cluster).
	Stats apistats.GroupBase
	// Transport is nil for plain connections.
	Transport TransportFactory
	// Limits are the thresholds of each priority.
	Limits *[NumPriorities]Limits

	breakers [NumPriorities]atomic.Pointer[Breakers]
	retired  atomic.Bool
}

// Breakers returns the breakers of a priority, made on first use. Safe from any thread.
func (s *Settings) Breakers(p Priority) *Breakers {
	if b := s.breakers[p].Load(); b != nil {
		return b
	}
	b := NewBreakers(&s.Limits[p])
	if !s.breakers[p].CompareAndSwap(nil, b) {
		b = s.breakers[p].Load()
	}
	return b
}

// Used returns the breakers of a priority if they were made, nil otherwise.
func (s *Settings) Used(p Priority) *Breakers { return s.breakers[p].Load() }

// Retire marks the cluster as replaced or removed: from now on no connection outlives its last stream. Safe from any thread.
func (s *Settings) Retire() { s.retired.Store(true) }

// Retired tells whether Retire was called.
func (s *Settings) Retired() bool { return s.retired.Load() }

// codecs are what a worker's client codecs share.
type codecs struct {
	h1   h1.Pool
	h2   h2.Pool
	rare rare // empty, and stays so
}

var workerCodecs = event.NewLocal(func(w *event.Worker) *codecs {
	c := &codecs{}
	c.h2.Stats = w.Stats
	return c
})
