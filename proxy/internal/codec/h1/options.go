// Package h1 is the HTTP/1.1 (and 1.0) codec, both sides, with the strictness of Envoy's.
//
// It owns the framing of one connection: heads, bodies, trailers, upgrades, and the decision whether the connection may carry
// another message. Everything belongs to the connection's worker. It holds no socket, clock, goroutine or log; what it cannot
// parse it reports as one of the preallocated errors of errors.go, never as a panic.
//
// A connection between two messages costs a Server or a Client and nothing else: what a message needs is taken from the
// worker's Pool when it begins and given back when it is over.
package h1

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
)

// The limits that hold where Options leaves 0.
const (
	DefaultMaxRequestHeadBytes  = 60 << 10
	DefaultMaxResponseHeadBytes = 80 << 10
	DefaultMaxHeaders           = 100
	// DefaultMaxOutboundResponses is how many responses may wait in the write buffer when a pipelining client begins another
	// request.
	DefaultMaxOutboundResponses = 2
)

// MaxChunkLineBytes bounds a chunk's size line with its extensions, and what the lenient parser reads over after a chunk's data,
// so that a peer cannot make us read for ever without sending a byte of body.
const MaxChunkLineBytes = 128 << 10

// Underscores says what happens to request headers with an underscore in their names (headers_with_underscores_action).
type Underscores uint8

// The actions, in the order of Envoy's enum.
const (
	UnderscoresAllow Underscores = iota
	UnderscoresReject
	UnderscoresDrop
)

// Options are the plain values of Http1ProtocolOptions and of what else the codec needs to know. They are read only and may be
// shared by connections of all workers.
type Options struct {
	// MaxHeadBytes bounds a head (start line, fields and line ends) and the trailers; 0 is the side's default.
	MaxHeadBytes int
	// MaxHeaders bounds the number of fields of a head and of trailers; 0 is DefaultMaxHeaders.
	MaxHeaders int
	// MaxOutboundResponses bounds a pipeline's unsent responses; 0 is DefaultMaxOutboundResponses.
	MaxOutboundResponses int

	// AllowAbsoluteURL splits "GET http://host/path" into :scheme, :authority and :path; otherwise it stays in :path.
	AllowAbsoluteURL bool
	// ValidateScheme refuses "GET https://host/path" on a connection without TLS.
	ValidateScheme bool
	// AcceptHTTP10 makes answers to HTTP/1.0 requests HTTP/1.0. Without it the user refuses such requests (426).
	AcceptHTTP10 bool
	// AllowChunkedLength takes a message with both content-length and "transfer-encoding: chunked", and drops the length.
	AllowChunkedLength bool
	// AllowCustomMethods takes any token for a method.
	AllowCustomMethods bool
	// EnableTrailers reports and sends trailers; otherwise they are checked and dropped.
	EnableTrailers bool
	// StrictChunks refuses what the lenient chunk parser tolerates (the strict_chunk_parsing guard).
	StrictChunks bool
	// SendFullyQualifiedURL makes requests carry an absolute-form target.
	SendFullyQualifiedURL bool
	// ProperCase sends names as Proper-Case-Words.
	ProperCase bool
	// NewFormatter makes the formatter of a head that is received (preserve_case); nil for none.
	NewFormatter func(a *http.Arena) http.KeyFormatter
	// IgnoreUpgrade tells for an element of the upgrade header whether it is to be ignored (ignore_http_11_upgrade); nil: none is.
	IgnoreUpgrade func(value string) bool
	// Underscores is the headers_with_underscores_action.
	Underscores Underscores
}

// Counter is implemented by a ServerHandler that wants to count http1.dropped_headers_with_underscores; what is counted of errors
// is in codec.Err.
type Counter interface {
	// OnDroppedUnderscores says that n fields were dropped because of their names.
	OnDroppedUnderscores(n int)
}

// plain tells whether heads need nothing that the fast path cannot do.
func (o *Options) plain() bool { return o.NewFormatter == nil && o.Underscores == UnderscoresAllow }

func (o *Options) maxHeaders() int {
	if o.MaxHeaders > 0 {
		return o.MaxHeaders
	}
	return DefaultMaxHeaders
}

func (o *Options) maxOutbound() int {
	if o.MaxOutboundResponses > 0 {
		return o.MaxOutboundResponses
	}
	return DefaultMaxOutboundResponses
}

// maxFreeMessages bounds the message states of each side that a Pool keeps.
const maxFreeMessages = 1024

// Pool keeps message states and scratch memory for all HTTP/1 connections of a worker. The zero value is ready. owner: worker.
type Pool struct {
	requests  []*request
	responses []*exchange
	lines     []line
	live      int
}

// Kept returns about how much memory is kept for reuse by one message's state and the scratch space.
func (p *Pool) Kept() int {
	n := cap(p.lines) * 8
	for _, r := range p.requests {
		n += cap(r.part)
	}
	for _, x := range p.responses {
		n += cap(x.part)
	}
	return n
}

// Live returns how many messages are in work. Tests check that it returns to zero.
func (p *Pool) Live() int { return p.live }

func (p *Pool) getRequest() *request {
	p.live++
	return freelist.Take(&p.requests, nil)
}

func (p *Pool) putRequest(r *request) {
	p.live--
	r.message.reset()
	r.s, r.dec, r.enc = nil, nil, encoder{}
	r.requestState = requestState{}
	p.shrink()
	if len(p.requests) < maxFreeMessages {
		p.requests = append(p.requests, r)
	}
}

// maxKeptLines bounds the scratch space for the lines of a head.
const maxKeptLines = 1024

func (p *Pool) shrink() {
	if cap(p.lines) > maxKeptLines {
		p.lines = nil
	}
}

func (p *Pool) getExchange() *exchange {
	p.live++
	return freelist.Take(&p.responses, nil)
}

func (p *Pool) putExchange(x *exchange) {
	p.live--
	x.message.reset()
	x.c, x.dec, x.enc = nil, nil, encoder{}
	x.exchangeState = exchangeState{}
	p.shrink()
	if len(p.responses) < maxFreeMessages {
		p.responses = append(p.responses, x)
	}
}
