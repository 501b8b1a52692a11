package router

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/http"
)

// The functions of this file let several attempts of a request be under way at a time: with hedge_on_per_try_timeout a slow attempt is
// not given up for the next one, and the first good answer wins.

// hedging reads what the route and an internal client say of it.
func (r *Router) hedging(h *http.HeaderMap) {
	r.hedge = r.rt.Hedge
	if h.Has(http.EnvoyHedgeOnPerTryTimeout) {
		switch h.Get(http.EnvoyHedgeOnPerTryTimeout) {
		case "true":
			r.hedge = true
		case "false":
			r.hedge = false
		}
		h.Remove(http.EnvoyHedgeOnPerTryTimeout)
	}
}

// has tells whether a is an attempt under way.
func (r *Router) has(a *attempt) bool {
	return r.try == a || r.final == a || len(r.slow) > 0 && slices.Contains(r.slow, a)
}

// forget takes a dropped attempt out of where it is known.
func (r *Router) forget(a *attempt) {
	if r.try == a {
		r.try = nil
	}
	if r.final == a {
		r.final = nil
	}
	if len(r.slow) > 0 {
		if i := slices.Index(r.slow, a); i >= 0 {
			r.slow = slices.Delete(r.slow, i, i+1)
		}
	}
}

// slowTry: an attempt takes long, and another may follow while it goes on.
func (r *Router) slowTry(a *attempt) {
	if a.retried {
		return
	}
	r.w.Disarm(a.perTry)
	r.w.Disarm(a.idle)
	if m := a.host.Monitor; m != nil {
		code, _ := r.timeoutCode()
		m.PutResponse(code)
	}
	a.blamed = true
	if r.sent || r.retry.on == 0 || !r.schedule(nil) {
		return
	}
	r.timedOut = true
	a.retried = true
	// The next attempt has the request's Info.
	own := r.info.Upstream
	a.up = &own
	m := r.more()
	m.slow = append(m.slow, a)
	r.try = nil
}

// pending tells whether an answer may still come from elsewhere than a, which has failed.
func (r *Router) pending(a *attempt) bool {
	if r.waiting {
		return true
	}
	if t := r.try; t != nil && t != a && !t.gotHeaders {
		return true
	}
	for _, t := range r.slow {
		if t != a && !t.gotHeaders {
			return true
		}
	}
	return false
}

// wins makes a the attempt that answers. The others are given up.
func (r *Router) wins(a *attempt) {
	r.w.Disarm(r.backoff)
	r.waiting = false
	if a.up != &r.info.Upstream {
		r.info.Upstream = *a.up
		a.up = &r.info.Upstream
		r.host = a.host
	}
	if t := r.try; t != nil && t != a {
		t.drop()
	}
	if len(r.slow) > 0 {
		r.dropSlow(a)
		r.slow = r.slow[:0]
	}
}

// dropSlow gives up all slow attempts but one.
func (r *Router) dropSlow(but *attempt) {
	for i := len(r.slow) - 1; i >= 0 && i < len(r.slow); i-- {
		if t := r.slow[i]; t != but {
			t.drop()
		}
	}
}

// lost is a failure of one of several attempts: the client is not told while another may still do better. false: there is no other.
func (r *Router) lost(a *attempt) bool {
	if len(r.slow) == 0 && !r.waiting || !r.pending(a) {
		return false
	}
	a.drop()
	return true
}

// underWay calls f for each attempt whose answer is not over.
func (r *Router) underWay(f func(a *attempt)) {
	for _, a := range r.slow {
		f(a)
	}
	switch {
	case r.try != nil:
		f(r.try)
	case r.final != nil:
		f(r.final)
	}
}
