package cluster

import (
	"reflect"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// matchSpace is the metadata namespace that transport_socket_matches look at.
const matchSpace = "envoy.transport_socket_match"

// transports chooses a transport socket by the host's metadata, else by that of its locality: the first match counts. It is
// immutable.
type transports struct {
	matches []transportMatch
	other   pool.TransportFactory // nil: plain bytes
}

type transportMatch struct {
	name    string
	stats   apistats.GroupBase
	match   map[string]any
	factory pool.TransportFactory // nil: plain bytes
}

// matchStats is what each match counts, "cluster.NAME.MATCH.".
var matchStats = apistats.MustTemplate("transport socket match", apistats.Counter(0, "total_match_count"))

// New implements pool.TransportFactory.
func (t *transports) New(w *event.Worker, h *host.Host, alpn []string) (conn.Transport, string) {
	return t.NewNamed(w, h, alpn, "", "")
}

// NewNamed implements pool.Namer.
func (t *transports) NewNamed(w *event.Worker, h *host.Host, alpn []string, sni, san string) (conn.Transport, string) {
	f := t.other
	var place *host.Metadata
	if h.Extra != nil {
		place = h.Extra.LocalityMetadata
	}
	if m := t.find(h.Metadata(), place); m != nil {
		f = m.factory
	}
	if f == nil {
		return nil, ""
	}
	if named, ok := f.(pool.Namer); ok && (sni != "" || san != "") {
		return named.NewNamed(w, h, alpn, sni, san)
	}
	return f.New(w, h, alpn)
}

// Close closes them all.
func (t *transports) Close() {
	for i := range t.matches {
		closeTransport(t.matches[i].factory)
	}
	closeTransport(t.other)
}

// closeTransport lets a factory give back what it has taken: stats, subscriptions to secrets.
func closeTransport(f pool.TransportFactory) {
	if c, ok := f.(interface{ Close() }); ok {
		c.Close()
	}
}

// find returns the match for an endpoint, nil if there is none.
func (t *transports) find(of ...*host.Metadata) *transportMatch {
	for _, md := range of {
		if md == nil {
			continue
		}
		for i := range t.matches {
			if m := &t.matches[i]; m.fits(md.Spaces[matchSpace]) {
				return m
			}
		}
	}
	// A match without conditions fits endpoints without metadata, too.
	for i := range t.matches {
		if m := &t.matches[i]; len(m.match) == 0 {
			return m
		}
	}
	return nil
}

// fits tells whether all that m asks for is there.
func (m *transportMatch) fits(labels map[string]any) bool {
	for k, want := range m.match {
		if got, ok := labels[k]; !ok || !reflect.DeepEqual(got, want) {
			return false
		}
	}
	return true
}

// matched counts which transport sockets endpoints got ("<match>.total_match_count", "default." where there are no matches).
func (c *Cluster) matched(d *Deps, endpoints ...endpoint) {
	t, ok := c.settings.Transport.(*transports)
	for i := range endpoints {
		id := c.settings.Stats.Counter(stats.ClusterDefaultTotalMatchCount)
		if ok {
			var place *host.Metadata
			if x := endpoints[i].extra; x != nil {
				place = x.LocalityMetadata
			}
			if m := t.find(endpoints[i].metadata, place); m != nil {
				id = m.stats.Counter(0)
			}
		}
		d.Store.Main().Inc(id)
	}
}
