// Package header_to_metadata is the HTTP filter that keeps what headers and cookies say as dynamic metadata, for what looks at metadata
// later: load balancing, rate limits, access logs.
//
// A filter belongs to one stream on its worker; rules are compiled once and shared.
package header_to_metadata //nolint:revive // Envoy's name

import (
	metav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

const name = "envoy.filters.http.header_to_metadata"

// Extension is the filter's entry in the list of extensions.
var Extension = ext.HTTPFilter{
	Info: ext.Info{
		Name:     name,
		TypeURLs: []string{"envoy.extensions.filters.http.header_to_metadata.v3.Config"},
		Posture:  ext.RobustToUntrustedDownstreamAndUpstream,
	},
	New: func(m proto.Message, ctx ext.FactoryContext) (filter.Factory, error) {
		s, err := newSettings(m.(*metav3.Config), ctx)
		if err != nil {
			return nil, err
		}
		return &factory{own: s}, nil
	},
	NewRoute: func(m proto.Message, ctx ext.FactoryContext) (any, error) {
		return newSettings(m.(*metav3.Config), ctx)
	},
	RouteTypeURLs: []string{"envoy.extensions.filters.http.header_to_metadata.v3.Config"},
}

// The indices of the filter's stats, of which there are some only with a stat_prefix.
const (
	base64DecodeFailed      stats.CounterIndex = 0
	headerValueTooLong      stats.CounterIndex = 1
	regexSubstitutionFailed stats.CounterIndex = 2
	requestHeaderNotFound   stats.CounterIndex = 3
	requestMetadataAdded    stats.CounterIndex = 4
	requestRulesProcessed   stats.CounterIndex = 5
	responseHeaderNotFound  stats.CounterIndex = 6
	responseMetadataAdded   stats.CounterIndex = 7
	responseRulesProcessed  stats.CounterIndex = 8
)

var template = stats.MustTemplate("header_to_metadata filter",
	stats.Counter(base64DecodeFailed, "base64_decode_failed"),
	stats.Counter(headerValueTooLong, "header_value_too_long"),
	stats.Counter(regexSubstitutionFailed, "regex_substitution_failed"),
	stats.Counter(requestHeaderNotFound, "request_header_not_found"),
	stats.Counter(requestMetadataAdded, "request_metadata_added"),
	stats.Counter(requestRulesProcessed, "request_rules_processed"),
	stats.Counter(responseHeaderNotFound, "response_header_not_found"),
	stats.Counter(responseMetadataAdded, "response_metadata_added"),
	stats.Counter(responseRulesProcessed, "response_rules_processed"),
)
