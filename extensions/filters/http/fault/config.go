package fault

import (
	"fmt"
	"math"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

// settings are what the filter, or a route, is configured to do. They are immutable.
type settings struct {
	delay *delay
	abort *abort
	limit *limit

	cluster string // only for this upstream cluster
	nodes   map[string]bool
	headers []ext.HeaderMatcher
	// maxActive bounds the faults at a time.
	maxActive uint64
	// byCluster: faults are also counted, and runtime keys asked, by the cluster that a request comes from.
	byCluster bool
	metadata  map[string]any
	keys      keys
}

// fraction is a share of requests.
type fraction struct{ numerator, denominator uint64 }

// delay, abort and limit are the faults. byHeader: the request says how much.
type delay struct {
	share    fraction
	byHeader bool
	fixed    time.Duration
}

type abort struct {
	share    fraction
	byHeader bool
	code     int // 0: none
	grpc     int // -1: none
	body     string
}

type limit struct {
	share     fraction
	byHeader  bool
	kibPerSec uint64
}

// keys are the runtime keys.
type keys struct {
	delayPercent, delayDuration, abortPercent, abortHTTP, abortGRPC, maxActive, limitPercent string
}

func newSettings(p *faultv3.HTTPFault, ctx ext.FactoryContext) (*settings, error) {
	or := func(v, def string) string {
		if v != "" {
			return v
		}
		return def
	}
	s := &settings{
		cluster: p.GetUpstreamCluster(), maxActive: math.MaxUint64, metadata: p.GetFilterMetadata().AsMap(), byCluster: !p.GetDisableDownstreamClusterStats(),
		keys: keys{
			delayPercent:  or(p.GetDelayPercentRuntime(), "fault.http.delay.fixed_delay_percent"),
			delayDuration: or(p.GetDelayDurationRuntime(), "fault.http.delay.fixed_duration_ms"),
			abortPercent:  or(p.GetAbortPercentRuntime(), "fault.http.abort.abort_percent"),
			abortHTTP:     or(p.GetAbortHttpStatusRuntime(), "fault.http.abort.http_status"),
			abortGRPC:     or(p.GetAbortGrpcStatusRuntime(), "fault.http.abort.grpc_status"),
			maxActive:     or(p.GetMaxActiveFaultsRuntime(), "fault.http.max_active_faults"),
			limitPercent:  or(p.GetResponseRateLimitPercentRuntime(), "fault.http.rate_limit.response_percent"),
		},
	}
	if v := p.GetMaxActiveFaults(); v != nil {
		s.maxActive = uint64(v.Value)
	}
	if list := p.GetDownstreamNodes(); len(list) > 0 {
		s.nodes = map[string]bool{}
		for _, n := range list {
			s.nodes[n] = true
		}
	}
	for i, m := range p.GetHeaders() {
		x, err := ctx.HeaderMatcher(m)
		if err != nil {
			return nil, fmt.Errorf("headers[%d]: %w", i, err)
		}
		s.headers = append(s.headers, x)
	}
	s.faults(p)
	return s, nil
}

func (s *settings) faults(p *faultv3.HTTPFault) {
	if d := p.GetDelay(); d != nil {
		_, byHeader := d.FaultDelaySecifier.(*commonv3.FaultDelay_HeaderDelay_)
		s.delay = &delay{share: newFraction(d.GetPercentage()), byHeader: byHeader, fixed: d.GetFixedDelay().AsDuration()}
	}
	if a := p.GetAbort(); a != nil {
		s.abort = &abort{share: newFraction(a.GetPercentage()), grpc: -1, body: "fault filter abort"}
		if b := a.GetResponseBody(); b != "" {
			s.abort.body = b
		}
		switch e := a.ErrorType.(type) {
		case *faultv3.FaultAbort_HttpStatus:
			s.abort.code = int(e.HttpStatus)
		case *faultv3.FaultAbort_GrpcStatus:
			s.abort.grpc = int(e.GrpcStatus)
		case *faultv3.FaultAbort_HeaderAbort_:
			s.abort.byHeader = true
		}
	}
	if l := p.GetResponseRateLimit(); l != nil {
		_, byHeader := l.LimitType.(*commonv3.FaultRateLimit_HeaderLimit_)
		s.limit = &limit{share: newFraction(l.GetPercentage()), byHeader: byHeader, kibPerSec: l.GetFixedLimit().GetLimitKbps()}
	}
}

func newFraction(p *typev3.FractionalPercent) fraction {
	f := fraction{uint64(p.GetNumerator()), 100}
	switch p.GetDenominator() {
	case typev3.FractionalPercent_TEN_THOUSAND:
		f.denominator = 10_000
	case typev3.FractionalPercent_MILLION:
		f.denominator = 1_000_000
	}
	return f
}
