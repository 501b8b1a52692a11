package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// Indices of ClusterOwn.
const (
	OwnRetryAbandonedBufferLimit api.CounterIndex = 0
	OwnRetryAbandonedMemoryLimit api.CounterIndex = 1
	OwnRetryAbandonedFileLimit   api.CounterIndex = 2
	OwnRetryAbandonedFilesLimit  api.CounterIndex = 3
	OwnRetryAbandonedFileError   api.CounterIndex = 4
	OwnRetryBufferFiles          api.CounterIndex = 5
	OwnRetryBufferFileBytes      api.CounterIndex = 6
	OwnRetryBufferReadError      api.CounterIndex = 7
	OwnReuseClosed               api.CounterIndex = 8
	OwnReuseReset                api.CounterIndex = 9
	OwnLostUnsent                api.CounterIndex = 10
	OwnLostUnacknowledged        api.CounterIndex = 11
	OwnLostAcknowledged          api.CounterIndex = 12
	OwnResent                    api.CounterIndex = 13
)

// ClusterOwn counts what Envoy has no names for, "cluster.<name>.dragoman.". Nothing of it shows before it has been counted.
//
// retry_abandoned.* says why a body could not be kept for a retry any more; retry_buffer.* what was kept in files. reuse.* counts idle
// connections that were found closed, or broken, when a request was about to get them; lost.* the requests that broke on a connection
// which had served others before: how far they had come. resent counts those that were sent again without a retry policy.
var ClusterOwn = api.MustTemplate("cluster own",
	api.LazyCounter(OwnRetryAbandonedBufferLimit, "retry_abandoned.buffer_limit"),
	api.LazyCounter(OwnRetryAbandonedMemoryLimit, "retry_abandoned.memory_limit"),
	api.LazyCounter(OwnRetryAbandonedFileLimit, "retry_abandoned.file_limit"),
	api.LazyCounter(OwnRetryAbandonedFilesLimit, "retry_abandoned.files_limit"),
	api.LazyCounter(OwnRetryAbandonedFileError, "retry_abandoned.file_error"),
	api.LazyCounter(OwnRetryBufferFiles, "retry_buffer.files"),
	api.LazyCounter(OwnRetryBufferFileBytes, "retry_buffer.file_bytes"),
	api.LazyCounter(OwnRetryBufferReadError, "retry_buffer.read_error"),
	api.LazyCounter(OwnReuseClosed, "reuse.closed"),
	api.LazyCounter(OwnReuseReset, "reuse.reset"),
	api.LazyCounter(OwnLostUnsent, "lost.unsent"),
	api.LazyCounter(OwnLostUnacknowledged, "lost.unacknowledged"),
	api.LazyCounter(OwnLostAcknowledged, "lost.acknowledged"),
	api.LazyCounter(OwnResent, "resent"),
)
