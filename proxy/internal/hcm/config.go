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
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
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
	// Routes is the current route table. Scopes, if it is set, chooses the table in its place.
	Routes *route.Slot
	Scopes *route.Scopes
	Logs   accesslog.Loggers
	// LogStart logs requests as they begin, too, LogTunnel tunnels as they are established, and LogInterval all that last.
	LogStart, LogTunnel bool
	LogInterval         time.Duration

	ServerName   string
	ServerHeader ServerHeader
	Via          string

	UseRemoteAddress     bool
	SkipXFFAppend        bool
	AppendXForwardedPort bool
	XFFTrustedHops       int
	// MapIPv4 writes IPv4 peers into x-forwarded-for as IPv6 addresses.
	MapIPv4  bool
	Internal []netip.Prefix
	// InternalUnix: clients on Unix sockets are internal.
	InternalUnix bool
	// Detection finds the client's address in place of x-forwarded-for's last one; nil for that.
	Detection []Detector
	// LocalAddress is appended to x-forwarded-for in place of a loopback peer.
	LocalAddress netip.Addr
	// EarlyMutations change requests before anything else looks at them.
	EarlyMutations []*route.Mutations
	// UserAgent and Node go into requests with add_user_agent; UserAgent is "" without.
	UserAgent, Node string
	ClientCert      ClientCert
	// CertMatcher says for which requests another ClientCert holds; nil: for none.
	CertMatcher *match.Tree[*ClientCert]

	RequestIDs RequestIDs
	// Tracing decides about traces; nil: nothing is traced.
	Tracing *Tracing

	GenerateRequestID    bool
	PreserveRequestID    bool
	RequestIDInResponse  bool
	Proxy100Continue     bool
	AcceptHTTP10         bool
	DefaultHTTP10Host    string
	NormalizePath        bool
	MergeSlashes         bool
	EscapedSlashes       EscapedSlashes
	StripMatchingPort    bool
	StripAnyPort         bool
	StripTrailingDot     bool
	StreamErrorOnInvalid bool
	SchemeOverwrite      string
	// SchemeUpstream: upstreams are told the scheme that they are talked to by.
	SchemeUpstream bool
	// ProtoPorts are destination ports that tell x-forwarded-proto; nil: the connection tells.
	ProtoPorts map[uint16]string
	// ProxyStatus is proxy_status_config; nil for none.
	ProxyStatus *ProxyStatus

	// Upgrades are the protocols that requests may upgrade to, by lower-case name.
	Upgrades map[string]Upgrade

	IdleTimeout           time.Duration // of a connection without streams, 1 h
	StreamIdleTimeout     time.Duration // 5 min
	RequestTimeout        time.Duration
	RequestHeadersTimeout time.Duration
	MaxConnectionDuration time.Duration
	MaxStreamDuration     time.Duration
	// RecordRoutes counts how often a request's route was looked up, and how long that took (record_route_resolution_stats).
	RecordRoutes bool
	// StreamFlushTimeout is how long an HTTP/2 client may open no window for a response that has ended, unless its route says so. A
	// route's idle timeout says nothing of it, whatever Envoy's page does.
	StreamFlushTimeout time.Duration
	// Keepalive is how HTTP/2 clients are pinged; nil: they are not.
	Keepalive           *Keepalive
	DrainTimeout        time.Duration // 5 s
	DelayedCloseTimeout time.Duration // 1 s
	// DrainJitter lengthens DrainTimeout by up to so many millionths of it.
	DrainJitter uint64
	MaxRequests int // per connection, 0: no limit
	// SoftMaxDuration: HTTP/1 connections end with the response after MaxConnectionDuration, however long that takes.
	SoftMaxDuration bool

	// BufferLimit is the listener's per_connection_buffer_limit_bytes.
	BufferLimit int

	LocalReply *LocalReplyConfig

	// Draining tells whether the listener (or the process) is draining, so that connections end after their response. nil: never.
	Draining func() bool
	// Calls starts the calls of filters; nil: they fail.
	Calls Caller
	// Runtime answers runtime keys; nil: defaults.
	Runtime route.RuntimeReader
	// Overloaded tells whether requests are to be refused now; nil: never. LocalOverload adds x-envoy-local-overloaded then.
	Overloaded    func(w *event.Worker) bool
	LocalOverload bool
	// Listener has the metadata of the listener, nil if it has none.
	Listener map[string]map[string]any
}

// Upgrade is what the connection manager says about a protocol to upgrade to.
type Upgrade struct {
	Enabled bool
	// Chain are the filters of upgraded requests; nil: the usual ones.
	Chain *fm.Chain
}

// EscapedSlashes says what becomes of requests with %2F or %5C in their paths.
type EscapedSlashes uint8

// The actions.
const (
	KeepSlashes EscapedSlashes = iota
	RejectSlashes
	RedirectSlashes
	UnescapeSlashes
)

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
