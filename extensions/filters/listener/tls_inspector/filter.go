package tls_inspector //nolint:revive // Envoy's name

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// inspector looks at one connection.
type inspector struct {
	cfg *config
	cb  network.ListenerCallbacks
	h   hello
}

// OnAccept implements network.ListenerFilter.
func (f *inspector) OnAccept(cb network.ListenerCallbacks) network.FilterStatus {
	f.cb = cb
	return network.StopIteration
}

// MaxReadBytes implements network.ListenerFilter.
func (f *inspector) MaxReadBytes() int { return f.cfg.max }

// OnClose implements network.ListenerFilter.
func (f *inspector) OnClose() {}

func (f *inspector) count(i stats.CounterIndex) { f.cb.Stats().Inc(f.cfg.stats.Counter(i)) }

// OnData implements network.ListenerFilter.
func (f *inspector) OnData(b []byte) network.FilterStatus {
	v := f.h.parse(b[:min(len(b), f.cfg.max)])
	if v == more && len(b) < f.cfg.max {
		return network.StopIteration
	}
	f.cb.Stats().Record(f.cfg.stats.Histogram(bytesProcessed), uint64(min(len(b), f.cfg.max)))
	if (f.cfg.ja3 || f.cfg.ja4) && f.h.known {
		f.cb.Info().SetHello().Fingerprints = f.h.fingerprints(f.cfg.ja3, f.cfg.ja4)
	}
	switch v {
	case more:
		f.count(tooLarge)
		f.cb.ContinueListenerFilter(false)
		return network.StopIteration
	case isTLS:
		f.found(&f.h)
	default:
		f.count(tlsNotFound)
		if v == malformed && f.cfg.strict {
			f.cb.ContinueListenerFilter(false)
			return network.StopIteration
		}
	}
	return network.Continue
}

func (f *inspector) found(h *hello) {
	i := f.cb.Info().SetHello()
	f.count(tlsFound)
	i.Transport = "tls"
	if len(h.name) > 0 {
		f.count(sniFound)
		i.ServerName = strings.ToLower(string(h.name))
	} else {
		f.count(sniNotFound)
	}
	if h.alpn != nil {
		f.count(alpnFound)
		i.ALPN = h.names()
	} else {
		f.count(alpnNotFound)
	}
}
