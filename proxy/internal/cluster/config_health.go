package cluster

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_check/event_sinks/file/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// The defaults of health checks.
const (
	defaultNoTraffic      = time.Minute
	defaultResponseBuffer = 1024
)

// buildHealth reads the health checks of a cluster; nil: there are none.
func buildHealth(cfg *clusterv3.Cluster, d *Deps, p *poolOptions) (*health.Options, error) {
	if len(cfg.GetHealthChecks()) == 0 {
		return nil, nil
	}
	var errs config.Errors
	if len(cfg.GetHealthChecks()) > 1 {
		errs.Collect("", notYet("health_checks[1]"))
	}
	hc := cfg.GetHealthChecks()[0]
	const path = "health_checks[0]"
	errs.Collect("", config.Refuse(healthGaps, hc, path+"."))
	o := &health.Options{Name: hc.GetName(), Timeout: hc.GetTimeout().AsDuration(), Interval: hc.GetInterval().AsDuration(),
		InitialJitter: hc.GetInitialJitter().AsDuration(), Jitter: hc.GetIntervalJitter().AsDuration(), JitterPercent: hc.GetIntervalJitterPercent(),
		Healthy: hc.GetHealthyThreshold().GetValue(), Unhealthy: hc.GetUnhealthyThreshold().GetValue(),
		LogFailures: hc.GetAlwaysLogHealthCheckFailures(), LogSuccess: hc.GetAlwaysLogHealthCheckSuccess(),
		NoReuse: hc.GetReuseConnection() != nil && !hc.GetReuseConnection().GetValue()}
	o.NoTrafficInterval = duration(hc.GetNoTrafficInterval(), defaultNoTraffic)
	o.NoTrafficHealthily = duration(hc.GetNoTrafficHealthyInterval(), o.NoTrafficInterval)
	o.UnhealthyInterval = duration(hc.GetUnhealthyInterval(), o.Interval)
	o.UnhealthyEdge = duration(hc.GetUnhealthyEdgeInterval(), o.UnhealthyInterval)
	o.HealthyEdge = duration(hc.GetHealthyEdgeInterval(), o.Interval)
	_, err := eventLogs(hc)
	errs.Collect(path, err)
	switch x := hc.GetHealthChecker().(type) {
	case *corev3.HealthCheck_HttpHealthCheck_:
		o.HTTP, err = buildHTTPCheck(x.HttpHealthCheck, d)
		errs.Collect(path+".http_health_check", err)
	case *corev3.HealthCheck_TcpHealthCheck_:
		o.TCP, err = buildTCPCheck(x.TcpHealthCheck)
		errs.Collect(path+".tcp_health_check", err)
	case *corev3.HealthCheck_GrpcHealthCheck_:
		if p != nil && p.Protocol == pool.HTTP1 {
			errs.Collect(path, errors.New(cfg.GetName()+" cluster must support HTTP/2 for gRPC healthchecking"))
		}
		g := x.GrpcHealthCheck
		o.GRPC = &health.GRPC{Service: g.GetServiceName(), Authority: g.GetAuthority()}
		o.GRPC.Edit, err = buildEdit(d, g.GetInitialMetadata(), nil, "initial_metadata", "")
		errs.Collect(path+".grpc_health_check", err)
	}
	return o, errs.Err()
}

// withBody are the methods that Envoy lets a health check send a payload with.
var withBody = []corev3.RequestMethod{corev3.RequestMethod_POST, corev3.RequestMethod_PUT, corev3.RequestMethod_PATCH, corev3.RequestMethod_OPTIONS}

func buildHTTPCheck(c *corev3.HealthCheck_HttpHealthCheck, d *Deps) (*health.HTTP, error) {
	o := &health.HTTP{Host: c.GetHost(), Path: c.GetPath(), Two: c.GetCodecClientType() == typev3.CodecClientType_HTTP2,
		BufferSize: defaultResponseBuffer}
	var errs config.Errors
	var err error
	method := c.GetMethod()
	if method == corev3.RequestMethod_METHOD_UNSPECIFIED {
		method = corev3.RequestMethod_GET
	}
	o.Method = method.String()
	if c.GetSend() != nil {
		if o.Send, err = payload(c.GetSend()); err == nil && !slices.Contains(withBody, method) {
			err = errors.New("HTTP health check cannot specify a request payload with method '" + o.Method +
				"'. Only methods that support a request body (POST, PUT, PATCH, OPTIONS) can be used with payload.")
		}
		errs.Collect("send", err)
	}
	o.Receive, err = payloads(c.GetReceive())
	errs.Collect("receive", err)
	if b := c.GetResponseBufferSize(); b != nil {
		o.BufferSize = int(min(b.GetValue(), health.MaxHTTPAnswer))
	}
	o.Expected, err = ranges(c.GetExpectedStatuses(), "expected")
	errs.Collect("expected_statuses", err)
	o.Retriable, err = ranges(c.GetRetriableStatuses(), "retriable")
	errs.Collect("retriable_statuses", err)
	if m := c.GetServiceNameMatcher(); m != nil {
		o.ServiceName, err = match.NewString(m)
		errs.Collect("service_name_matcher", err)
	}
	o.Edit, err = buildEdit(d, c.GetRequestHeadersToAdd(), c.GetRequestHeadersToRemove(), "request_headers_to_add", "request_headers_to_remove")
	errs.Collect("", err)
	return o, errs.Err()
}

