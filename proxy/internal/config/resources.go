package config

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// LoadDiscoveryResponse reads a file of resources, as path_config_source names it: a DiscoveryResponse whose resources
// carry their @type. The field rules of all resources are checked unless opts leaves them out; as in Envoy one bad
// resource refuses the file. In Positions a resource's fields stand under resources[i].
func LoadDiscoveryResponse(path string, opts Options) (*discoveryv3.DiscoveryResponse, *Positions, error) {
	r := &discoveryv3.DiscoveryResponse{}
	opts.ConfigYAML = ""
	pos, err := LoadInto(path, r, opts)
	if err != nil {
		return nil, pos, err
	}
	return r, pos, nil
}
