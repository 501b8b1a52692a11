package health

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// agent is the user-agent of checks.
const agent = "Envoy/HC"

// Range is the status codes from Start up to, and without, End.
type Range struct{ Start, End int }

// HTTP asks for a path and looks at the status.
type HTTP struct {
	// Host is the authority, "" for the cluster's name. An endpoint may have its own.
	Host, Path, Method string
	// Send is the body of the request.
	Send []byte
	// Receive are parts that the first BufferSize bytes of the body must contain, one after the other. 0: all of the body is looked at.
	Receive    [][]byte
	BufferSize int
	// Expected are the good codes, none: 200. Retriable ones are bad, but fail a host only when they come several times.
	Expected, Retriable []Range
	// ServiceName must match x-envoy-upstream-healthchecked-cluster of the answer; nil: nothing must.
	ServiceName interface{ Match(s string) bool }
	// Edit changes the head of the request; nil: nothing does.
	Edit Edit
	// Two speaks HTTP/2.
	Two bool
}

// MaxHTTPAnswer bounds, in bytes, the body that is kept where response_buffer_size sets no limit.
const MaxHTTPAnswer = 1 << 20

// httpJudge is the judge of HTTP.
type httpJudge struct {
	s         *session
	status    int
	degraded  bool
	fails     bool // x-envoy-immediate-health-check-fail
	closes    bool
	wrongName bool
	got       []byte
}

func (j *httpJudge) o() *HTTP  { return j.s.c.Options.HTTP }
func (j *httpJudge) two() bool { return j.o().Two }

// authority is who is asked, as Envoy has it.
func authority(s *session, configured string) string {
	if x := s.h.Extra; x != nil && x.HealthCheckName != "" {
		return x.HealthCheckName
	}
	if configured != "" {
		return configured
	}
	return s.c.Cluster
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

func (j *httpJudge) request(h *http.HeaderMap, secure bool, inf *stream.Info) []byte {
	o := j.o()
	h.AddConst(http.Method, o.Method)
	h.AddConst(http.Authority, authority(j.s, o.Host))
	h.AddConst(http.Path, o.Path)
	h.AddConst(http.Scheme, scheme(secure))
	h.AddConst(http.UserAgent, agent)
	if o.Edit != nil {
		o.Edit(j.s.c.Worker, h, inf)
	}
	return o.Send
}

func (j *httpJudge) head(h *http.HeaderMap, _ bool) bool {
	o := j.o()
	j.got = j.got[:0]
	j.status = h.StatusCode()
	j.degraded = h.Has(http.EnvoyDegraded)
	j.fails = h.Has(http.EnvoyImmediateHealthCheckFail)
	j.wrongName = o.ServiceName != nil && !o.ServiceName.Match(h.Get(http.EnvoyUpstreamHealthCheckedCluster))
	return false
}

func (j *httpJudge) body(b *buffer.Buffer) bool {
	o := j.o()
	if len(o.Receive) == 0 {
		return false
	}
	limit := MaxHTTPAnswer
	if o.BufferSize > 0 {
		limit = o.BufferSize
	}
	for _, p := range b.Slices(nil, limit-len(j.got)) {
		j.got = append(j.got, p[:min(len(p), limit-len(j.got))]...)
	}
	return false
}

func (j *httpJudge) trailers(*http.HeaderMap) {}

func (j *httpJudge) outcome() (v verdict) {
	o, c := j.o(), j.s.c
	v.status = j.status
	if !j.expected() {
		// Only an answer that is bad anyway takes the host out of the count: what Envoy does.
		if j.fails {
			j.s.h.SetFlag(host.ExcludedViaImmediateHCFail, true)
		}
		v.retriable = slices.ContainsFunc(o.Retriable, j.in)
		return v
	}
	if !contains(j.got, o.Receive) {
		return v
	}
	if o.ServiceName != nil && c.verifies() {
		c.inc(stats.HealthCheckVerifyCluster)
		if j.wrongName {
			return v
		}
	}
	v.ok, v.degraded = true, j.degraded
	return v
}

func (j *httpJudge) in(r Range) bool { return j.status >= r.Start && j.status < r.End }

func (j *httpJudge) expected() bool {
	if len(j.o().Expected) == 0 {
		return j.status == 200
	}
	return slices.ContainsFunc(j.o().Expected, j.in)
}

// verifies asks the runtime key for whether the name of the service is looked at.
func (c *Checker) verifies() bool {
	if c.Runtime == nil {
		return true
	}
	n, d := c.Runtime.Fraction("health_check.verify_cluster", 100, 100)
	return n >= d || c.Worker.Rand.Uint64()%d < n
}
