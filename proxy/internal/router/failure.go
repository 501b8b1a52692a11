package router

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// OnPoolFailure is the pool's: there is no stream.
func (a *attempt) OnPoolFailure(reason http.ResetReason, failure string, h *host.Host) {
	a.waiting = false
	a.up.PoolReady = a.r.w.Now()
	if h != nil {
		a.host = h
	} else {
		a.up.Host, a.up.HostName = network.Address{}, "" // the request got to none
	}
	a.up.Failure = failure
	a.r.onReset(a, reason, failure)
}

// OnReset is the codec's: the stream broke.
func (a *attempt) OnReset(reason http.ResetReason, details string) {
	a.closeStream()
	a.enc = nil
	r := a.r
	if a.up.Protocol == http.HTTP2 {
		a.countReset(reason)
	}
	r.onReset(a, reason, details)
}

// countReset counts a stream of HTTP/2 that broke, as Envoy does: what the peer has refused is in no counter, and what breaks the
// protocol is reset by us.
func (a *attempt) countReset(reason http.ResetReason) {
	switch reason {
	case http.ResetRemote:
		a.r.inc(stats.ClusterUpstreamRqRxReset)
	case http.ResetProtocolError:
		a.r.inc(stats.ClusterUpstreamRqTxReset)
	}
}
