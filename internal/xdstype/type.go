// Package xdstype names the resource types of xDS and reads and writes the messages that carry them.
//
// The messages are written out here because the generated ones come in packages that link in a gRPC library: 18 MB of
// binary and 8 MB of memory for a data plane that frames gRPC itself. Reading is a pass over the bytes; what it returns
// points into them. The package holds no state, starts nothing and never panics on input.
package xdstype

import "strings"

// Prefix is the host under which type URLs are written.
const Prefix = "type.googleapis.com/"

// The type URLs of the resources.
const (
	Cluster         = Prefix + "envoy.config.cluster.v3.Cluster"
	Endpoint        = Prefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	LbEndpoint      = Prefix + "envoy.config.endpoint.v3.LbEndpoint"
	Listener        = Prefix + "envoy.config.listener.v3.Listener"
	Route           = Prefix + "envoy.config.route.v3.RouteConfiguration"
	ScopedRoute     = Prefix + "envoy.config.route.v3.ScopedRouteConfiguration"
	VirtualHost     = Prefix + "envoy.config.route.v3.VirtualHost"
	Secret          = Prefix + "envoy.extensions.transport_sockets.tls.v3.Secret"
	Runtime         = Prefix + "envoy.service.runtime.v3.Runtime"
	ExtensionConfig = Prefix + "envoy.config.core.v3.TypedExtensionConfig"
	// DeltaResource wraps a resource that is given a name or a TTL in a state-of-the-world response.
	DeltaResource = Prefix + "envoy.service.discovery.v3.Resource"
)

// order is that in which updates must be applied so that nothing refers to what is not there yet.
var order = [...]struct{ url, short string }{
	{Secret, "SDS"}, {Cluster, "CDS"}, {Endpoint, "EDS"}, {LbEndpoint, "LEDS"}, {ExtensionConfig, "ECDS"}, {Listener, "LDS"},
	{ScopedRoute, "SRDS"}, {Route, "RDS"}, {VirtualHost, "VHDS"}, {Runtime, "RTDS"},
}

// Short returns CDS, EDS, LDS, ... for a type URL, and the URL itself for a type that is none of them.
func Short(url string) string {
	for _, o := range order {
		if o.url == url {
			return o.short
		}
	}
	return url
}

// Rank orders type URLs for a stream that carries several: clusters before endpoints before listeners before routes. An
// unknown type comes last.
func Rank(url string) int {
	for i, o := range order {
		if o.url == url {
			return i
		}
	}
	return len(order)
}

// Wildcard tells whether a subscription to all resources of a type is what Envoy makes: clusters and listeners.
func Wildcard(url string) bool { return url == Cluster || url == Listener }

// Name cuts the host off a type URL.
func Name(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }
