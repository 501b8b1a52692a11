// Package compare tells in what two proxies differ by their admin interfaces: configuration, clusters and their hosts, names and values
// of stats. It is for a shadow run, in which an Envoy and a Dragoman have the same configuration and the same traffic.
//
// It reads and changes nothing. It runs on the caller's goroutine, holds one page of each side at a time, and never decides what a
// difference means.
package compare

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// Options say what to compare.
type Options struct {
	// Ignore leaves out differences whose line ("listener main address", a stat's name) it matches; nil: none.
	Ignore *regexp.Regexp
	// Tolerance is by how many percent two values of a stat may differ, and Slack by how much in any case.
	Tolerance float64
	Slack     uint64
	// Volatile compares the values of stats too that tell of the moment or the process: see Volatile.
	Volatile bool
}

// Side is one of the two proxies.
type Side struct {
	Address string `json:"address"`
	Version string `json:"version"`
	State   string `json:"state"`
	Uptime  string `json:"uptime"`
	// Draining counts the listeners that drain; what they have is in the configuration dump until they are gone.
	Draining uint64 `json:"draining,omitempty"`
}

// Report is what was found. A is the first proxy, B the second one; "only" lists have what the other one lacks.
type Report struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Configuration are the resources of /config_dump: how many were compared, and which differ.
	Resources     int                 `json:"resources"`
	Configuration []configfile.Change `json:"configuration"`
	// Clusters are those of /clusters, with their hosts.
	ClusterCount int                 `json:"cluster_count"`
	Clusters     []configfile.Change `json:"clusters"`
	// Stats.
	StatCount  int      `json:"stat_count"` // in both
	StatsOnlyA []string `json:"stats_only_a"`
	StatsOnlyB []string `json:"stats_only_b"`
	ValueCount int      `json:"value_count"` // compared
	Values     []Value  `json:"values"`

	moved map[string]string // the beginnings of B's stat names of listeners that have another address in A, and what they begin with there
}

// Value is a stat whose values differ.
type Value struct {
	Name string `json:"name"`
	A    uint64 `json:"a"`
	B    uint64 `json:"b"`
}

// Equal tells whether nothing differs.
func (r *Report) Equal() bool {
	return len(r.Configuration)+len(r.Clusters)+len(r.StatsOnlyA)+len(r.StatsOnlyB)+len(r.Values) == 0
}

// Run asks both proxies and compares their answers.
func Run(ctx context.Context, a, b string, o Options) (*Report, error) {
	x, err := dial(a)
	if err != nil {
		return nil, err
	}
	defer x.close()
	y, err := dial(b)
	if err != nil {
		return nil, err
	}
	defer y.close()
	r := &Report{}
	for _, step := range []func(context.Context, *endpoint, *endpoint, Options, *Report) error{sides, configuration, clusters, stats} {
		if err := step(ctx, x, y, o, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// endpoint is an admin interface.
type endpoint struct {
	name string // as it was given
	base string
	c    *http.Client
	t    *http.Transport
}

// maxPage bounds what is read of one page.
const maxPage = 1 << 30

func dial(address string) (*endpoint, error) {
	e := &endpoint{name: address, base: address, t: &http.Transport{}}
	e.c = &http.Client{Transport: e.t, Timeout: 60 * time.Second}
	switch {
	case strings.HasPrefix(address, "/") || strings.HasPrefix(address, "@"):
		e.base = "http://admin"
		e.t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address)
		}
		return e, nil
	case !strings.Contains(address, "://"):
		e.base = "http://" + address
	}
	u, err := url.Parse(e.base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no admin address: write HOST:PORT, http://HOST:PORT, or the path of a Unix socket", address)
	}
	e.base = strings.TrimSuffix(e.base, "/")
	return e, nil
}

func (e *endpoint) close() { e.t.CloseIdleConnections() }

// get reads a page of JSON.
func (e *endpoint) get(ctx context.Context, path string) (*configfile.Value, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+path, nil)
	if err != nil {
		return nil, err
	}
	p, err := e.c.Do(q)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", e.name, err)
	}
	defer p.Body.Close()
	data, err := io.ReadAll(io.LimitReader(p.Body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", e.name, path, err)
	}
	if p.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s: status %d; is that the admin interface of an Envoy or a Dragoman?", e.name, path, p.StatusCode)
	}
	v, err := configfile.Parse(e.name+path, data)
	if err != nil {
		return nil, fmt.Errorf("%w; is that the admin interface of an Envoy or a Dragoman?", err)
	}
	return v, nil
}

// both gets a page of both sides.
func both(ctx context.Context, x, y *endpoint, path string) (a, b *configfile.Value, err error) {
	if a, err = x.get(ctx, path); err == nil {
		b, err = y.get(ctx, path)
	}
	return a, b, err
}

func sides(ctx context.Context, x, y *endpoint, _ Options, r *Report) error {
	a, b, err := both(ctx, x, y, "/server_info")
	if err != nil {
		return err
	}
	side := func(e *endpoint, v *configfile.Value) Side {
		return Side{Address: e.name, Version: v.Str("version"), State: v.Str("state"), Uptime: v.Str("uptime_current_epoch")}
	}
	r.A, r.B = side(x, a), side(y, b)
	return nil
}

// ignored tells whether a difference is left out.
func (o *Options) ignored(line string) bool { return o.Ignore != nil && o.Ignore.MatchString(line) }

// keep filters changes and their fields.
func (o *Options) keep(list []configfile.Change) []configfile.Change {
	out := []configfile.Change{}
	for _, c := range list {
		at := c.Kind + " " + c.Name
		if o.ignored(at) {
			continue
		}
		if c.Op == configfile.Changed && c.What == "" {
			var fields []configfile.Field
			for _, f := range c.Fields {
				if !o.ignored(at + " " + f.Path) {
					fields = append(fields, f)
				}
			}
			if c.Fields = fields; len(fields) == 0 {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}
