package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
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
	// Pause, if set, is called before an update is applied and its result after: meanwhile nobody is asked for what clusters need.
	Pause func() (resume func())
	// Version is that of the last update that was taken whole.
	Version string

	// Log is the application log of Envoy's component "upstream"; nil: none.
	Log *slog.Logger

	names map[string]bool // the clusters that this subscription brought
	stats apistats.GroupBase
}

// begin registers what there is to count, once.
func (c *CDS) begin() {
	if c.names == nil {
		c.names = map[string]bool{}
		c.stats = c.M.d.Store.Root().Scope("cluster_manager.cds").Group(stats.Reloads)
	}
}

// OnUpdate adds, replaces and removes clusters. Good clusters are applied even if others are refused; the error names those.
func (c *CDS) OnUpdate(u *sub.Update) error { return sub.Apply(c, u) }

// Begin implements sub.Stepper: a step is one cluster.
func (c *CDS) Begin(u *sub.Update) (step func() (int, bool), finish func() error) {
	c.begin()
	x := &cdsUpdate{c: c, u: u}
	x.seen, x.removed = u.Changes(c.names)
	if c.Pause != nil {
		x.resume = c.Pause()
	}
	c.info("cds: response indicates %d added/updated cluster(s), %d removed cluster(s); applying changes", len(u.Resources)+u.Same, len(x.removed))
	return x.step, x.finish
}

// cdsUpdate is an update that is being applied.
type cdsUpdate struct {
	c       *CDS
	u       *sub.Update
	at      int
	seen    map[string]bool // of a full update: names, and whether they came already
	removed []string
	changed int
	same    int
	gone    int
	bad     []string
	resume  func()
}

func (x *cdsUpdate) step() (refused int, more bool) {
	refused = -1
	switch n := len(x.u.Resources); {
	case x.at < n:
		r := &x.u.Resources[x.at]
		if err := r.Placed(x.apply(r)); err != nil {
			refused = x.at
			x.c.warn(r.Name, err)
			x.bad = append(x.bad, named(r.Name, err))
		}
	case x.at-n < len(x.removed):
		name := x.removed[x.at-n]
		if x.c.names[name] {
			delete(x.c.names, name)
			x.c.M.Remove(name)
			x.gone++
		}
	}
	x.at++
	return refused, x.at < len(x.u.Resources)+len(x.removed)
}

// apply takes one cluster.
func (x *cdsUpdate) apply(r *sub.Resource) error {
	if x.seen != nil {
		if x.seen[r.Name] {
			return fmt.Errorf("duplicate cluster %s found", r.Name)
		}
		x.seen[r.Name] = true
	}
	if r.Unchanged {
		x.same++
		return nil
	}
	if r.Err != nil {
		return r.Err
	}
	cfg, ok := r.Body.(*clusterv3.Cluster)
	if !ok {
		return errors.New("is no Cluster")
	}
	changed, err := x.c.M.Update(cfg, version(x.u, r))
	if err != nil {
		return err
	}
	if changed {
		x.changed++
	} else {
		x.same++
	}
	if name := cfg.GetName(); !x.c.names[name] { // or the map would hold this update's string instead
		x.c.names[name] = true
	}
	return nil
}

func (x *cdsUpdate) finish() error {
	c := x.c
	c.info("cds: added/updated %d cluster(s) (skipped %d unmodified cluster(s)); removed %d cluster(s)", x.changed, x.same+x.u.Same, x.gone)
	if x.changed > 0 && len(x.bad) == 0 { // Envoy counts no others
		c.M.d.Main.Stats.Inc(c.stats.Counter(stats.ReloadsConfigReload))
		c.M.d.Store.SetGauge(c.stats.Gauge(stats.ReloadsConfigReloadTimeMs), uint64(c.M.d.Main.Wall()/1e6))
	}
	if c.OnDone != nil {
		c.M.WhenWarm(c.done)
	}
	if x.resume != nil {
		x.resume()
	}
	if len(x.bad) > 0 {
		return errors.New("Error adding/updating cluster(s) " + strings.Join(x.bad, ", ")) //nolint:staticcheck // Envoy's text
	}
	c.Version = x.u.Version
	return nil
}

func named(name string, err error) string {
	if name == "" {
		return err.Error()
	}
	return name + ": " + err.Error()
}

func (c *CDS) info(format string, args ...any) {
	if c.Log != nil && c.Log.Enabled(context.Background(), slog.LevelInfo) {
		c.Log.Info(fmt.Sprintf(format, args...))
	}
}

func (c *CDS) warn(name string, err error) {
	if c.Log != nil {
		c.Log.Warn("cds: cluster '" + name + "' config rejected: " + err.Error())
	}
}

func version(u *sub.Update, r *sub.Resource) string {
	if r.Version != "" {
		return r.Version
	}
	return u.Version
}

// OnFailure goes on without clusters unless the source may still come.
func (c *CDS) OnFailure(reason sub.Reason, _ error) {
	c.begin()
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
