// Package hcm is the HTTP connection manager: it owns a downstream HTTP connection, its codec and its streams, makes requests
// safe to route (header rules, path rules, identity), runs them through the filter manager, and finishes them (stats, logs).
//
// All of it belongs to the connection's worker. Configuration is a plain, immutable Config that all workers share; no protobuf
// is read while serving (settings.go turns the protobuf into it on the main loop).
package hcm

import (
	"net/netip"
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// CodecType says how the protocol of a connection is found.
type CodecType uint8

// The codec types. Auto: ALPN, then the first bytes.
const (
	Auto CodecType = iota
	HTTP1
	HTTP2
)

// ServerHeader says what happens to the response's server header.
type ServerHeader uint8

// The transformations of the server header.
const (
	Overwrite ServerHeader = iota
	AppendIfAbsent
	PassThrough
)

// Config is what a connection manager was configured to do. Durations of 0 mean "off".
type Config struct {
	StatPrefix string
	Stats      astats.GroupBase // stats.HCM
	// ListenerStats is stats.ListenerHTTP of this manager under its listener.
	ListenerStats astats.GroupBase
	H1Stats       astats.GroupBase
	H2Stats       astats.GroupBase

	Codec CodecType
	H1    h1.Options
	H2    h2.Options
	Chain *fm.Chain
	// Routes is the current route table.
	Routes *route.Slot
	Logs   accesslog.Loggers

	ServerName   string
	ServerHeader ServerHeader
	Via          string

	UseRemoteAddress     bool
	SkipXFFAppend        bool
	AppendXForwardedPort bool
	XFFTrustedHops       int
	Internal             []netip.Prefix
	// LocalAddress is appended to x-forwarded-for in place of a loopback peer.
	LocalAddress netip.Addr

	GenerateRequestID    bool
	PreserveRequestID    bool
	RequestIDInResponse  bool
	Proxy100Continue     bool
	AcceptHTTP10         bool
	DefaultHTTP10Host    string
	NormalizePath        bool
	MergeSlashes         bool
	RejectFragment       bool
	StripMatchingPort    bool
	StripAnyPort         bool
	StripTrailingDot     bool
	StreamErrorOnInvalid bool
	SchemeOverwrite      string

	// Upgrades are the protocols that requests may upgrade to, by lower-case name.
	Upgrades map[string]bool

	IdleTimeout           time.Duration // of a connection without streams, 1 h
	StreamIdleTimeout     time.Duration // 5 min
	RequestTimeout        time.Duration
	RequestHeadersTimeout time.Duration
	MaxConnectionDuration time.Duration
	MaxStreamDuration     time.Duration
	DrainTimeout          time.Duration // 5 s
	DelayedCloseTimeout   time.Duration // 1 s
	MaxRequests           int           // per connection, 0: no limit

	// BufferLimit is the listener's per_connection_buffer_limit_bytes.
	BufferLimit int

	LocalReply *LocalReplyConfig

	// Draining tells whether the listener (or the process) is draining, so that connections end after their response. nil: never.
	Draining func() bool
	// Calls starts the calls of filters; nil: they fail.
	Calls Caller
	// Runtime answers runtime keys; nil: defaults.
	Runtime route.RuntimeReader
}

// Caller sends requests of filters to clusters (async's client).
type Caller interface {
	// Send starts c on w; done is called on w, never inline.
	Send(w *event.Worker, c *filter.Call, done func(*filter.Answer, error)) filter.Canceler
}

// LocalReplyConfig changes local replies.
type LocalReplyConfig struct {
	Mappers []LocalReplyMapper
	Body    *format.Format
	// ContentType is the content type of Body.
	ContentType string
}

// LocalReplyMapper is one mapper; the first whose Filter matches is taken.
type LocalReplyMapper struct {
	Filter      accesslog.Filter
	Code        int // 0: unchanged
	Body        string
	HasBody     bool
	Format      *format.Format
	ContentType string
	Headers     *route.Mutations
}

// hopByHop are request headers that end at this hop; upgrade requests keep connection and upgrade.
var (
	hopByHop        = http.MakeSet(http.Connection, http.Upgrade, http.KeepAlive, http.ProxyConnection, http.TransferEncoding, http.EnvoyInternal)
	hopByHopUpgrade = http.MakeSet(http.KeepAlive, http.ProxyConnection, http.TransferEncoding, http.EnvoyInternal)
	// notExternal are headers that only internal clients may send.
	notExternal = http.MakeSet(http.EnvoyRetriableStatusCodes, http.EnvoyRetriableHeaderNames, http.EnvoyRetryOn, http.EnvoyRetryGrpcOn,
		http.EnvoyMaxRetries, http.EnvoyUpstreamAltStatName, http.EnvoyUpstreamRqTimeoutMs, http.EnvoyUpstreamRqPerTryTimeoutMs,
		http.EnvoyUpstreamRqTimeoutAltResponse, http.EnvoyExpectedRqTimeoutMs, http.EnvoyForceTrace, http.EnvoyIPTags,
		http.EnvoyOriginalURL, http.EnvoyHedgeOnPerTryTimeout)
	// notEdge are headers that clients at the edge may not send.
	notEdge = http.MakeSet(http.EnvoyDecoratorOperation, http.EnvoyDownstreamServiceCluster, http.EnvoyDownstreamServiceNode,
		http.EnvoyOriginalPath, http.EnvoyOriginalHost)
)
