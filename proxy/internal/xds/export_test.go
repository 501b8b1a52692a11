package xds

import "github.com/dragoman-proxy/dragoman/proxy/internal/config"

// Reading is what a response came to.
type Reading struct {
	Err                error
	Items, Fresh, Told int
	Gone               []string
}

// ReadResponse reads a response where there were resources of some names before.
func ReadResponse(b []byte, url string, delta, wildcard bool, had []string) Reading {
	d := &reader{url: url, delta: delta, wildcard: wildcard, have: map[string]held{}, opts: config.Options{AllowUnknownFields: true, OnUnknownField: func(*config.Error) {}}}
	for _, n := range had {
		d.have[n] = held{hash: 1}
	}
	r := d.read(b)
	return Reading{Err: r.err, Items: len(r.items), Fresh: len(r.fresh), Told: len(r.told), Gone: r.gone}
}