func buildTCPCheck(c *corev3.HealthCheck_TcpHealthCheck) (*health.TCP, error) {
	o := &health.TCP{}
	var errs config.Errors
	var err error
	if c.GetSend() != nil {
		o.Send, err = payload(c.GetSend())
		errs.Collect("send", err)
	}
	o.Receive, err = payloads(c.GetReceive())
	errs.Collect("receive", err)
	return o, errs.Err()
}

// buildEdit makes what changes the head of a check's request; nil: nothing does.
func buildEdit(d *Deps, add []*corev3.HeaderValueOption, remove []string, addField, removeField string) (health.Edit, error) {
	if len(add)+len(remove) == 0 {
		return nil, nil
	}
	if d.Headers == nil {
		return nil, notYet(addField)
	}
	var errs config.Errors
	first, err := d.Headers(add, nil)
	errs.Collect(addField, err)
	second, err := d.Headers(nil, remove)
	errs.Collect(removeField, err)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return health.Edits(first, second), nil
}

func payloads(list []*corev3.HealthCheck_Payload) (out [][]byte, err error) {
	var errs config.Errors
	for i, p := range list {
		b, err := payload(p)
		errs.Collect(fmt.Sprintf("[%d]", i), err)
		out = append(out, b)
	}
	return out, errs.Err()
}

func payload(p *corev3.HealthCheck_Payload) ([]byte, error) {
	if x, ok := p.GetPayload().(*corev3.HealthCheck_Payload_Binary); ok {
		return x.Binary, nil
	}
	b, err := hex.DecodeString(p.GetText())
	if err != nil {
		return nil, config.At("text", errors.New("invalid hex string '"+p.GetText()+"'"))
	}
	return b, nil
}

// ranges reads ranges of status codes; of is the word that Envoy's errors have.
func ranges(list []*typev3.Int64Range, of string) (out []health.Range, err error) {
	var errs config.Errors
	for i, r := range list {
		var msg string
		switch {
		case r.GetStart() >= r.GetEnd():
			msg = fmt.Sprintf("expecting start < end, but found start=%d and end=%d", r.GetStart(), r.GetEnd())
		case r.GetStart() < 100:
			msg = fmt.Sprintf("expecting start >= 100, but found start=%d", r.GetStart())
		case r.GetEnd() > 600:
			msg = fmt.Sprintf("expecting end <= 600, but found end=%d", r.GetEnd())
		}
		if msg != "" {
			errs.Collect(fmt.Sprintf("[%d]", i), errors.New("Invalid http "+of+" status range: "+msg)) //nolint:staticcheck // Envoy's text
		}
		out = append(out, health.Range{Start: int(r.GetStart()), End: int(r.GetEnd())})
	}
	return out, errs.Err()
}

// eventLogs are the files that take the events of a check, and the fields that name them.
func eventLogs(hc *corev3.HealthCheck) (files []eventFile, err error) {
	var errs config.Errors
	if p := hc.GetEventLogPath(); p != "" { //nolint:staticcheck // deprecated, still read by Envoy
		files = append(files, eventFile{"event_log_path", p})
	}
	for i, l := range hc.GetEventLogger() {
		at := fmt.Sprintf("event_logger[%d]", i)
		sink := &filev3.HealthCheckEventFileSink{}
		if any := l.GetTypedConfig(); !config.Holds(any, sink) {
			errs.Collect("", &config.Error{Path: at, Msg: "not supported yet", Kind: config.Unsupported})
		} else if err := config.Into(any, sink); err != nil {
			errs.Collect(at+".typed_config", err)
		}
		files = append(files, eventFile{at + ".typed_config.event_log_path", sink.GetEventLogPath()})
	}
	return files, errs.Err()
}

type eventFile struct{ field, path string }

// openEventLogs opens the files for the events of a cluster's health checks.
func openEventLogs(cfg *clusterv3.Cluster, d *Deps) (out []health.Log, err error) {
	if len(cfg.GetHealthChecks()) == 0 {
		return nil, nil
	}
	files, err := eventLogs(cfg.GetHealthChecks()[0])
	for _, f := range files {
		at := "health_checks[0]." + f.field
		var l health.Log
		if err == nil && d.EventLog == nil {
			err = notYet(at)
		} else if err == nil {
			l, err = d.EventLog(f.path)
			err = config.At(at, err)
		}
		if err != nil {
			for _, l := range out {
				l.Release()
			}
			return nil, err
		}
		out = append(out, l)
	}
	return out, err
}
