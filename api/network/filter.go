package network

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// FilterStatus is a network or listener filter's answer.
type FilterStatus uint8

const (
	// Continue goes on to the next filter.
	Continue FilterStatus = iota
	// StopIteration stays here until the filter says ContinueReading (or ContinueListenerFilter).
	StopIteration
)

// ReadFilter is a network filter for bytes from the client. One value per connection, all calls on its worker.
type ReadFilter interface {
	// OnNewConnection is called once, when the connection is ready (before its TLS handshake is done).
	OnNewConnection(cb ReadCallbacks) FilterStatus
	// OnData gets what was read, with what was left in data before. A terminal filter drains it. What a stopping filter leaves
	// is kept up to the connection's buffer limit, then reading pauses. end: the peer sends no more.
	OnData(data *buffer.Buffer, end bool) FilterStatus
	// OnEvent is told how the connection fares.
	OnEvent(e ConnEvent)
}

// Indifferent is a ReadFilter that may lose interest in bytes. Once all filters of a connection have, its bytes go straight to what
// serves it.
type Indifferent interface {
	// Indifferent tells whether OnData need not be called any more. It is asked after OnNewConnection and OnData returned
	// Continue.
	Indifferent() bool
}

// WriteFilter is a network filter for bytes to the client. Write filters are called in reverse order of the chain.
type WriteFilter interface {
	OnWrite(data *buffer.Buffer, end bool) FilterStatus
}

// ConnEvent is something that happened to a connection.
type ConnEvent uint8

const (
	// Connected: the transport is ready (the TLS handshake is done).
	Connected ConnEvent = iota
	// RemoteClose: the peer closed or reset it. LocalClose: we did. Both are the last event.
	RemoteClose
	LocalClose
	// AboveHighWatermark and BelowLowWatermark: the write buffer passed its limit, or is drained to half of it.
	AboveHighWatermark
	BelowLowWatermark
)

// CloseType says how to close.
type CloseType uint8

const (
	// FlushWrite sends what is buffered first. FlushWriteAndDelay then waits for the peer to close, at most the delayed close
	// timeout, so that the last bytes are not lost to a reset.
	FlushWrite CloseType = iota
	FlushWriteAndDelay
	// NoFlush drops what is buffered. Abort sends a reset.
	NoFlush
	Abort
)

// Connection is what a filter may ask of its connection.
type Connection interface {
	Info() *ConnInfo
	// Write sends bytes (it empties data), and our FIN if end.
	Write(data *buffer.Buffer, end bool)
	Close(t CloseType, reason string)
	// ReadDisable stops and starts reading; calls nest.
	ReadDisable(disable bool)
	SetBufferLimit(bytes int)
	// AboveHighWatermark tells whether the write buffer is over its limit now.
	AboveHighWatermark() bool
}

// ReadCallbacks is what a read filter gets.
type ReadCallbacks interface {
	Dispatcher
	Connection() Connection
	// ContinueReading goes on with the next filter after StopIteration, giving it the buffered bytes.
	ContinueReading()
	// EnableHalfClose lets the connection live on for writing when the peer has sent its FIN.
	EnableHalfClose()
	// Stats is the worker's recorder.
	Stats() stats.Recorder
}

// Timer fires once after it was armed. Stop it, or it fires; it may be armed again at any time.
type Timer interface {
	Arm(d time.Duration)
	Disarm()
}

// Dispatcher is the worker as filters see it.
type Dispatcher interface {
	// Now is the worker's monotonic clock in ns, Wall ns since 1970; both are read once a pass.
	Now() int64
	Wall() int64
	// NewTimer makes a timer that calls f on the worker. Stop it in OnDestroy.
	NewTimer(f func()) Timer
	// Post runs f on the worker in a later pass. Safe from any goroutine.
	Post(f func())
	// WorkerIndex counts from 0; the main loop has -1.
	WorkerIndex() int
}

// ListenerFilter looks at a connection before its filter chain is chosen.
type ListenerFilter interface {
	// OnAccept is called once. StopIteration: wait for bytes, or for ContinueListenerFilter.
	OnAccept(cb ListenerCallbacks) FilterStatus
	// OnData gets all bytes that have arrived so far; they stay in the connection unless Consume is called. It returns
	// StopIteration until it has seen enough.
	OnData(b []byte) FilterStatus
	// MaxReadBytes is how many bytes OnData may need at most; 0: none, OnData is not called.
	MaxReadBytes() int
	OnClose()
}

// ListenerCallbacks is what a listener filter gets.
type ListenerCallbacks interface {
	Dispatcher
	Info() *ConnInfo
	// Consume drops the first n bytes of the connection (a PROXY header).
	Consume(n int)
	// ContinueListenerFilter goes on with the next filter, or closes the connection if ok is false.
	ContinueListenerFilter(ok bool)
	// OriginalDestination asks the kernel where the client wanted to connect to before the connection was redirected to us.
	OriginalDestination() (Address, bool)
	// Stats is the worker's recorder.
	Stats() stats.Recorder
}
