package h2

import (
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Envoy's defaults.
const (
	DefaultHpackTableSize        = 4096
	DefaultMaxConcurrentStreams  = 1024
	DefaultInitialStreamWindow   = 16 << 20
	DefaultInitialConnWindow     = 24 << 20
	DefaultMaxOutboundFrames     = 10000
	DefaultMaxOutboundControl    = 1000
	DefaultMaxInboundEmptyFrames = 1
	DefaultMaxInboundPriority    = 100
	DefaultMaxInboundUpdates     = 10
	DefaultMaxHeaderBytes        = 60 << 10
	DefaultMaxHeaders            = 100
)

// Limits that Envoy leaves to its library, or does not have.
const (
	// maxContinuations bounds the CONTINUATION frames of one header block: 8 MiB of headers fit.
	maxContinuations = 1024
	// maxSettings bounds the parameters of one SETTINGS frame.
	maxSettings = 32
	// maxInformational bounds the 1xx heads before one response.
	maxInformational = 100
	// maxFaults bounds the stream errors that a peer may cause beyond the number of streams that went well, and the frames it may
	// send to streams that are gone. It stops floods of small faults, each of which costs us more than the peer.
	maxFaults = 1000
	// endedStreams is how many streams that the peer has ended are remembered after they are gone. On them HEADERS are an error;
	// on others they may have crossed our RST_STREAM.
	endedStreams = 16
	// initialMaxStreams is how many streams a client opens before it has seen the server's SETTINGS.
	initialMaxStreams = 100
	// maxFrameSize is the largest frame that we take, and send (RFC 9113, section 6.5.2: the default).
	maxFrameSize = 16384
)

// Underscores says what happens to request headers with an underscore in their names (headers_with_underscores_action).
type Underscores uint8

// The actions, in the order of Envoy's enum.
const (
	UnderscoresAllow Underscores = iota
	UnderscoresReject
	UnderscoresDrop
)

// Setting is one parameter of a SETTINGS frame.
type Setting struct {
	ID    uint16
	Value uint32
}

// Options are the plain values of Http2ProtocolOptions and of what else the codec needs to know. They are read only and may be shared
// by connections of all workers. Begin with DefaultOptions: 0 means 0.
type Options struct {
	// HpackTableSize is announced for the peer's encoder, and bounds our own.
	HpackTableSize uint32
	// MaxConcurrentStreams is announced to clients; a client opens no more itself.
	MaxConcurrentStreams uint32
	// InitialStreamWindow is the receive window of a stream; a stream's send buffer is above its high watermark when it
	// holds more.
	InitialStreamWindow uint32
	// InitialConnWindow is the receive window of the connection.
	InitialConnWindow uint32
	// AllowConnect allows extended CONNECT (RFC 8441).
	AllowConnect bool
	// CustomSettings are sent before the settings that have options of their own.
	CustomSettings []Setting

	// MaxOutboundFrames and MaxOutboundControlFrames (PING, SETTINGS, RST_STREAM) bound what waits in the write buffer.
	MaxOutboundFrames, MaxOutboundControlFrames uint32
	// MaxInboundEmptyFrames bounds consecutive HEADERS, CONTINUATION and DATA frames that carry nothing.
	MaxInboundEmptyFrames uint32
	// MaxInboundPriority bounds PRIORITY frames per opened stream.
	MaxInboundPriority uint32
	// MaxInboundUpdates bounds WINDOW_UPDATE frames per DATA frame sent.
	MaxInboundUpdates uint32
	// StreamErrorOnInvalid resets only the stream whose message is invalid; otherwise the connection is closed
	// (override_stream_error_on_invalid_http_message).
	StreamErrorOnInvalid bool

	// MaxHeaderBytes bounds the names and values of a head or of trailers, MaxHeaders the number of fields.
	MaxHeaderBytes, MaxHeaders uint32
	// Underscores is the headers_with_underscores_action of a server.
	Underscores Underscores

	// Stats is where the "http2." group begins (stats.HTTP2); the recorder is the Pool's.
	Stats stats.GroupBase
}

// DefaultOptions returns Envoy's defaults.
func DefaultOptions() Options {
	return Options{
		HpackTableSize:           DefaultHpackTableSize,
		MaxConcurrentStreams:     DefaultMaxConcurrentStreams,
		InitialStreamWindow:      DefaultInitialStreamWindow,
		InitialConnWindow:        DefaultInitialConnWindow,
		MaxOutboundFrames:        DefaultMaxOutboundFrames,
		MaxOutboundControlFrames: DefaultMaxOutboundControl,
		MaxInboundEmptyFrames:    DefaultMaxInboundEmptyFrames,
		MaxInboundPriority:       DefaultMaxInboundPriority,
		MaxInboundUpdates:        DefaultMaxInboundUpdates,
		MaxHeaderBytes:           DefaultMaxHeaderBytes,
		MaxHeaders:               DefaultMaxHeaders,
	}
}
