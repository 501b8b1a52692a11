// Package http is the contract for HTTP filters: header maps, the filter interfaces and their callbacks.
//
// Everything in it belongs to the worker of the stream. Views (strings of a HeaderMap, bytes of a borrowed Buffer) are valid
// until the stream is destroyed or the callback returns, as each type says.
package http

// Proto is an HTTP version.
type Proto uint8

// The HTTP versions; String gives what %PROTOCOL% prints.
const (
	ProtoNone Proto = iota
	HTTP10
	HTTP11
	HTTP2
	HTTP3
)

var protoNames = [...]string{"", "HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"}

// String returns the name that access logs print, "" for none.
func (p Proto) String() string { return protoNames[p] }

// ResetReason says why a stream ended early.
type ResetReason uint8

// The reasons, in Envoy's words; String gives the text that local replies carry.
const (
	ResetNone ResetReason = iota
	ResetLocal
	ResetLocalRefused
	ResetRemote
	ResetRemoteRefused
	ResetLocalConnectionFailure
	ResetRemoteConnectionFailure
	ResetConnectionTimeout
	ResetConnectionTermination
	ResetOverflow
	ResetConnectError
	ResetProtocolError
	ResetOverload
	ResetHTTP11HalfClosed
)

var resetNames = [...]string{
	"", "local reset", "local refused stream reset", "remote reset", "remote refused stream reset", "local connection failure",
	"remote connection failure", "connection timeout", "connection termination", "overflow",
	"remote error with CONNECT request", "protocol error", "overload manager reset",
	"http 1.1 upstream half closed unexpectedly",
}

// String returns Envoy's text for the reason.
func (r ResetReason) String() string { return resetNames[r] }
