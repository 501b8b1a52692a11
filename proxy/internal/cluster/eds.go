package cluster

import (
	"fmt"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

const assignmentType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// newSource returns what finds the hosts of a cluster, nil if they are all configured.
func newSource(c *Cluster, cfg *clusterv3.Cluster, d *Deps, a *assignment) (source, error) {
	switch c.opts.Type {
	case OriginalDST:
		o, err := newOriginalDst(c, cfg, d)
		if err != nil {
			return nil, err
		}
		c.dst = o
		return o, nil
	case StrictDNS, LogicalDNS:
		r, err := buildResolver(cfg, d)
		if err != nil {
			return nil, err
		}
		s := newDNSSource(c, d, a)
		s.resolver = r
		empty := *a
		empty.localities = nil
		*a, s.a = empty, &assignment{localities: a.localities, overprovisioning: a.overprovisioning, weightedHealth: a.weightedHealth}
		return s, nil
	case EDS:
		e := cfg.GetEdsClusterConfig()
		if e.GetEdsConfig() == nil {
			return nil, rejected("eds_cluster_config", "cannot create an EDS cluster without an EDS config")
		}
		if d.Source == nil {
			return nil, notYet("eds_cluster_config.eds_config")
		}
		if x, ok := d.Source.(sub.Checker); ok {
			if err := x.Check(e.GetEdsConfig(), assignmentType); err != nil {
				return nil, config.At("eds_cluster_config.eds_config", err)
			}
		}
		s := &edsSource{c: c, d: d, from: e.GetEdsConfig(), name: e.GetServiceName()}
		if s.name == "" {
			s.name = c.name
		}
		return s, nil
	}
	return nil, nil
}

// edsSource subscribes to a cluster's endpoints. owner: main loop.
type edsSource struct {
	c     *Cluster
	d     *Deps
	from  *corev3.ConfigSource
	name  string
	sub   sub.Subscription
	ready func()
	// counts: the stats of the subscription are registered.
	counts bool
}

func (s *edsSource) primary() bool {
	return s.from.GetPathConfigSource() != nil || s.from.GetPath() != "" //nolint:staticcheck // deprecated, still read by Envoy
}

func (s *edsSource) start(ready func()) {
	s.ready = ready
	base, scope := s.c.settings.Stats, s.c.scope(s.d)
	own := scope.Group(stats.EDS)
	s.counts = true
	var err error
	s.sub, err = s.d.Source.Subscribe(s.from, assignmentType, []string{s.name}, sub.Stats{
		Attempt:      base.Counter(stats.ClusterUpdateAttempt),
		Success:      base.Counter(stats.ClusterUpdateSuccess),
		Failure:      base.Counter(stats.ClusterUpdateFailure),
		Rejected:     own.Counter(stats.EDSUpdateRejected),
		FetchTimeout: own.Counter(stats.EDSInitFetchTimeout),
		Time:         own.Gauge(stats.EDSUpdateTime),
		Version:      base.Gauge(stats.ClusterVersion),
		VersionText:  scope.Text(stats.VersionText),
		Duration:     own.Histogram(stats.EDSUpdateDuration),
		Scope:        scope,
	}, s)
	if err != nil {
		s.isReady()
	}
}

func (s *edsSource) stop() {
	s.ready = nil
	if s.sub != nil {
		s.sub.Close()
		s.sub = nil
	}
	if s.counts {
		s.counts = false
		scope := s.c.scope(s.d)
		scope.Release(stats.EDS)
		scope.ReleaseText(stats.VersionText)
	}
}

func (s *edsSource) isReady() {
	if f := s.ready; f != nil {
		s.ready = nil
		f()
	}
}

// OnUpdate implements sub.Callbacks.
func (s *edsSource) OnUpdate(u *sub.Update) error {
	if len(u.Resources) == 0 {
		// Endpoints that are not spoken of stay.
		s.d.Store.Main().Inc(s.c.settings.Stats.Counter(stats.ClusterUpdateEmpty))
		s.isReady()
		return nil
	}
	var found *endpointv3.ClusterLoadAssignment
	var from *sub.Resource
	for i := range u.Resources {
		r := &u.Resources[i]
		if r.Unchanged {
			if r.Name == s.name {
				s.d.Store.Main().Inc(s.c.settings.Stats.Counter(stats.ClusterUpdateNoRebuild))
				s.isReady()
				return nil
			}
			continue
		}
		if r.Err != nil {
			return r.Named(r.Err)
		}
		la, ok := r.Body.(*endpointv3.ClusterLoadAssignment)
		if !ok {
			return fmt.Errorf("EDS resource %s is no ClusterLoadAssignment", r.Name)
		}
		if la.GetClusterName() == s.name || r.Name == s.name {
			found, from = la, r
		}
	}
	if found == nil {
		r := &u.Resources[0]
		return r.Placed(config.At("cluster_name", fmt.Errorf("Unexpected EDS cluster (expecting %s): %s", s.name, r.Name))) //nolint:staticcheck // Envoy's text
	}
	a, err := readAssignment(found, "")
	if err != nil {
		return from.Named(err)
	}
	for _, l := range a.localities {
		for _, e := range l.endpoints {
			if !e.target.address.Valid() {
				return from.Named(config.At(addressPath(&e), badAddress(e.target.name)))
			}
		}
	}
	s.c.matched(s.d, a.all()...)
	if !s.c.apply(s.d, a) {
		s.d.Store.Main().Inc(s.c.settings.Stats.Counter(stats.ClusterUpdateNoRebuild))
	}
	s.isReady()
	return nil
}

// OnFailure implements sub.Callbacks: traffic goes to what is known.
func (s *edsSource) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		s.isReady()
	}
}
