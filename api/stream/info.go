// Package stream holds what is known of one request or one TCP session while it lives: the facts that access logs, header
// formatters, tracers and filters read.
//
// An Info belongs to its stream's worker, is filled by the engine as facts become known, and is reused after the stream's end:
// who wants to keep something copies it.
package stream

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Flag is a response flag.
type Flag uint8

// Envoy's response flags, in its order.
const (
	FailedLocalHealthCheck Flag = iota + 1
	NoHealthyUpstream
	UpstreamRequestTimeout
	LocalReset
	UpstreamRemoteReset
	UpstreamConnectionFailure
	UpstreamConnectionTermination
	UpstreamOverflow
	NoRouteFound
	DelayInjected
	FaultInjected
	RateLimited
	UnauthorizedExternalService
	RateLimitServiceError
	DownstreamConnectionTermination
	UpstreamRetryLimitExceeded
	StreamIdleTimeout
	InvalidEnvoyRequestHeaders
	DownstreamProtocolError
	UpstreamMaxStreamDurationReached
	ResponseFromCacheFilter
	NoFilterConfigFound
	DurationTimeout
	UpstreamProtocolError
	NoClusterFound
	OverloadManager
	DNSResolutionFailed
	DropOverload
	DownstreamRemoteReset
	UnconditionalDropOverload
	numFlags
)

var shortFlags = [numFlags]string{
	"", "LH", "UH", "UT", "LR", "UR", "UF", "UC", "UO", "NR", "DI", "FI", "RL", "UAEX", "RLSE", "DC", "URX", "SI", "IH", "DPE",
	"UMSDR", "RFCF", "NFCF", "DT", "UPE", "NC", "OM", "DF", "DO", "DR", "UDO",
}

var longFlags = [numFlags]string{
	"", "FailedLocalHealthCheck", "NoHealthyUpstream", "UpstreamRequestTimeout", "LocalReset", "UpstreamRemoteReset",
	"UpstreamConnectionFailure", "UpstreamConnectionTermination", "UpstreamOverflow", "NoRouteFound", "DelayInjected",
	"FaultInjected", "RateLimited", "UnauthorizedExternalService", "RateLimitServiceError",
	"DownstreamConnectionTermination", "UpstreamRetryLimitExceeded", "StreamIdleTimeout", "InvalidEnvoyRequestHeaders",
	"DownstreamProtocolError", "UpstreamMaxStreamDurationReached", "ResponseFromCacheFilter", "NoFilterConfigFound",
	"DurationTimeout", "UpstreamProtocolError", "NoClusterFound", "OverloadManagerTerminated", "DnsResolutionFailed",
	"DropOverload", "DownstreamRemoteReset", "UnconditionalDropOverload",
}

// Short returns what %RESPONSE_FLAGS% prints, such as "UF".
func (f Flag) Short() string { return shortFlags[f] }

// Long returns what %RESPONSE_FLAGS_LONG% prints.
func (f Flag) Long() string { return longFlags[f] }

// ParseFlag returns the flag with this short name.
func ParseFlag(short string) (Flag, bool) {
	for f := FailedLocalHealthCheck; f < numFlags; f++ {
		if shortFlags[f] == short {
			return f, true
		}
	}
	return 0, false
}

// Flags is the list of response flags in the order in which they were set: Envoy prints them in that order.
type Flags struct {
	set  uint64
	list [12]Flag
	n    uint8
}

// Set adds f, once. More than 12 different flags do not happen; further ones are dropped.
func (s *Flags) Set(f Flag) {
	if s.set&(1<<f) != 0 || int(s.n) == len(s.list) {
		return
	}
	s.set |= 1 << f
	s.list[s.n] = f
	s.n++
}

// Has tells whether f is set.
func (s *Flags) Has(f Flag) bool { return s.set&(1<<f) != 0 }

// Any tells whether some flag is set.
func (s *Flags) Any() bool { return s.n > 0 }

// List returns the flags in order.
func (s *Flags) List() []Flag { return s.list[:s.n] }

// AppendShort appends "A,B" to dst, "-" if there are none.
func (s *Flags) AppendShort(dst []byte) []byte { return s.append(dst, &shortFlags) }

// AppendLong is AppendShort with the long names.
func (s *Flags) AppendLong(dst []byte) []byte { return s.append(dst, &longFlags) }

