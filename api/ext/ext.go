// Package ext is how an extension is made known: one value per extension, listed explicitly, without registration at init time.
// A built-in extension and a strange one get the same FactoryContext, and no private door.
package ext

import (
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Status says how far an extension is.
type Status uint8

// The states of extensions, as Envoy's extension index has them.
const (
	Stable Status = iota
	Alpha
	WorkInProgress
)

// Posture says which side of an extension may be trusted.
type Posture uint8

// The security postures, as Envoy's extension index has them.
const (
	RobustToUntrustedDownstream Posture = iota
	RobustToUntrustedDownstreamAndUpstream
	RequiresTrustedDownstreamAndUpstream
	UnknownPosture
)

// FactoryContext is what an extension gets while its configuration is built, on the main loop. It stays valid for Post, Workers
// and Clock afterwards.
type FactoryContext interface {
	// Scope is the stats scope of where the extension is configured ("http.<prefix>." for HTTP filters), RootScope the root.
	Scope() stats.Scope
	RootScope() stats.Scope
	Clock() clock.Clock
	// Post runs f on the main loop, EachWorker on every worker. Safe from any goroutine.
	Post(f func())
	EachWorker(f func(d network.Dispatcher))
	// HasCluster tells whether a cluster of that name exists now. ClusterHosts counts its hosts, and those of them that can be used; it
	// is safe from any thread.
	HasCluster(name string) bool
	ClusterHosts(name string) (usable, all int, ok bool)
	// LocalCluster is the name of the cluster that this proxy belongs to (--service-cluster).
	LocalCluster() string
	// HealthFailed tells whether the proxy was told to fail health checks. Safe from any thread.
	HealthFailed() bool
	// Runtime answers runtime keys.
	Runtime() Runtime
	// HeaderMatcher compiles an envoy.config.route.v3.HeaderMatcher, StringMatcher an envoy.type.matcher.v3.StringMatcher.
	HeaderMatcher(m proto.Message) (HeaderMatcher, error)
	StringMatcher(m proto.Message) (StringMatcher, error)
	// Rewriter compiles an envoy.type.matcher.v3.RegexMatchAndSubstitute.
	Rewriter(m proto.Message) (Rewriter, error)
	// HeaderMutations compiles envoy.config.common.mutation_rules.v3.HeaderMutation messages, which apply in their order.
	HeaderMutations(list []proto.Message) (HeaderMutations, error)
	// Format compiles a substitution format string, for values that are made per stream.
	Format(text string) (Formatter, error)
	// WithFormatters returns a context whose Format and HeaderMutations know the operators of these formatter extensions too, each an
	// envoy.config.core.v3.TypedExtensionConfig.
	WithFormatters(list []proto.Message) (FactoryContext, error)
}

// Formatter makes a text from what is known of a stream.
type Formatter interface {
	// Append appends the text for the stream behind cb to dst.
	Append(dst []byte, cb filter.Callbacks) []byte
}

// Runtime answers runtime keys: def, or the given fraction, is for keys that are not set. Safe from any thread.
type Runtime interface {
	Uint(key string, def uint64) uint64
	Bool(key string, def bool) bool
	// Enabled decides by a random number for numerator of denominator cases.
	Enabled(key string, numerator, random, denominator uint64) bool
}

// HeaderMatcher tells whether a head fits.
type HeaderMatcher interface{ Match(h *http.HeaderMap) bool }

// StringMatcher tells whether a text fits.
type StringMatcher interface{ Match(s string) bool }

// Rewriter replaces each piece of a text that a regular expression matches.
type Rewriter interface{ Replace(s string) string }

// HeaderMutations changes headers.
type HeaderMutations interface {
	// Apply changes h for the stream behind cb.
	Apply(h *http.HeaderMap, cb filter.Callbacks)
}

// Info is what all kinds of extensions have.
type Info struct {
	// Name is the extension's canonical name, such as "envoy.filters.http.fault".
	Name string
	// TypeURLs are the configuration messages by which it is found, without the host part:
	// "envoy.extensions.filters.http.fault.v3.HTTPFault".
	TypeURLs []string
	Status   Status
	Posture  Posture
	// Refused are the fields of its messages that Envoy has and this extension has not. A configuration that sets one is refused, with
	// the field's name, before New is called; docs/compat.md lists them. A row is a path of proto names from the first of TypeURLs on
	// (lists and maps add no step), or one of these:
	//
	//	a.b=TEXT        only if it holds TEXT: an enum's value, true or false
	//	a.b (note)      only under the condition that the note names; New checks that itself
	//	!a.b            New checks it itself
	//	PerRoute:a.b    a field of another of its messages, by that one's name without package
	Refused []string
	// Ignored are the fields that are accepted and change nothing, as rows like those of Refused. The README says why.
	Ignored []string
}

// Messages are all messages that configure the extension, those of per-route configuration last.
func (f *HTTPFilter) Messages() []string {
	all := append([]string(nil), f.TypeURLs...)
	for _, u := range f.RouteTypeURLs {
		known := false
		for _, o := range all {
			known = known || o == u
		}
		if !known {
			all = append(all, u)
		}
	}
	return all
}

// HTTPFilter is an HTTP filter extension.
type HTTPFilter struct {
	Info
	// New builds a factory from the configuration, a message of one of the TypeURLs. An error refuses the configuration.
	New func(cfg proto.Message, ctx FactoryContext) (filter.Factory, error)
	// NewSync, instead of New, builds what makes filters that are written as straight-line code, one for each stream. It runs on
	// the stream's worker; nil from it means that the stream needs no filter.
	NewSync func(cfg proto.Message, ctx FactoryContext) (func(d network.Dispatcher) filter.Sync, error)
	// NewRoute parses per-route configuration; what it returns comes back from Callbacks.RouteConfig. nil: the filter has none.
	NewRoute func(cfg proto.Message, ctx FactoryContext) (any, error)
	// RouteTypeURLs are the messages of per-route configuration if they differ from TypeURLs.
	RouteTypeURLs []string
	// Terminal filters end a chain.
	Terminal bool
}

// NetworkFilter is a network filter extension.
type NetworkFilter struct {
	Info
	// New returns a constructor for one connection's filter.
	New      func(cfg proto.Message, ctx FactoryContext) (func(d network.Dispatcher) network.ReadFilter, error)
	Terminal bool
}

// ListenerFilter is a listener filter extension.
type ListenerFilter struct {
	Info
	New func(cfg proto.Message, ctx FactoryContext) (func(d network.Dispatcher) network.ListenerFilter, error)
}

// Set is a list of extensions. The zero value is empty.
type Set struct {
	HTTPFilters     []HTTPFilter
	NetworkFilters  []NetworkFilter
	ListenerFilters []ListenerFilter
}

// Add appends other's extensions. Duplicates are found when a proxy is built: they are an error that names both.
func (s *Set) Add(other Set) {
	s.HTTPFilters = append(s.HTTPFilters, other.HTTPFilters...)
	s.NetworkFilters = append(s.NetworkFilters, other.NetworkFilters...)
	s.ListenerFilters = append(s.ListenerFilters, other.ListenerFilters...)
}
