// Package local_ratelimit is the network filter that lets connections of its filter chain begin at a rate: those for which its token
// bucket has no token are closed at once.
//
// A filter belongs to one connection on its worker; the bucket is the chain's, shared by all workers by one atomic.
package local_ratelimit //nolint:revive // Envoy's name

import (
	"errors"
	"time"

	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/local_ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.NetworkFilter{
	Info: ext.Info{
		Name:     "envoy.filters.network.local_ratelimit",
		TypeURLs: []string{"envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit"},
		Posture:  ext.RobustToUntrustedDownstream,
		Refused:  []string{"share_key"},
	},
	New: func(m proto.Message, ctx ext.FactoryContext) (func(d network.Dispatcher) network.ReadFilter, error) {
		c, err := newConfig(m.(*limitv3.LocalRateLimit), ctx)
		if err != nil {
			return nil, err
		}
		return func(network.Dispatcher) network.ReadFilter { return &filter{cfg: c} }, nil
	},
}

const limited stats.CounterIndex = 0

var template = stats.MustTemplate("local rate limit network filter", stats.Counter(limited, "rate_limited"))

// config is shared by all connections of a chain.
type config struct {
	stats   stats.GroupBase
	bucket  bucket
	runtime ext.Runtime
	key     string // of the runtime, "": none
	enabled bool   // what it is if there is no such key
}

// minInterval is the shortest fill_interval that Envoy takes.
const minInterval = 50 * time.Millisecond

func newConfig(p *limitv3.LocalRateLimit, ctx ext.FactoryContext) (*config, error) {
	if p.GetShareKey() != "" {
		return nil, errors.New("share_key: not supported yet")
	}
	b := p.GetTokenBucket()
	interval := b.GetFillInterval().AsDuration()
	if interval < minInterval {
		return nil, errors.New("local rate limit token bucket fill timer must be >= 50ms")
	}
	perFill := int64(1)
	if v := b.GetTokensPerFill(); v != nil {
		perFill = int64(v.Value)
	}
	c := &config{runtime: ctx.Runtime(), enabled: true}
	c.bucket.init(int64(b.GetMaxTokens()), max(int64(interval)/max(perFill, 1), 1))
	if e := p.GetRuntimeEnabled(); e != nil {
		c.key = e.GetRuntimeKey()
		if d := e.GetDefaultValue(); d != nil {
			c.enabled = d.GetValue()
		}
	}
	c.stats = ctx.Scope().Scope("local_rate_limit").Scope(p.GetStatPrefix()).Group(template)
	return c, nil
}
