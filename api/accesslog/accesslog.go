// Package accesslog is the contract for access loggers: what writes a line, or sends an entry, for each request or session.
//
// A Logger is shared by all workers: it is built once on the main loop and called on the worker of the stream that it logs,
// never from two goroutines for the same worker. It must not block, and it must not keep the Info.
package accesslog

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// Type says what is logged: most often the end of a request, but also its beginning, or that it goes on.
type Type uint8

// The types, in Envoy's order; String gives what %ACCESS_LOG_TYPE% prints.
const (
	NotSet Type = iota
	TCPUpstreamConnected
	TCPPeriodic
	TCPConnectionEnd
	DownstreamStart
	DownstreamPeriodic
	DownstreamEnd
	UpstreamPoolReady
	UpstreamPeriodic
	UpstreamEnd
	DownstreamTunnelSuccessfullyEstablished
	UDPTunnelUpstreamConnected
	UDPPeriodic
	UDPSessionEnd
	TCPConnectionStart
	numTypes
)

var typeNames = [numTypes]string{
	"NotSet", "TcpUpstreamConnected", "TcpPeriodic", "TcpConnectionEnd", "DownstreamStart", "DownstreamPeriodic",
	"DownstreamEnd", "UpstreamPoolReady", "UpstreamPeriodic", "UpstreamEnd", "DownstreamTunnelSuccessfullyEstablished",
	"UdpTunnelUpstreamConnected", "UdpPeriodic", "UdpSessionEnd", "TcpConnectionStart",
}

// String returns the type's name.
func (t Type) String() string {
	if t >= numTypes {
		return typeNames[NotSet]
	}
	return typeNames[t]
}

// ParseType returns the type with this name.
func ParseType(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name {
			return Type(t), true
		}
	}
	return NotSet, false
}

// Logger logs streams.
type Logger interface {
	// Log is called on w, the worker of the stream. info is valid until Log returns.
	Log(w network.Dispatcher, info *stream.Info, when Type)
}

// Filter decides whether a stream is logged. Like a Logger it is shared and called on the stream's worker.
type Filter interface {
	// Log tells whether the stream is to be logged. It is asked once for each call of the logger that it guards.
	Log(w network.Dispatcher, info *stream.Info, when Type) bool
}

// Loggers is a list of loggers that are called one after the other.
type Loggers []Logger

// Log calls all loggers.
func (l Loggers) Log(w network.Dispatcher, info *stream.Info, when Type) {
	for _, g := range l {
		g.Log(w, info, when)
	}
}
