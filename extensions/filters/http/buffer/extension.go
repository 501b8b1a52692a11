// Package buffer is the HTTP filter that waits for a whole request before anybody behind it sees it, and gives it a content-length.
//
// A filter belongs to one stream on its worker.
package buffer

import (
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.HTTPFilter{
	Info: ext.Info{
		Name:     "envoy.filters.http.buffer",
		TypeURLs: []string{"envoy.extensions.filters.http.buffer.v3.Buffer"},
		Posture:  ext.RobustToUntrustedDownstream,
	},
	New: func(m proto.Message, _ ext.FactoryContext) (filter.Factory, error) {
		return &settings{limitBytes: int(m.(*bufferv3.Buffer).GetMaxRequestBytes().GetValue())}, nil
	},
	NewRoute: func(m proto.Message, _ ext.FactoryContext) (any, error) {
		p := m.(*bufferv3.BufferPerRoute)
		if p.GetDisabled() {
			return &settings{disabled: true}, nil
		}
		return &settings{limitBytes: int(p.GetBuffer().GetMaxRequestBytes().GetValue())}, nil
	},
	RouteTypeURLs: []string{"envoy.extensions.filters.http.buffer.v3.BufferPerRoute"},
}
