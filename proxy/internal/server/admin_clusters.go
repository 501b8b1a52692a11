package server

import (
	"bytes"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// page returns a body that f writes in turns with the main loop.
func (s *Server) page(f func(w *admin.Writer)) admin.Body {
	return admin.Stream(s.main.Clock().Mono, f)
}

// serveClusters answers /clusters.
func (s *Server) serveClusters(r *admin.Request, done func(*admin.Response)) {
	want := func(string) bool { return true }
	if f := r.Query.Get("filter"); f != "" {
		re, err := compileFilter(f)
		if err != nil {
			done(admin.Fail(400, "Invalid re2 regex"))
			return
		}
		want = re.MatchString
	}
	form, body := admin.PlainText, s.clustersText(want)
	if r.Query.Get("format") == "json" {
		form, body = admin.JSON, s.clustersJSON(want)
	}
	done(&admin.Response{Code: 200, ContentType: form, Body: body})
}

// eachCluster calls f for all clusters by name, pausing w meanwhile, until f or w wants no more.
func (s *Server) eachCluster(w *admin.Writer, f func(c *cluster.Status) bool) bool {
	walk := s.clusters.Walk()
	for !walk.Step() {
		if !w.Item() {
			return false
		}
	}
	for c, ok := walk.Next(); ok; c, ok = walk.Next() {
		if !f(&c) || !w.Item() {
			return false
		}
	}
	return true
}

func (s *Server) clustersText(want func(string) bool) admin.Body {
	return s.page(func(w *admin.Writer) {
		s.eachCluster(w, func(c *cluster.Status) bool {
			if !want(c.Cluster.Name()) {
				return true
			}
			w.Buf = c.AppendHead(w.Buf)
			for _, h := range c.Cluster.Hosts() {
				w.Buf = c.AppendHost(w.Buf, h)
				if !w.Item() {
					return false
				}
			}
			return true
		})
	})
}

// hole prints m with the one element that stands for a list, and returns what comes before and after it.
func hole(p *config.Printer, m, element proto.Message, depth, elementDepth int) (before, after []byte) {
	whole := p.Append(nil, m, depth)
	mark := p.Append(nil, element, elementDepth)
	i := bytes.Index(whole, mark)
	if i < 0 {
		return whole, nil
	}
	return whole[:i], whole[i+len(mark):]
}

func (s *Server) clustersJSON(want func(string) bool) admin.Body {
	return s.page(func(w *admin.Writer) {
		p := config.NewPrinter(nil)
		first := true
		whole := s.eachCluster(w, func(c *cluster.Status) bool {
			if !want(c.Cluster.Name()) {
				return true
			}
			if first {
				w.Text("{\n \"cluster_statuses\": [\n  ")
			} else {
				w.Text(",\n  ")
			}
			first = false
			return clusterJSON(w, p, c)
		})
		switch {
		case !whole:
		case first:
			w.Text("{}\n")
		default:
			w.Text("\n ]\n}\n")
		}
	})
}

func clusterJSON(w *admin.Writer, p *config.Printer, c *cluster.Status) bool {
	m := clusterStatus(c)
	hosts := c.Cluster.Hosts()
	if len(hosts) == 0 {
		w.Buf = p.Append(w.Buf, m, 2)
		return true
	}
	mark := &adminv3.HostStatus{Hostname: "\x01"}
	m.HostStatuses = []*adminv3.HostStatus{mark}
	before, after := hole(p, m, mark, 2, 4)
	w.Buf = append(w.Buf, before...)
	for k, h := range hosts {
		if k > 0 {
			w.Text(",\n    ")
		}
		w.Buf = p.Append(w.Buf, hostStatus(h), 4)
		if !w.Item() {
			return false
		}
	}
	w.Buf = append(w.Buf, after...)
	return true
}

// clusterStatus is what the JSON page shows of a cluster, without its hosts.
func clusterStatus(c *cluster.Status) *adminv3.ClusterStatus {
	m := &adminv3.ClusterStatus{Name: c.Cluster.Name(), AddedViaApi: c.AddedViaAPI, ObservabilityName: c.Cluster.ObservabilityName(),
		EdsServiceName: c.EDSServiceName, CircuitBreakers: &clusterv3.CircuitBreakers{}}
	for p := range pool.NumPriorities {
		l := c.Cluster.Pools().Limits[p]
		m.CircuitBreakers.Thresholds = append(m.CircuitBreakers.Thresholds, &clusterv3.CircuitBreakers_Thresholds{
			Priority: corev3.RoutingPriority(p), MaxConnections: wrapperspb.UInt32(l.MaxConnections),
			MaxPendingRequests: wrapperspb.UInt32(l.MaxPending), MaxRequests: wrapperspb.UInt32(l.MaxRequests),
			MaxRetries: wrapperspb.UInt32(uint32(c.MaxRetries(p))),
		})
	}
	return m
}

// hostStatus is what it shows of a host.
func hostStatus(h *host.Host) *adminv3.HostStatus {
	m := &adminv3.HostStatus{Address: addressOf(h.Current()), Weight: h.Weight(), Hostname: h.Hostname, Priority: h.Priority(),
		Locality: localityOf(h.Locality()), HealthStatus: &adminv3.HostHealthStatus{
			FailedActiveHealthCheck: h.Has(host.FailedActiveHC), FailedOutlierCheck: h.Has(host.FailedOutlierCheck),
			FailedActiveDegradedCheck: h.Has(host.DegradedActiveHC), PendingDynamicRemoval: h.Has(host.PendingDynamicRemoval),
			PendingActiveHc: h.Has(host.PendingActiveHC), ExcludedViaImmediateHcFail: h.Has(host.ExcludedViaImmediateHCFail),
			ActiveHcTimeout: h.Has(host.ActiveHCTimeout), EdsHealthStatus: edsHealth(h),
		}}
	for _, c := range []struct {
		name  string
		value uint64
	}{{"cx_connect_fail", h.CxConnectFail.Load()}, {"cx_total", h.CxTotal.Load()}, {"rq_error", h.RqError.Load()},
		{"rq_success", h.RqSuccess.Load()}, {"rq_timeout", h.RqTimeout.Load()}, {"rq_total", h.RqTotal.Load()}} {
		m.Stats = append(m.Stats, &adminv3.SimpleMetric{Name: c.name, Value: c.value})
	}
	for _, g := range []struct {
		name  string
		value int64
	}{{"cx_active", int64(h.CxActive.Load())}, {"rq_active", int64(h.RqActive.Load())}, {"rq_pending_active", int64(h.RqPending.Load())}} {
		m.Stats = append(m.Stats, &adminv3.SimpleMetric{Type: adminv3.SimpleMetric_GAUGE, Name: g.name, Value: uint64(max(g.value, 0))})
	}
	return m
}

func edsHealth(h *host.Host) corev3.HealthStatus {
	switch {
	case h.Has(host.EDSStatusDraining):
		return corev3.HealthStatus_DRAINING
	case h.Has(host.FailedEDSHealth):
		return corev3.HealthStatus_UNHEALTHY
	case h.Has(host.DegradedEDSHealth):
		return corev3.HealthStatus_DEGRADED
	}
	return corev3.HealthStatus_HEALTHY
}

func localityOf(l *host.Locality) *corev3.Locality {
	if l == nil {
		return &corev3.Locality{}
	}
	return &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}
}

func addressOf(a network.Address) *corev3.Address {
	if !a.IP.IsValid() {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: a.Path}}}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: a.IP.Addr().String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.IP.Port())}}}}
}
