package cluster

import (
	"fmt"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// ClusterType is the type URL of clusters.
const ClusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// CDS applies updates of clusters to a Manager. It is the sub.Callbacks of a wildcard subscription. owner: main loop.
type CDS struct {
	M *Manager
	// OnDone is called once, when the first update was applied or will not come; nil: nobody waits.
	OnDone func()
	// Version is that of the last update that was taken whole.
	Version string

	names map[string]bool // the clusters that this subscription brought
}

// OnUpdate adds, replaces and removes clusters. Good clusters are applied even if others are refused; the error names those.
func (c *CDS) OnUpdate(u *sub.Update) error {
	if c.names == nil {
		c.names = map[string]bool{}
	}
	var bad []string
	seen := make(map[string]bool, len(u.Resources))
	for _, r := range u.Resources {
		if seen[r.Name] {
			bad = append(bad, fmt.Sprintf("%s: duplicate cluster %s found", r.Name, r.Name))
			continue
		}
		seen[r.Name] = true
		if r.Unchanged {
			continue
		}
		cfg, ok := r.Body.(*clusterv3.Cluster)
		if !ok {
			bad = append(bad, r.Name+": is no Cluster")
			continue
		}
		if _, err := c.M.Update(cfg, version(u, &r)); err != nil {
			bad = append(bad, cfg.GetName()+": "+err.Error())
			continue
		}
		c.names[cfg.GetName()] = true
	}
	if u.Full {
		for n := range c.names {
			if !seen[n] {
				c.remove(n)
			}
		}
	}
	for _, n := range u.Removed {
		c.remove(n)
	}
	if c.OnDone != nil {
		c.M.WhenWarm(c.done)
	}
	if len(bad) > 0 {
		return fmt.Errorf("Error adding/updating cluster(s) %s", strings.Join(bad, ", ")) //nolint:staticcheck // Envoy's text
	}
	return nil
}

func version(u *sub.Update, r *sub.Resource) string {
	if r.Version != "" {
		return r.Version
	}
	return u.Version
}

func (c *CDS) remove(name string) {
	delete(c.names, name)
	c.M.Remove(name)
}

// OnFailure goes on without clusters unless the source may still come.
func (c *CDS) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		c.done()
	}
}

func (c *CDS) done() {
	if f := c.OnDone; f != nil {
		c.OnDone = nil
		f()
	}
}
