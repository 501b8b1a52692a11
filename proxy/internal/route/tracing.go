package route

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// Fraction is N of D.
type Fraction struct{ N, D uint64 }

// Sampling says how many requests are traced: of those whose clients ask for it, of all others, and of both together.
type Sampling struct{ Client, Random, Overall Fraction }

// tracing takes over what a route says about traces.
func tracing(e *Entry, r *routev3.Route) {
	if d := r.Decorator; d != nil {
		e.Decorator, e.DecoratorPropagate = d.Operation, d.Propagate == nil || d.Propagate.Value
	}
	t := r.Tracing
	if t == nil {
		return
	}
	fraction := func(p *typev3.FractionalPercent) Fraction {
		if p == nil {
			return Fraction{100, 100}
		}
		n, d := match.Fraction(p)
		return Fraction{n, d}
	}
	e.Sampling = &Sampling{fraction(t.ClientSampling), fraction(t.RandomSampling), fraction(t.OverallSampling)}
}
