package router

import (
	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// record is what upstream access logs (upstream_log) show of one attempt. Attempts of routers without such logs have none.
type record struct {
	a     *attempt
	inf   stream.Info
	head  http.HeaderMap // the answer's head as it came
	flush event.Timer    // upstream_log_flush_interval
}

// beginRecord begins the record of an attempt.
func (a *attempt) beginRecord() {
	r := a.r
	if a.rec == nil {
		a.rec = &record{a: a}
		a.rec.flush.Fn = a.rec.onFlush
	}
	a.logged = true
	i, of := &a.rec.inf, r.info
	i.Reset()
	i.Start, i.StartWall = r.w.Now(), r.w.Wall()
	i.Conn, i.Remote, i.Static, i.HealthCheck = of.Conn, of.Remote, of.Static, of.HealthCheck
	i.RouteName, i.VirtualHost, i.ClusterName, i.ClusterNameRaw = of.RouteName, of.VirtualHost, of.ClusterName, of.ClusterNameRaw
	i.RequestHeaders = r.head
	if d := r.cfg.UpstreamLogInterval; d > 0 {
		r.w.Arm(&a.rec.flush, d)
	}
}

// log writes the record as it is now.
func (a *attempt) log(when accesslog.Type) {
	r, i := a.r, &a.rec.inf
	i.Upstream = *a.up
	r.cfg.UpstreamLogs.Log(r.w, i, when)
}

// logHead notes the answer's head.
func (a *attempt) logHead(h *http.HeaderMap) {
	c := a.rec
	c.head.Init(a.r.head.Arena())
	c.head.CopyFrom(h)
	c.inf.ResponseHeaders, c.inf.Code = &c.head, h.StatusCode()
}

// endRecord writes the record for the last time.
func (a *attempt) endRecord() {
	a.logged = false
	a.r.w.Disarm(&a.rec.flush)
	a.rec.inf.End = a.r.w.Now()
	a.log(accesslog.UpstreamEnd)
	a.rec.inf.Reset()
	a.rec.head.Release()
}

func (c *record) onFlush() {
	if a := c.a; a.logged {
		a.countWire()
		a.log(accesslog.UpstreamPeriodic)
		a.r.w.Arm(&c.flush, a.r.cfg.UpstreamLogInterval)
	}
}