func (s *Flags) append(dst []byte, names *[numFlags]string) []byte {
	if s.n == 0 {
		return append(dst, '-')
	}
	for i, f := range s.list[:s.n] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, names[f]...)
	}
	return dst
}

// Info is what is known of a stream. Times are nanoseconds of the worker's monotonic clock; 0 means that it has not happened.
type Info struct {
	// Start is when the stream began, StartWall the same in nanoseconds since 1970.
	Start, StartWall int64
	// Downstream times: the last byte of the request received, the first and last bytes of the response sent, the end.
	RequestDone, ResponseFirstTx, ResponseDone, End int64

	Protocol http.Proto
	// Code is the response's status, 0 if none was sent. Details says who made it and why (response_code_details).
	Code    int
	Details string
	// TerminationDetails says why a connection was ended (CONNECTION_TERMINATION_DETAILS).
	TerminationDetails string
	Flags              Flags

	// Body bytes received from and sent to the client.
	BytesReceived, BytesSent uint64
	// Bytes on the wire, heads included, of this stream.
	WireReceived, WireSent, HeaderReceived, HeaderSent uint64

	// Conn is the downstream connection.
	Conn *network.ConnInfo
	// Remote is the client, if it is not the connection's peer: what the peer, a trusted proxy, says it is.
	Remote network.Address

	// RouteName, VirtualHost and ClusterName are set by routing. ClusterName is the observability name if there is one.
	RouteName, VirtualHost, ClusterName, ClusterNameRaw string
	// VirtualCluster is the virtual cluster that the request was counted for, if any.
	VirtualCluster string
	// Static is the metadata of route, cluster, host and listener; nil if nobody knows any.
	Static StaticMetadata
	// Attempts counts upstream attempts from 1.
	Attempts int
	Upstream Upstream

	// RequestHeaders, ResponseHeaders and the trailers are nil where there are none.
	RequestHeaders, RequestTrailers, ResponseHeaders, ResponseTrailers *http.HeaderMap

	// HealthCheck: the request is one, and not counted.
	HealthCheck bool
	// SchemeUpstream: the upstream is told the scheme that it is talked to by, not the client's.
	SchemeUpstream bool
	// LocalReplyBody is the body of a local reply while its format is evaluated.
	LocalReplyBody string
	// Redirects is what earlier rounds of the request have left, nil if there were none (internal redirects).
	Redirects *Redirects
	// TraceID and SpanID are set by tracing.
	TraceID, SpanID string

	meta  *Metadata
	state *FilterState
}

// Upstream is what is known of the (last) attempt. Times are as in Info.
type Upstream struct {
	Host       network.Address
	HostName   string
	Local      network.Address
	Conn       *network.ConnInfo
	Protocol   http.Proto
	ConnID     uint64
	ConnStart  int64
	PoolReady  int64
	FirstTx    int64 // first byte of the request sent
	LastTx     int64
	FirstRx    int64 // first byte of the response received
	LastRx     int64
	Failure    string // UPSTREAM_TRANSPORT_FAILURE_REASON
	WireSent   uint64 // by all attempts so far, like the next three
	WireRecv   uint64
	HeaderSent uint64
	HeaderRecv uint64
	// Streams counts the requests that the connection has carried, this one included.
	Streams uint64
	// Static gives access to the metadata of the cluster and the host; nil until there are some.
	Static StaticMetadata
	// Tried are the hosts that a TCP session could not be connected to, in their order; at most MaxTried.
	Tried []Tried
}

// MaxTried bounds Upstream.Tried: further ones are not listed.
const MaxTried = 1024

// Tried is a host that there was no connection to.
type Tried struct {
	Host     network.Address
	HostName string
}

// Reset makes i ready for another stream.
func (i *Info) Reset() { *i = Info{} }

// Metadata returns the dynamic metadata, made on first use.
func (i *Info) Metadata() *Metadata {
	if i.meta == nil {
		i.meta = &Metadata{}
	}
	return i.meta
}

// HasMetadata tells whether dynamic metadata was ever set.
func (i *Info) HasMetadata() bool { return i.meta != nil }

// FilterState returns the filter state, made on first use.
func (i *Info) FilterState() *FilterState {
	if i.state == nil {
		i.state = &FilterState{}
	}
	return i.state
}

// HasFilterState tells whether filter state was ever set.
func (i *Info) HasFilterState() bool { return i.state != nil }
