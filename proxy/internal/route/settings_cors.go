package route

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/api/route"
)

// cors is a policy of the older field as what the CORS filter finds.
func (c *compiler) cors(p *routev3.CorsPolicy) ([]namedConfig, error) {
	if p == nil {
		return nil, nil
	}
	a, err := anypb.New(&corsv3.CorsPolicy{
		AllowOriginStringMatch: p.AllowOriginStringMatch, AllowMethods: p.AllowMethods, AllowHeaders: p.AllowHeaders,
		ExposeHeaders: p.ExposeHeaders, MaxAge: p.MaxAge, AllowCredentials: p.AllowCredentials,
		FilterEnabled: p.GetFilterEnabled(), ShadowEnabled: p.ShadowEnabled,
		AllowPrivateNetworkAccess: p.AllowPrivateNetworkAccess, ForwardNotMatchingPreflights: p.ForwardNotMatchingPreflights,
	})
	if err != nil {
		return nil, err
	}
	x, err := c.filterConfig(route.CORS, a)
	return []namedConfig{x}, err
}
