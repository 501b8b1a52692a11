package route

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/api/route"
)

// cors keeps the policies of the older fields, the least specific one first, for the CORS filter to find.
func (c *compiler) cors(e *Entry, policies ...*routev3.CorsPolicy) error {
	var levels []map[string]*anypb.Any
	for _, p := range policies {
		if p == nil {
			continue
		}
		a, err := anypb.New(&corsv3.CorsPolicy{
			AllowOriginStringMatch: p.AllowOriginStringMatch, AllowMethods: p.AllowMethods, AllowHeaders: p.AllowHeaders,
			ExposeHeaders: p.ExposeHeaders, MaxAge: p.MaxAge, AllowCredentials: p.AllowCredentials,
			FilterEnabled: p.GetFilterEnabled(), ShadowEnabled: p.ShadowEnabled,
			AllowPrivateNetworkAccess: p.AllowPrivateNetworkAccess, ForwardNotMatchingPreflights: p.ForwardNotMatchingPreflights,
		})
		if err != nil {
			return fmt.Errorf("cors: %w", err)
		}
		levels = append(levels, map[string]*anypb.Any{route.CORS: a})
	}
	if len(levels) == 0 {
		return nil
	}
	return c.filterConfigs(e, levels...)
}
