package cluster

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

// extensionPolicy finds a load balancer extension for a configuration; false: there is none.
func extensionPolicy(any *anypb.Any, d *Deps, o *Options) (bool, error) {
	for i := range d.LoadBalancers {
		m := d.LoadBalancers[i].NewConfig()
		if !config.Holds(any, m) {
			continue
		}
		if err := config.Into(any, m); err != nil {
			return false, err
		}
		p, err := d.LoadBalancers[i].New(m)
		if err != nil {
			return false, err
		}
		o.LB.Policy = lb.Extension(p)
		return true, nil
	}
	return false, nil
}
