// Package route is what filters see of routing. Entries are immutable and shared by all workers; they live until the last
// stream that took them has ended.
package route

import "time"

// CORS is the name under which the older "cors" fields of a route and its virtual host are kept as configurations: those of
// envoy.extensions.filters.http.cors.v3.CorsPolicy that say the same.
const CORS = "cors (of the route)"

// Entry is the route that a request takes.
type Entry interface {
	Name() string
	VirtualHost() string
	// Cluster is the name of the cluster that the request goes to, "" for direct responses and redirects, or if it is chosen
	// later.
	Cluster() string
	// Timeout is the route's timeout; 0 means none.
	Timeout() time.Duration
	// Metadata is the route's metadata by filter namespace.
	Metadata(namespace string) map[string]any
	// FilterConfig returns the most specific configuration for the filter configured under this name; nil if there is none.
	FilterConfig(filter string) any
	// FilterConfigs appends the configurations of all levels (weighted cluster, route, virtual host, route configuration) to dst, the
	// most specific one first.
	FilterConfigs(dst []any, filter string) []any
	// FilterDisabled tells whether the route turns the filter off (or on, if it is disabled by default): set is false if it
	// says nothing.
	FilterDisabled(filter string) (disabled, set bool)
	// RateLimits are the route's rate_limits, HostRateLimits the virtual host's. IncludeHostRateLimits: those of the virtual host apply
	// besides the route's own; otherwise only if the route has none for a stage.
	RateLimits() []RateLimit
	HostRateLimits() []RateLimit
	IncludeHostRateLimits() bool
}
