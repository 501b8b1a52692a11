package cluster

import (
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Status is what /clusters and /config_dump tell of a cluster.
type Status struct {
	Cluster *Cluster
	// AddedViaAPI tells whether it came by CDS, and Version with which version. Updated is when, in ns since 1970.
	AddedViaAPI bool
	Version     string
	Updated     int64
	// Raw is the configuration of a cluster that came by CDS, serialized.
	Raw []byte
	// EDSServiceName is what its endpoints are asked for by, "" if it is no EDS cluster or has no name of its own.
	EDSServiceName string
	// DNS tells whether its hosts are found by names.
	DNS bool

	now int64 // as of Main.Now
}

// Clusters returns all clusters that serve, sorted by name.
func (m *Manager) Clusters() []Status {
	out := make([]Status, 0, m.count)
	m.each(func(g *generation) { out = append(out, g.status(m.d.Main.Now())) })
	sortStatus(out)
	return out
}

// WarmingClusters returns the clusters that are not shown to workers yet, sorted by name.
func (m *Manager) WarmingClusters() []Status {
	var out []Status
	for _, s := range m.slots {
		if s.warming != nil && s.warming != s.active {
			out = append(out, s.warming.status(m.d.Main.Now()))
		}
	}
	sortStatus(out)
	return out
}

func sortStatus(list []Status) {
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Cluster.name, b.Cluster.name) })
}

func (g *generation) status(now int64) Status {
	s := Status{now: now, Cluster: g.c, AddedViaAPI: g.api, Version: g.version, Updated: g.updated, Raw: g.raw}
	switch src := g.c.source.(type) {
	case *edsSource:
		if src.name != g.c.name {
			s.EDSServiceName = src.name
		}
	case *dnsSource:
		s.DNS = true
	}
	return s
}

// each calls f for all clusters that serve, in no order.
func (m *Manager) each(f func(g *generation)) {
	t := *m.index.table.Load()
	for i := range t {
		if s := t[i].Load(); s != nil && s != grave && s.active != nil {
			f(s.active)
		}
	}
}

// Names returns the names of all clusters that serve, in no order. owner: main loop.
func (m *Manager) Names() []string {
	out := make([]string, 0, m.count)
	t := *m.index.table.Load()
	for i := range t {
		if s := t[i].Load(); s != nil && s != grave && s.Load() != nil {
			out = append(out, s.name)
		}
	}
	return out
}

// Hosts returns all hosts in order of priority.
func (c *Cluster) Hosts() []*host.Host {
	var out []*host.Host
	c.eachHost(func(h *host.Host) { out = append(out, h) })
	return out
}

// AppendText appends what /clusters prints of the cluster as text.
func (s *Status) AppendText(dst []byte) []byte {
	dst = s.AppendHead(dst)
	for _, h := range s.Cluster.Hosts() {
		dst = s.AppendHost(dst, h)
	}
	return dst
}

func (s *Status) line(dst []byte, parts ...string) []byte {
	dst = append(dst, s.Cluster.name...)
	for _, p := range parts {
		dst = append(dst, "::"...)
		dst = append(dst, p...)
	}
	return append(dst, '\n')
}

// AppendHost appends the lines of one host.
func (s *Status) AppendHost(dst []byte, h *host.Host) []byte {
	a := h.Current().String()
	appendHost(h, func(name, value string) { dst = s.line(dst, a, name, value) })
	return dst
}

// AppendHead appends the lines of the cluster itself, which come before those of its hosts.
func (s *Status) AppendHead(dst []byte) []byte {
	c := s.Cluster
	line := func(parts ...string) { dst = s.line(dst, parts...) }
	line("observability_name", c.ObservabilityName())
	for p := range pool.NumPriorities {
		l, name := &c.settings.Limits[p], p.String()+"_priority"
		line(name, "max_connections", decimal(uint64(l.MaxConnections)))
		line(name, "max_pending_requests", decimal(uint64(l.MaxPending)))
		line(name, "max_requests", decimal(uint64(l.MaxRequests)))
		line(name, "max_retries", decimal(uint64(s.MaxRetries(p))))
	}
	line("added_via_api", boolean(s.AddedViaAPI))
	if s.EDSServiceName != "" {
		line("eds_service_name", s.EDSServiceName)
	}
	return dst
}

// MaxRetries is the limit of retries as it is now: with a budget it moves with the requests.
func (s *Status) MaxRetries(p pool.Priority) int64 {
	if b := s.Cluster.settings.Used(p); b != nil {
		return b.Retries.Max(s.now)
	}
	l := &s.Cluster.settings.Limits[p]
	if l.HasBudget {
		return int64(l.MinRetries)
	}
	return int64(l.MaxRetries)
}

func appendHost(h *host.Host, line func(name, value string)) {
	l := h.Locality()
	if l == nil {
		l = &host.Locality{}
	}
	for _, f := range []struct {
		name  string
		value uint64
	}{
		{"cx_active", uint64(max(h.CxActive.Load(), 0))},
		{"cx_connect_fail", h.CxConnectFail.Load()},
		{"cx_total", h.CxTotal.Load()},
		{"rq_active", uint64(max(h.RqActive.Load(), 0))},
		{"rq_error", h.RqError.Load()},
		{"rq_pending_active", uint64(max(h.RqPending.Load(), 0))},
		{"rq_success", h.RqSuccess.Load()},
		{"rq_timeout", h.RqTimeout.Load()},
		{"rq_total", h.RqTotal.Load()},
	} {
		line(f.name, decimal(f.value))
	}
	line("hostname", h.Hostname)
	line("health_flags", string(h.AppendFlags(nil)))
	line("weight", decimal(uint64(h.Weight())))
	line("region", l.Region)
	line("zone", l.Zone)
	line("sub_zone", l.SubZone)
	line("canary", boolean(h.Canary()))
	line("priority", decimal(uint64(h.Priority())))
	line("success_rate", "-1")
	line("local_origin_success_rate", "-1")
}

func boolean(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
