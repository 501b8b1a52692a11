package stream

import "github.com/dragoman-proxy/dragoman/api/network"

// Metadata is a stream's dynamic metadata. A connection has some too: what its listener filters found out.
type Metadata = network.Metadata

// FilterState holds typed objects that filters leave for each other under agreed keys.
type FilterState = network.FilterState
