package health_check //nolint:revive // Envoy's name

import (
	"errors"
	"fmt"
	"sort"

	checkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

func newFactory(p *checkv3.HealthCheck, ctx ext.FactoryContext) (*factory, error) {
	f := &factory{ctx: ctx, passThrough: p.GetPassThroughMode().GetValue(), localCluster: ctx.LocalCluster()}
	for i, m := range p.GetHeaders() {
		x, err := ctx.HeaderMatcher(m)
		if err != nil {
			return nil, fmt.Errorf("headers[%d]: %w", i, err)
		}
		f.headers = append(f.headers, x)
	}
	if d := p.GetCacheTime().AsDuration(); d > 0 {
		if !f.passThrough {
			return nil, errors.New("cache_time_ms must not be set when path_through_mode is disabled")
		}
		f.cache = &cache{every: int64(d), start: ctx.Clock().Mono()}
	}
	if f.passThrough {
		return f, nil // clusters are only looked at by a filter that answers by itself
	}
	for name, v := range p.GetClusterMinHealthyPercentages() {
		f.clusters = append(f.clusters, cluster{name, uint64(v.GetValue())})
	}
	sort.Slice(f.clusters, func(i, j int) bool { return f.clusters[i].name < f.clusters[j].name })
	return f, nil
}
