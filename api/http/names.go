package http

// ID names a header that the engine knows. Comparing IDs costs one byte compare where names cost a string compare. Other
// headers have ID None and are found by name.
type ID uint8

// The headers with an ID. Pseudo headers are those of HTTP/2 (RFC 9113, section 8.3); HTTP/1 codecs fill them from the start
// line and the host header, so that filters see one form.
const (
	None ID = iota
	Method
	Path
	Authority
	Scheme
	Status
	Protocol
	Host
	Connection
	ContentLength
	ContentType
	TransferEncoding
	KeepAlive
	ProxyConnection
	TE
	Upgrade
	Expect
	Server
	Date
	Via
	Cookie
	SetCookie
	UserAgent
	Accept
	AcceptEncoding
	AcceptLanguage
	Authorization
	CacheControl
	ContentEncoding
	ETag
	LastModified
	Location
	Origin
	Referer
	Vary
	Trailer
	HTTP2Settings
	XRequestID
	XForwardedFor
	XForwardedProto
	XForwardedHost
	XForwardedPort
	XForwardedClientCert
	XClientTraceID
	XOTSpanContext
	XB3TraceID
	Traceparent
	Tracestate
	GRPCStatus
	GRPCMessage
	GRPCTimeout
	GRPCAcceptEncoding
	AccessControlRequestMethod
	AccessControlRequestHeaders
	AccessControlRequestPrivateNetwork
	AccessControlAllowOrigin
	AccessControlAllowHeaders
	AccessControlAllowMethods
	AccessControlAllowCredentials
	AccessControlAllowPrivateNetwork
	AccessControlExposeHeaders
	AccessControlMaxAge
	IfMatch
	IfNoneMatch
	IfModifiedSince
	IfUnmodifiedSince
	IfRange
	Pragma
	Age
	Expires
	ProxyStatus
	// Headers of Envoy itself; XEnvoyFirst and XEnvoyLast bound them.
	EnvoyAttemptCount
	EnvoyDecoratorOperation
	EnvoyDegraded
	EnvoyDownstreamServiceCluster
	EnvoyDownstreamServiceNode
	EnvoyExpectedRqTimeoutMs
	EnvoyExternalAddress
	EnvoyForceTrace
	EnvoyHedgeOnPerTryTimeout
	EnvoyImmediateHealthCheckFail
	EnvoyInternal
	EnvoyIPTags
	EnvoyIsTimeoutRetry
	EnvoyMaxRetries
	EnvoyOriginalHost
	EnvoyOriginalPath
	EnvoyOriginalURL
	EnvoyOverloaded
	EnvoyLocalOverloaded
	EnvoyRatelimited
	EnvoyRetriableHeaderNames
	EnvoyRetriableStatusCodes
	EnvoyRetryGrpcOn
	EnvoyRetryOn
	EnvoyUpstreamAltStatName
	EnvoyUpstreamCanary
	EnvoyUpstreamRqPerTryTimeoutMs
	EnvoyUpstreamRqTimeoutAltResponse
	EnvoyUpstreamRqTimeoutMs
	EnvoyUpstreamServiceTime
	EnvoyUpstreamHealthCheckedCluster
	EnvoyUpstreamStreamDurationMs
	NumIDs
)

