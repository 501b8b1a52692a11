package router

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// choose picks a host. Hash policies are asked once.
func (r *Router) choose(isRetry bool) *host.Host {
	if !isRetry {
		hp := r.rt.HashPolicy
		if own := r.policies; own != nil && own.Hash != nil {
			hp = own.Hash
		}
		if hp != nil {
			rq := route.Request{Headers: r.head, Info: r.info}
			r.hash, r.hashed = hp.Hash(&rq)
			if len(rq.SetCookies) > 0 {
				r.more().cookies = rq.SetCookies
			}
		}
	}
	ctx := &r.l.pick
	*ctx = lb.Context{W: r.w, Headers: r.head, Info: r.info, Hash: r.hash, HasHash: r.hashed}
	if p := r.retry.policy; isRetry && p != nil && (p.PreviousHosts || len(p.OmitHost) > 0 || p.PriorityFrequency > 0) {
		if p.PreviousHosts {
			ctx.Exclude = r.tries
		}
		if len(p.OmitHost) > 0 {
			ctx.Reject = p.Omit
		}
		ctx.Attempts = p.HostAttempts
		if p.PriorityFrequency > 0 {
			ctx.Loads = r.prios.loads(r.cluster.Table(), p.PriorityFrequency)
		}
	}
	return r.cluster.Pick(ctx)
}

// remember notes which hosts were tried, if that matters for the retries of a policy.
func (r *Router) remember(h *host.Host) {
	p := r.retry.policy
	if p.PreviousHosts {
		m := r.more()
		m.tries = append(m.tries, h)
	}
	if p.PriorityFrequency > 0 {
		if r.prios == nil {
			r.prios = &priorities{}
		}
		r.prios.tried = append(r.prios.tried, h)
	}
}

func (r *Router) noHost() {
	r.info.Flags.Set(stream.NoHealthyUpstream)
	r.inc(stats.ClusterUpstreamCxNoneHealthy)
	r.chargeLocal(503, false)
	r.reply(503, "no healthy upstream", "no_healthy_upstream")
}

// priorities keeps a request's retries away from the priorities that were tried (envoy.retry_priorities.previous_priorities).
type priorities struct {
	tried []*host.Host
	skip  []bool
	now   lb.Loads
}

// loads returns the shares of the priorities for the next attempt, nil for the ordinary ones. They change after every few attempts.
func (p *priorities) loads(t *lb.Table, every int) *lb.Loads {
	if p == nil || len(p.tried) < every {
		return nil
	}
	if len(p.tried)%every == 0 {
		if n := len(t.Sets); len(p.skip) != n { // hosts have come or gone
			p.skip = slices.Grow(p.skip[:0], n)[:n]
			clear(p.skip)
		}
		for _, h := range p.tried {
			if i := int(h.Priority()); i < len(p.skip) {
				p.skip[i] = true
			}
		}
		if !t.Without(&p.now, p.skip) {
			// All were tried: from the beginning.
			clear(p.skip)
			p.tried = p.tried[:0]
			if !t.Without(&p.now, p.skip) {
				return nil
			}
		}
	}
	return &p.now
}
