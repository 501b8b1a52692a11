package header_to_metadata //nolint:revive // Envoy's name

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// maxValue is the length in bytes that a value must stay below, Envoy's.
const maxValue = 8 << 10

type factory struct{ own *settings }

// New returns the filter of one stream.
func (f *factory) New(network.Dispatcher) filter.Filter { return &keeper{f: f} }

// Sides says that the filter looks at requests and responses.
func (f *factory) Sides() filter.Sides { return filter.Both }

// keeper is one stream's.
type keeper struct {
	filter.PassThrough
	f *factory
	s *settings // the route's or the filter's own; nil: not asked for yet
}

// settings are asked for once: the route may be another one when the response comes.
func (k *keeper) settings() *settings {
	if k.s == nil {
		k.s = k.f.own
		if s, ok := k.CB.RouteConfig().(*settings); ok {
			k.s = s
		}
	}
	return k.s
}

// DecodeHeaders applies the request's rules.
func (k *keeper) DecodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	for i := range k.settings().request {
		k.apply(&k.s.request[i], h, requestRulesProcessed, requestHeaderNotFound, requestMetadataAdded)
	}
	return filter.HeadersContinue
}

// EncodeHeaders applies the response's rules, to a local reply too.
func (k *keeper) EncodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	for i := range k.settings().response {
		k.apply(&k.s.response[i], h, responseRulesProcessed, responseHeaderNotFound, responseMetadataAdded)
	}
	return filter.HeadersContinue
}

func (k *keeper) count(i stats.CounterIndex) {
	if k.s.counts {
		k.CB.Stats().Inc(k.s.stats.Counter(i))
	}
}

// apply applies one rule. A header that is removed goes whether or not its value is of use.
func (k *keeper) apply(r *rule, h *http.HeaderMap, processed, notFound, added stats.CounterIndex) {
	k.count(processed)
	value, has := r.value(h)
	if has && r.remove {
		h.RemoveName(r.header)
	}
	switch {
	case has && r.present != nil:
		p := r.present
		if p.value != "" {
			value = p.value
		} else if p.rewrite != nil {
			if old := value; old != "" {
				if value = p.rewrite.Replace(old); value == "" {
					k.count(regexSubstitutionFailed)
				}
			}
		}
		k.add(p, value, added)
	case !has && r.missing != nil:
		k.count(notFound)
		k.add(r.missing, r.missing.value, added)
	}
}

// value finds what a rule is about: all values of the header, joined, or the cookie.
func (r *rule) value(h *http.HeaderMap) (string, bool) {
	if r.cookie != "" {
		v, _ := h.Cookie(r.cookie)
		return v, v != ""
	}
	v, has := h.GetName(r.header)
	if !has {
		return "", false
	}
	var room [4]string
	if all := h.Values(room[:0], r.header); len(all) > 1 {
		v = strings.Join(all, ",")
	}
	return v, true
}

// add makes an entry of metadata; an empty value makes none.
func (k *keeper) add(p *pair, value string, added stats.CounterIndex) {
	if value == "" {
		return
	}
	if len(value) >= maxValue {
		k.count(headerValueTooLong)
		return
	}
	if p.base64 {
		if value = decode(value); value == "" {
			k.count(base64DecodeFailed)
			return
		}
	}
	v, ok := parse(p.kind, value)
	if !ok {
		return
	}
	k.CB.Info().Metadata().Set(p.space, p.key, v)
	k.count(added)
}