// names is the canonical, lower-case name of each ID.
var names = [NumIDs]string{
	Method: ":method", Path: ":path", Authority: ":authority", Scheme: ":scheme", Status: ":status", Protocol: ":protocol",
	Host: "host", Connection: "connection", ContentLength: "content-length", ContentType: "content-type",
	TransferEncoding: "transfer-encoding", KeepAlive: "keep-alive", ProxyConnection: "proxy-connection", TE: "te",
	Upgrade: "upgrade", Expect: "expect", Server: "server", Date: "date", Via: "via", Cookie: "cookie",
	SetCookie: "set-cookie", UserAgent: "user-agent", Accept: "accept", AcceptEncoding: "accept-encoding",
	AcceptLanguage: "accept-language", Authorization: "authorization", CacheControl: "cache-control",
	ContentEncoding: "content-encoding", ETag: "etag", LastModified: "last-modified", Location: "location",
	Origin: "origin", Referer: "referer", Vary: "vary", Trailer: "trailer", HTTP2Settings: "http2-settings",
	XRequestID: "x-request-id", XForwardedFor: "x-forwarded-for", XForwardedProto: "x-forwarded-proto",
	XForwardedHost: "x-forwarded-host", XForwardedPort: "x-forwarded-port",
	XForwardedClientCert: "x-forwarded-client-cert", XClientTraceID: "x-client-trace-id",
	XOTSpanContext: "x-ot-span-context", XB3TraceID: "x-b3-traceid", Traceparent: "traceparent",
	Tracestate: "tracestate", GRPCStatus: "grpc-status", GRPCMessage: "grpc-message", GRPCTimeout: "grpc-timeout",
	GRPCAcceptEncoding: "grpc-accept-encoding",
	EnvoyAttemptCount:  "x-envoy-attempt-count", EnvoyDecoratorOperation: "x-envoy-decorator-operation",
	EnvoyDegraded:                      "x-envoy-degraded",
	EnvoyDownstreamServiceCluster:      "x-envoy-downstream-service-cluster",
	EnvoyDownstreamServiceNode:         "x-envoy-downstream-service-node",
	EnvoyExpectedRqTimeoutMs:           "x-envoy-expected-rq-timeout-ms",
	EnvoyExternalAddress:               "x-envoy-external-address",
	EnvoyForceTrace:                    "x-envoy-force-trace",
	EnvoyHedgeOnPerTryTimeout:          "x-envoy-hedge-on-per-try-timeout",
	EnvoyImmediateHealthCheckFail:      "x-envoy-immediate-health-check-fail",
	EnvoyInternal:                      "x-envoy-internal",
	EnvoyIPTags:                        "x-envoy-ip-tags",
	EnvoyIsTimeoutRetry:                "x-envoy-is-timeout-retry",
	EnvoyMaxRetries:                    "x-envoy-max-retries",
	EnvoyOriginalHost:                  "x-envoy-original-host",
	EnvoyOriginalPath:                  "x-envoy-original-path",
	EnvoyOriginalURL:                   "x-envoy-original-url",
	EnvoyOverloaded:                    "x-envoy-overloaded",
	EnvoyLocalOverloaded:               "x-envoy-local-overloaded",
	EnvoyRatelimited:                   "x-envoy-ratelimited",
	EnvoyRetriableHeaderNames:          "x-envoy-retriable-header-names",
	EnvoyRetriableStatusCodes:          "x-envoy-retriable-status-codes",
	EnvoyRetryGrpcOn:                   "x-envoy-retry-grpc-on",
	EnvoyRetryOn:                       "x-envoy-retry-on",
	EnvoyUpstreamAltStatName:           "x-envoy-upstream-alt-stat-name",
	EnvoyUpstreamCanary:                "x-envoy-upstream-canary",
	EnvoyUpstreamRqPerTryTimeoutMs:     "x-envoy-upstream-rq-per-try-timeout-ms",
	EnvoyUpstreamRqTimeoutAltResponse:  "x-envoy-upstream-rq-timeout-alt-response",
	EnvoyUpstreamRqTimeoutMs:           "x-envoy-upstream-rq-timeout-ms",
	EnvoyUpstreamServiceTime:           "x-envoy-upstream-service-time",
	EnvoyUpstreamHealthCheckedCluster:  "x-envoy-upstream-healthchecked-cluster",
	EnvoyUpstreamStreamDurationMs:      "x-envoy-upstream-stream-duration-ms",
	AccessControlRequestMethod:         "access-control-request-method",
	AccessControlRequestHeaders:        "access-control-request-headers",
	AccessControlRequestPrivateNetwork: "access-control-request-private-network",
	AccessControlAllowOrigin:           "access-control-allow-origin",
	AccessControlAllowHeaders:          "access-control-allow-headers",
	AccessControlAllowMethods:          "access-control-allow-methods",
	AccessControlAllowCredentials:      "access-control-allow-credentials",
	AccessControlAllowPrivateNetwork:   "access-control-allow-private-network",
	AccessControlExposeHeaders:         "access-control-expose-headers",
	AccessControlMaxAge:                "access-control-max-age",
	IfMatch:                            "if-match",
	IfNoneMatch:                        "if-none-match",
	IfModifiedSince:                    "if-modified-since",
	IfUnmodifiedSince:                  "if-unmodified-since",
	IfRange:                            "if-range",
	Pragma:                             "pragma",
	Age:                                "age",
	Expires:                            "expires",
	ProxyStatus:                        "proxy-status",
}

// Name returns the canonical lower-case name of id.
func (id ID) Name() string { return names[id] }

// lookup is a hash table without collisions chains: slot = hash(name), at most two probes. It is filled once from names.
const lookupBits = 10

var lookup = makeLookup()

func hashName[T string | []byte](s T) uint32 {
	n := len(s)
	h := uint32(n)*0x9e3779b1 ^ uint32(s[0])<<24 ^ uint32(s[n-1])<<16 ^ uint32(s[n/2])<<8 ^ uint32(s[n/4*3])
	h *= 0x85ebca6b
	return h >> (32 - lookupBits)
}

func makeLookup() (t [1 << lookupBits]ID) {
	for id := Method; id < NumIDs; id++ {
		h := hashName(names[id])
		for t[h] != None {
			h = (h + 1) & (1<<lookupBits - 1)
		}
		t[h] = id
	}
	return t
}

// Lookup returns the ID of a lower-case name, None if it has none.
func Lookup[T string | []byte](name T) ID {
	if len(name) == 0 || len(name) > 40 {
		return None
	}
	h := hashName(name)
	for {
		id := lookup[h]
		if id == None || names[id] == string(name) {
			return id
		}
		h = (h + 1) & (1<<lookupBits - 1)
	}
}
