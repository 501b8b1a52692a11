package route

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// RateLimit is one entry of rate_limits: what a request counts as. It is immutable and shared by all workers.
type RateLimit interface {
	// Stage is the stage at which the entry applies, from 0 to 10.
	Stage() uint32
	// DisableKey is the part of the runtime key that turns the entry off, "" if there is none.
	DisableKey() string
	// OnStreamDone: the request is counted at its end only.
	OnStreamDone() bool
	// Describe fills d for a request. false: something that the entry asks for is not there, and the request does not count.
	Describe(d *Descriptor, r *RateLimitRequest) bool
}

// RateLimitRequest is what descriptors are made of.
type RateLimitRequest struct {
	// Headers are the request's.
	Headers *http.HeaderMap
	Info    *stream.Info
	Route   Entry
	// LocalCluster is the cluster that the proxy belongs to (--service-cluster).
	LocalCluster string
	// Dispatcher is the stream's.
	Dispatcher network.Dispatcher
}

// Descriptor is what a request counts as. Texts are views that live as long as the stream, or constants.
type Descriptor struct {
	Entries []DescriptorEntry
	// Override is the limit to use in place of the service's; nil: the service's own.
	Override *Limit
	// Hits is how many hits the request is, if HasHits; Refill: they are given back.
	Hits    uint64
	HasHits bool
	Refill  bool
	// Headers says whether x-ratelimit-* headers tell of this descriptor; nil: as the filter says.
	Headers *RateLimitHeaders
}

// DescriptorEntry is one key and value of a descriptor.
type DescriptorEntry struct{ Key, Value string }

// Limit is so many requests per unit of time.
type Limit struct {
	Requests uint32
	Unit     LimitUnit
}

// LimitUnit is a unit of time, numbered as envoy.type.v3.RateLimitUnit.
type LimitUnit uint8

// The units of limits.
const (
	UnknownUnit LimitUnit = iota
	Second
	Minute
	Hour
	Day
	Month
	Year
)

// RateLimitHeaders says which x-ratelimit-* headers there are.
type RateLimitHeaders uint8

// The versions of x-ratelimit-* headers.
const (
	NoRateLimitHeaders RateLimitHeaders = iota
	DraftVersion03
)
