package proxy_protocol //nolint:revive // Envoy's name

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// filter looks at one connection.
type filter struct {
	cfg *config
	cb  network.ListenerCallbacks
}

// OnAccept implements network.ListenerFilter.
func (f *filter) OnAccept(cb network.ListenerCallbacks) network.FilterStatus {
	f.cb = cb
	return network.StopIteration
}

// MaxReadBytes implements network.ListenerFilter.
func (f *filter) MaxReadBytes() int { return maxHeader }

// OnClose implements network.ListenerFilter.
func (f *filter) OnClose() {}

func (f *filter) count(i stats.CounterIndex) { f.cb.Stats().Inc(f.cfg.stats.Counter(i)) }

// OnData implements network.ListenerFilter.
func (f *filter) OnData(b []byte) network.FilterStatus {
	v, sure := version(b)
	if v != 0 && !sure {
		return network.StopIteration
	}
	if v == 0 || !f.cfg.allowed[v] && f.cfg.optional {
		return f.none()
	}
	if !f.cfg.allowed[v] {
		return f.refuse([3]stats.CounterIndex{1: v1Disallowed, 2: v2Disallowed}[v])
	}
	var h header
	var r result
	if v == 1 {
		r = h.parse1(b)
	} else {
		r = h.parse2(b)
	}
	switch r {
	case more:
		return network.StopIteration
	case found:
		f.apply(v, &h)
		return network.Continue
	case endless: // Envoy counts it as if there was none, yet does not let it in
		return f.refuse(notFoundDisallowed)
	}
	return f.refuse([3]stats.CounterIndex{1: v1Error, 2: v2Error}[v])
}

// none is for connections without a header.
func (f *filter) none() network.FilterStatus {
	if f.cfg.optional {
		f.count(notFoundAllowed)
		return network.Continue
	}
	return f.refuse(notFoundDisallowed)
}

func (f *filter) refuse(why stats.CounterIndex) network.FilterStatus {
	f.count(why)
	f.cb.Stats().Inc(f.cfg.legacy)
	f.cb.ContinueListenerFilter(false)
	return network.StopIteration
}

// apply gives the connection what the header says.
func (f *filter) apply(v int, h *header) {
	f.count([3]stats.CounterIndex{1: v1Found, 2: v2Found}[v])
	i := f.cb.Info()
	if h.source.IsValid() {
		if a := network.AddrFrom(h.destination); a != i.Local {
			i.SetLocal(a)
		}
		i.SetRemote(network.AddrFrom(h.source))
	}
	if len(f.cfg.rules) > 0 {
		h.each(func(kind byte, value []byte) {
			for k := range f.cfg.rules {
				if r := &f.cfg.rules[k]; r.tlv == kind {
					i.Metadata().Set(r.namespace, r.key, r.encode(value))
				}
			}
		})
	}
	f.cb.Consume(h.size)
}
