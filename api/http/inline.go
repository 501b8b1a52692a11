package http

// RequestInline and ResponseInline are the fields that Envoy holds once in a header map: a repeated one is joined to the first
// by a comma, at the place of the first. All others stay apart. Codecs do the joining as they parse; do not change the sets.
var (
	RequestInline = MakeSet(
		Authority, Connection, ContentLength, ContentType, TransferEncoding, KeepAlive, ProxyConnection, TE, Upgrade, Expect,
		Via, UserAgent, Accept, AcceptEncoding, Authorization, CacheControl, ContentEncoding, Origin, Referer, Pragma,
		XRequestID, XForwardedFor, XForwardedProto, XForwardedHost, XForwardedPort, XForwardedClientCert, XClientTraceID,
		GRPCTimeout, GRPCAcceptEncoding, ProxyStatus, IfMatch, IfNoneMatch, IfModifiedSince, IfUnmodifiedSince, IfRange,
		AccessControlRequestMethod, AccessControlRequestHeaders, AccessControlRequestPrivateNetwork,
		EnvoyAttemptCount, EnvoyDecoratorOperation, EnvoyDownstreamServiceCluster, EnvoyDownstreamServiceNode,
		EnvoyExpectedRqTimeoutMs, EnvoyExternalAddress, EnvoyForceTrace, EnvoyHedgeOnPerTryTimeout, EnvoyInternal, EnvoyIPTags,
		EnvoyIsTimeoutRetry, EnvoyMaxRetries, EnvoyOriginalHost, EnvoyOriginalPath, EnvoyOriginalURL,
		EnvoyRetriableHeaderNames, EnvoyRetriableStatusCodes, EnvoyRetryGrpcOn, EnvoyRetryOn, EnvoyUpstreamAltStatName,
		EnvoyUpstreamRqPerTryTimeoutMs, EnvoyUpstreamRqTimeoutAltResponse, EnvoyUpstreamRqTimeoutMs,
	)
	ResponseInline = MakeSet(
		Connection, ContentLength, ContentType, TransferEncoding, KeepAlive, ProxyConnection, Upgrade, Server, Date, Via,
		CacheControl, ContentEncoding, ETag, LastModified, Location, Vary, Age, Expires, XRequestID, GRPCStatus, GRPCMessage,
		ProxyStatus, AccessControlAllowOrigin, AccessControlAllowHeaders, AccessControlAllowMethods,
		AccessControlAllowCredentials, AccessControlAllowPrivateNetwork, AccessControlExposeHeaders, AccessControlMaxAge,
		EnvoyAttemptCount, EnvoyDecoratorOperation, EnvoyDegraded, EnvoyImmediateHealthCheckFail, EnvoyRatelimited,
		EnvoyUpstreamCanary, EnvoyUpstreamHealthCheckedCluster, EnvoyUpstreamServiceTime,
	)
)

// Replace sets the value of f, a field of m (see Find). value must live as long as the stream.
func (m *HeaderMap) Replace(f *Header, value string) {
	m.size += len(value) - len(f.Value)
	f.Value = value
}

// InsertView puts a field with an ID before the field at index i. value must live as long as the stream.
func (m *HeaderMap) InsertView(i int, id ID, value string) {
	m.AddConst(id, value)
	f := m.list[len(m.list)-1]
	copy(m.list[i+1:], m.list[i:])
	m.list[i] = f
}
