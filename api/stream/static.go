package stream

// MetadataKind says whose configured metadata is meant.
type MetadataKind uint8

// The owners of configured metadata that %METADATA(KIND:...)% knows, besides the stream's own dynamic metadata.
const (
	RouteMetadata MetadataKind = iota
	VirtualHostMetadata
	ClusterMetadata
	HostMetadata
	ListenerMetadata
	FilterChainMetadata
)

// StaticMetadata gives access to the metadata of the configuration that a stream runs under. The trees are immutable, as the
// values of Metadata are plain.
type StaticMetadata interface {
	// StaticMetadata returns the tree of one filter namespace, nil if there is none.
	StaticMetadata(kind MetadataKind, namespace string) map[string]any
}

// PlainText is a filter state object that can be printed: what %FILTER_STATE(key:PLAIN)% gives.
type PlainText interface{ AppendPlain(dst []byte) []byte }

// Typed is a filter state object with a structured form in plain values: what %FILTER_STATE(key)% gives.
type Typed interface{ Typed() any }

// Fields is a filter state object with named fields (strings, int64 or nothing): %FILTER_STATE(key:FIELD:name)%.
type Fields interface{ Field(name string) (any, bool) }
