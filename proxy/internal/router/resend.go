package router

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// resendKey is the guard's: requests are sent again that met a connection which the peer was just closing.
const resendKey = "dragoman.reloadable_features.resend_unacknowledged"

// resend sends a request once more that was lost with a connection which had served others before: the peer gave up what was idle for
// too long while the request was on its way. It needs no retry policy and does not count as a retry, since it is as if the request had
// met a connection that is alive; a policy that retries such failures goes first. RFC 9112, section 9.3.1, and RFC 9110, section 9.2.2,
// say when that is allowed: the request was not sent, or not read (its bytes were answered by a reset and never acknowledged), or
// reading it twice does no harm and none of it was acknowledged. true: another attempt has begun.
func (r *Router) resend(a *attempt, reason http.ResetReason) bool {
	switch {
	case reason != http.ResetConnectionTermination, a.conn == nil, a.gotHeaders, r.resent, r.sent, r.informed:
		return false
	case r.websocket, r.connect, a.chained, a.retried, len(r.slow) > 0, !r.whole(a):
		return false
	}
	switch p, reset := a.conn.Lost(); {
	case p == pool.Unsent:
	case p == pool.Unacknowledged && (reset || idempotent(r.head.Get(http.Method))):
	default:
		return false
	}
	if rt := r.cfg.Runtime; rt != nil && !rt.Bool(resendKey, true) {
		return false
	}
	if r.retry.on != 0 && r.retry.onReset(reason, true) {
		return false // the policy has had its say
	}
	r.resent = true
	r.own(stats.OwnResent)
	a.host.RqError.Add(1)
	a.drop()
	r.attempts++
	r.info.Attempts = int(r.attempts)
	h := r.choose(true)
	if h == nil {
		r.noHost()
		return true
	}
	if r.rt.AttemptsInRequest {
		r.head.SetConst(http.EnvoyAttemptCount, r.number(int(r.attempts)))
	}
	next := r.prepare(h)
	next.waiting = true
	// Not now: the pool is about to end the connection.
	r.w.AtEnd(func() {
		if next.r == r && r.try == next && !next.gone {
			next.startPool(r.cluster.PoolFor(r.w, h, r.priority(), r.info.Protocol, r.names))
		}
	})
	return true
}

// whole tells whether all that there is of the request can be sent again.
func (r *Router) whole(a *attempt) bool {
	if r.keeper != nil {
		return !r.keeper.last
	}
	return r.keepBody || r.info.BytesReceived == 0 && a.waits() == 0
}

// idempotent tells whether a request may be read twice (RFC 9110, section 9.2.2).
func idempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}
