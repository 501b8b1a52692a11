package route

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// RateLimits returns the route's rate_limits.
func (e *Entry) RateLimits() []aroute.RateLimit { return e.rateLimits }

// HostRateLimits returns the virtual host's rate_limits.
func (e *Entry) HostRateLimits() []aroute.RateLimit { return e.hostRateLimits }

// IncludeHostRateLimits tells whether the virtual host's rate_limits apply besides the route's.
func (e *Entry) IncludeHostRateLimits() bool { return e.includeHostRateLimits }

// rateLimit is one entry of rate_limits.
type rateLimit struct {
	stage      uint32
	disableKey string
	onDone     bool
	actions    []rateAction
	override   func(r *aroute.RateLimitRequest) *aroute.Limit
	hits       func(r *aroute.RateLimitRequest) (uint64, bool) // nil: not said
	refill     bool
	headers    *aroute.RateLimitHeaders
}

// rateAction makes an entry of a descriptor. skip: it has none, and the descriptor goes without; neither: the request does not count.
type rateAction func(r *aroute.RateLimitRequest) (e aroute.DescriptorEntry, ok, skip bool)

func (l *rateLimit) Stage() uint32      { return l.stage }
func (l *rateLimit) DisableKey() string { return l.disableKey }
func (l *rateLimit) OnStreamDone() bool { return l.onDone }

// Describe fills d for a request.
func (l *rateLimit) Describe(d *aroute.Descriptor, r *aroute.RateLimitRequest) bool {
	*d = aroute.Descriptor{Entries: d.Entries[:0], Refill: l.refill, Headers: l.headers}
	for _, a := range l.actions {
		e, ok, skip := a(r)
		switch {
		case ok:
			d.Entries = append(d.Entries, e)
		case !skip:
			return false
		}
	}
	if len(d.Entries) == 0 {
		return false
	}
	if l.override != nil {
		d.Override = l.override(r)
	}
	if l.hits != nil {
		n, ok := l.hits(r)
		if !ok {
			return false
		}
		d.Hits, d.HasHits = n, true
	}
	return true
}

// entry is what an action gives.
func entry(key, value string) (aroute.DescriptorEntry, bool, bool) {
	return aroute.DescriptorEntry{Key: key, Value: value}, true, false
}

// absent is what an action gives that has nothing.
func absent(skip bool) (aroute.DescriptorEntry, bool, bool) {
	return aroute.DescriptorEntry{}, false, skip
}

func sourceCluster(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
	return entry("source_cluster", r.LocalCluster)
}

func destinationCluster(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
	name := ""
	if r.Route != nil {
		name = r.Route.Cluster()
	}
	if e, ok := r.Route.(*Entry); ok && e.ClusterHeader != "" {
		name, _ = r.Headers.GetName(e.ClusterHeader)
	}
	return entry("destination_cluster", name)
}

// limitHeader describes a request by a header, all values of which count.
func limitHeader(name, key string, skip bool) rateAction {
	name = strings.ToLower(name)
	if name == "host" {
		name = ":authority"
	}
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		v, ok := joined(r.Headers, name)
		if !ok {
			return absent(skip)
		}
		return entry(key, v)
	}
}

// joined returns all values of a header, with commas between.
func joined(h *http.HeaderMap, name string) (value string, ok bool) {
	id := http.Lookup(name)
	for i := range h.All() {
		f := &h.All()[i]
		if f.ID != id || id == http.None && f.Name != name {
			continue
		}
		if ok {
			value = h.Arena().Concat(value, ",", f.Value)
		} else {
			value, ok = f.Value, true
		}
	}
	return value, ok
}

// clientOf is the client's address.
func clientOf(r *aroute.RateLimitRequest) netip.Addr {
	var a network.Address
	switch {
	case r.Info.Remote.Valid():
		a = r.Info.Remote
	case r.Info.Conn != nil:
		a = r.Info.Conn.Remote
	}
	return a.IP.Addr().Unmap()
}

func remoteAddress(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
	a := clientOf(r)
	if !a.IsValid() {
		return absent(false)
	}
	var b [48]byte
	return entry("remote_address", r.Headers.Arena().Copy(a.AppendTo(b[:0])))
}

// maskedAddress describes a request by the network of its client.
func maskedAddress(bits4, bits6 int) rateAction {
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		a := clientOf(r)
		if !a.IsValid() {
			return absent(false)
		}
		bits := bits6
		if a.Is4() {
			bits = bits4
		}
		p, err := a.WithZone("").Prefix(bits)
		if err != nil {
			return absent(false)
		}
		var b [64]byte
		return entry("masked_remote_address", r.Headers.Arena().Copy(p.AppendTo(b[:0])))
	}
}

// ifAddress describes requests of some clients.
func ifAddress(nets []netip.Prefix, invert bool, then rateAction) rateAction {
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		a := clientOf(r)
		if !a.IsValid() || slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) }) == invert {
			return absent(false)
		}
		return then(r)
	}
}

// ifHeaders describes requests whose headers match, or do not.
func ifHeaders(list []HeaderMatch, expect bool, then rateAction) rateAction {
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		all := true
		for _, m := range list {
			all = all && m.Match(r.Headers)
		}
		if all != expect {
			return absent(false)
		}
		return then(r)
	}
}

// ifParams describes requests whose query parameters match, or do not.
func ifParams(list []paramMatch, expect bool, then rateAction) rateAction {
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		_, query, _ := strings.Cut(r.Headers.Get(http.Path), "?")
		all := true
		for i := range list {
			all = all && list[i].match(query)
		}
		if all != expect {
			return absent(false)
		}
		return then(r)
	}
}

// formatted describes a request by a text; without one, by def.
func formatted(key string, f *format.Format, text, def string) rateAction {
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		v := text
		if f != nil {
			v = r.Headers.Arena().Copy(Evaluate(workerOf(r), f, r.Info))
		}
		if v == "" {
			v = def
		}
		if v == "" {
			return absent(false)
		}
		return entry(key, v)
	}
}

// workerOf is the worker that a request's dispatcher is.
func workerOf(r *aroute.RateLimitRequest) *event.Worker {
	return r.Dispatcher.(interface{ Worker() *event.Worker }).Worker()
}

// byValue describes a request by a text of some metadata.
func byValue(key, def string, skip bool, get func(r *aroute.RateLimitRequest) (any, bool)) rateAction {
	return func(r *aroute.RateLimitRequest) (aroute.DescriptorEntry, bool, bool) {
		v := ""
		if x, ok := get(r); ok {
			v, _ = x.(string)
		}
		if v == "" {
			v = def
		}
		if v == "" {
			return absent(skip)
		}
		return entry(key, v)
	}
}

// maxHits is the greatest number of hits that a request can be.
const maxHits = 1_000_000_000

// formatHits reads the hits of a request from a format.
func formatHits(f *format.Format) func(r *aroute.RateLimitRequest) (uint64, bool) {
	return func(r *aroute.RateLimitRequest) (uint64, bool) {
		n, err := strconv.ParseFloat(string(Evaluate(workerOf(r), f, r.Info)), 64)
		if err != nil || n < 0 || n > maxHits {
			return 0, false
		}
		return uint64(n), true
	}
}
