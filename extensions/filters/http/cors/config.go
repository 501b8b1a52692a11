package cors

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

func newPolicy(p *corsv3.CorsPolicy, ctx ext.FactoryContext) (*policy, error) {
	out := &policy{
		methods: p.GetAllowMethods(), headers: p.GetAllowHeaders(), expose: p.GetExposeHeaders(), maxAge: p.GetMaxAge(),
		credentials: flag(p.GetAllowCredentials()), private: flag(p.GetAllowPrivateNetworkAccess()), forward: flag(p.GetForwardNotMatchingPreflights()),
		enabled: newFraction(p.GetFilterEnabled()), shadow: newFraction(p.GetShadowEnabled()),
	}
	for i, m := range p.GetAllowOriginStringMatch() {
		x, err := ctx.StringMatcher(m)
		if err != nil {
			return nil, fmt.Errorf("allow_origin_string_match[%d]: %w", i, err)
		}
		out.origins = append(out.origins, x)
	}
	return out, nil
}

func flag(v *wrapperspb.BoolValue) choice {
	switch {
	case v == nil:
		return unset
	case v.Value:
		return yes
	}
	return no
}

func newFraction(p *corev3.RuntimeFractionalPercent) *fraction {
	if p == nil {
		return nil
	}
	f := &fraction{key: p.GetRuntimeKey(), numerator: uint64(p.GetDefaultValue().GetNumerator()), denominator: 100}
	switch p.GetDefaultValue().GetDenominator() {
	case typev3.FractionalPercent_TEN_THOUSAND:
		f.denominator = 10_000
	case typev3.FractionalPercent_MILLION:
		f.denominator = 1_000_000
	}
	return f
}
