// Package upstream is the contract for what chooses and finds upstream hosts: load balancers and cluster types.
//
// A load balancer's policy is built on the main loop; what it builds is immutable and is asked by all workers. A cluster type
// belongs to the main loop altogether.
package upstream

import (
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
)

// Health is a host's coarse health.
type Health uint8

// The three states of Health.
const (
	Healthy Health = iota
	Degraded
	Unhealthy
)

// Locality says where a host stands.
type Locality struct{ Region, Zone, SubZone string }

// Host is an endpoint as extensions see it. The same endpoint is the same value, also after updates. All methods are safe from any
// thread.
type Host interface {
	Address() network.Address
	// Hostname is the name that the endpoint was given or resolved from, "" if there is none.
	Hostname() string
	Weight() uint32
	Priority() uint32
	Locality() Locality
	// Metadata follows path below a filter namespace.
	Metadata(namespace string, path ...string) (v any, ok bool)
	Health() Health
	// ActiveRequests counts over all workers.
	ActiveRequests() int64
}

// LoadBalancer is an extension for load_balancing_policy.
type LoadBalancer struct {
	// Name is the extension's, "envoy.load_balancing_policies.NAME".
	Name string
	// NewConfig returns an empty message of the type that configures it.
	NewConfig func() proto.Message
	// New checks the configuration and returns the policy, which clusters share.
	New func(config proto.Message) (Policy, error)
}

// Policy makes Pickers.
type Policy interface {
	// Build is called on the main loop for each list of hosts that may be chosen from, again whenever it changes. hosts is not
	// empty and must not be changed.
	Build(hosts []Host) Picker
}

// Picker chooses from the hosts that it was built with. It is immutable: all workers ask it, at the same time.
type Picker interface {
	// Pick returns the index of a host. An index outside of the list means that none is to be used.
	Pick(p *Pick) int
}

// Pick is what a choice may depend on. It is valid during the call.
type Pick struct {
	// Headers is the request's head; nil for TCP.
	Headers *http.HeaderMap
	// Hash is the request's hash by the route's hash policy, if HasHash.
	Hash    uint64
	HasHash bool
	Rand    *rand.Source
	// Local is the Picker's own memory on this worker, nil at first: a round robin's position.
	Local *any
}

// ClusterType is an extension for cluster_type: another way to find a cluster's hosts.
type ClusterType struct {
	// Name is the extension's, "envoy.clusters.NAME".
	Name string
	// NewConfig returns an empty message of the type that configures it.
	NewConfig func() proto.Message
	// New checks the configuration. Nothing happens before Start.
	New func(config proto.Message, ctx ClusterContext) (HostSource, error)
}

// HostSource finds hosts. All calls come on the main loop.
type HostSource interface {
	// Start begins; the source calls SetHosts when it knows hosts, and Ready once when traffic may begin.
	Start()
	// Stop ends it. Nothing of the context may be used after it.
	Stop()
}

// ClusterContext is what a HostSource gets. It belongs to the main loop, except for Post.
type ClusterContext interface {
	// Name is the cluster's.
	Name() string
	// Post runs f on the main loop. Safe from any goroutine.
	Post(f func())
	// SetHosts replaces the cluster's hosts. Those that were there before keep their identity.
	SetHosts(endpoints []Endpoint)
	// Ready says that the first answer is there, or that there will be none.
	Ready()
}

// Endpoint is a host as a HostSource describes it.
type Endpoint struct {
	Address  network.Address
	Hostname string
	// Weight is at least 1; 0 means 1.
	Weight   uint32
	Priority uint32
	Locality Locality
	Health   Health
	// Metadata is per filter namespace a tree of plain values.
	Metadata map[string]map[string]any
}
