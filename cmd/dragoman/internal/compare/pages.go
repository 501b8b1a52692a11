package compare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// dumped are the lists of resources in /config_dump: where the resource is in an element, and what it is called here.
var dumped = []struct{ list, inner, kind string }{
	{"static_listeners", "listener", "listener"},
	{"dynamic_listeners", "active_state.listener", "listener"},
	{"static_clusters", "cluster", "cluster"},
	{"dynamic_active_clusters", "cluster", "cluster"},
	{"dynamic_warming_clusters", "cluster", "warming cluster"},
	{"static_route_configs", "route_config", "route"},
	{"dynamic_route_configs", "route_config", "route"},
	{"inline_scoped_route_configs", "scoped_route_configs", "scoped route"},
	{"dynamic_scoped_route_configs", "scoped_route_configs", "scoped route"},
	{"static_secrets", "secret", "secret"},
	{"dynamic_active_secrets", "secret", "secret"},
	{"static_endpoint_configs", "endpoint_config", "endpoints"},
	{"dynamic_endpoint_configs", "endpoint_config", "endpoints"},
}

// resource is one of a dump.
type resource struct {
	kind, name string
	v          *configfile.Value
}

// configuration compares /config_dump.
func configuration(ctx context.Context, x, y *endpoint, o Options, r *Report) error {
	a, b, err := both(ctx, x, y, "/config_dump?include_eds")
	if err != nil {
		return err
	}
	x1, y1 := resources(a), resources(b)
	r.moved = movedListeners(x1, y1)
	list := changes(x1, y1)
	r.Resources = len(x1)
	r.Configuration = o.keep(list)
	return nil
}

// resources takes a dump apart.
func resources(dump *configfile.Value) (out []resource) {
	add := func(kind, name string, v *configfile.Value) { out = append(out, resource{kind, name, v}) }
	for _, section := range dump.List("configs") {
		if boot := section.Get("bootstrap"); boot != nil {
			add("bootstrap", "", plainBootstrap(boot))
		}
		for _, d := range dumped {
			for _, e := range section.List(d.list) {
				v := e.At(strings.Split(d.inner, ".")...)
				name := v.Str("name")
				if name == "" {
					name = e.Str("name")
				}
				if name == "" {
					name = v.Str("cluster_name")
				}
				if v == nil {
					v = &configfile.Value{}
				}
				add(d.kind, name, v)
			}
		}
	}
	return out
}

// plainBootstrap leaves out what differs by nature, and what other sections have too.
func plainBootstrap(b *configfile.Value) *configfile.Value {
	b = b.Without("static_resources")
	if n := b.Get("node"); n != nil {
		b.Set("node", n.Without("extensions", "user_agent_name", "user_agent_version", "user_agent_build_version"))
	}
	return b
}

// changes compares two lists of resources by kind and name. Inline routes may share a name, and those of listeners that drain stay in a
// dump for a while: of those with one name, equal ones belong together first, and then the others in their order.
func changes(a, b []resource) (out []configfile.Change) {
	type key struct{ kind, name string }
	of := map[key][]int{} // indices into b that are free
	for i, y := range b {
		of[key{y.kind, y.name}] = append(of[key{y.kind, y.name}], i)
	}
	partner := make([]int, len(a))
	taken := make([]bool, len(b))
	pair := func(fits func(x, y *configfile.Value) bool) {
		for i, x := range a {
			k := key{x.kind, x.name}
			for n, at := range of[k] {
				if partner[i] < 0 && fits(x.v, b[at].v) {
					partner[i], taken[at] = at, true
					of[k] = slices.Delete(of[k], n, n+1)
					break
				}
			}
		}
	}
	for i := range partner {
		partner[i] = -1
	}
	for i := range a {
		if a[i].kind == "secret" { // before they are paired: the files of both may hold the same
			for j := range b {
				if b[j].kind == "secret" && b[j].name == a[i].name {
					a[i].v, b[j].v = sameSource(a[i].v, b[j].v)
				}
			}
		}
	}
	pair(func(x, y *configfile.Value) bool { return len(configfile.Fields(x, y)) == 0 })
	pair(func(_, _ *configfile.Value) bool { return true })

	seen := map[key]int{}
	label := func(r resource) string {
		k := key{r.kind, r.name}
		if seen[k]++; seen[k] > 1 {
			return fmt.Sprintf("%s (%d)", r.name, seen[k])
		}
		return r.name
	}
	changed := map[int]configfile.Change{}
	for i, x := range a {
		name := label(x)
		if partner[i] < 0 {
			out = append(out, configfile.Change{Kind: x.kind, Name: name, Op: configfile.Removed})
		} else if f := configfile.Fields(x.v, b[partner[i]].v); len(f) > 0 {
			changed[partner[i]] = configfile.Change{Kind: x.kind, Name: name, Op: configfile.Changed, Fields: f}
		}
	}
	for i, y := range b {
		if !taken[i] {
			out = append(out, configfile.Change{Kind: y.kind, Name: label(y), Op: configfile.Added})
		} else if c, ok := changed[i]; ok {
			out = append(out, c)
		}
	}
	return out
}

// sameSource returns two secrets without what cannot be compared: where one proxy names the file that a part came from and the other one
// shows what it holds, which is redacted if it is a key.
func sameSource(x, y *configfile.Value) (*configfile.Value, *configfile.Value) {
	if x == nil || y == nil || x.Kind != y.Kind {
		return x, y
	}
	if x.Kind != configfile.Map {
		if x.Kind != configfile.List || len(x.Items) != len(y.Items) {
			return x, y
		}
		a, b := &configfile.Value{Kind: configfile.List}, &configfile.Value{Kind: configfile.List}
		for i := range x.Items {
			p, q := sameSource(x.Items[i], y.Items[i])
			a.Items, b.Items = append(a.Items, p), append(b.Items, q)
		}
		return a, b
	}
	named := func(v *configfile.Value) bool { return v.Get("filename") != nil }
	shown := func(v *configfile.Value) bool { return v.Get("inline_bytes") != nil || v.Get("inline_string") != nil }
	switch {
	case named(x) && shown(y):
		return x, x
	case shown(x) && named(y):
		return y, y
	}
	a, b := &configfile.Value{Kind: configfile.Map}, &configfile.Value{Kind: configfile.Map}
	for i, k := range x.Keys {
		p, _ := sameSource(x.Items[i], y.Get(k))
		a.Set(k, p)
	}
	for i, k := range y.Keys {
		_, q := sameSource(x.Get(k), y.Items[i])
		b.Set(k, q)
	}
	return a, b
}

// movedListeners finds the listeners that have different addresses in the two proxies, as on one machine they must: their stats are
// named for the address.
func movedListeners(a, b []resource) map[string]string {
	of := map[string]string{}
	for _, x := range a {
		if x.kind == "listener" && x.name != "" {
			of[x.name] = statPrefix(x.v)
		}
	}
	out := map[string]string{}
	for _, y := range b {
		if y.kind != "listener" || y.name == "" {
			continue
		}
		if was, is := of[y.name], statPrefix(y.v); was != "" && is != "" && was != is {
			out[is] = was
		}
	}
	return out
}

// statPrefix is how the names of a listener's stats begin, "" if that does not depend on an IP address.
func statPrefix(l *configfile.Value) string {
	s := l.At("address", "socket_address")
	if s == nil || l.Str("stat_prefix") != "" {
		return ""
	}
	host := s.Str("address")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return "listener." + strings.ReplaceAll(host+":"+s.Str("port_value"), ":", "_") + "."
}

// inPlace renames stats by the beginnings of their names.
func inPlace[T any](stats map[string]T, moved map[string]string) map[string]T {
	if len(moved) == 0 {
		return stats
	}
	out := make(map[string]T, len(stats))
	for name, v := range stats {
		for is, was := range moved {
			if rest, ok := strings.CutPrefix(name, is); ok {
				name = was + rest
				break
			}
		}
		out[name] = v
	}
	return out
}

// clusters compares /clusters: which there are, where they come from, their hosts and how these are.
func clusters(ctx context.Context, x, y *endpoint, o Options, r *Report) error {
	a, b, err := both(ctx, x, y, "/clusters?format=json")
	if err != nil {
		return err
	}
	r.ClusterCount = len(a.List("cluster_statuses"))
	r.Clusters = o.keep(changes(statuses(a), statuses(b)))
	return nil
}

func statuses(page *configfile.Value) (out []resource) {
	for _, c := range page.List("cluster_statuses") {
		v := &configfile.Value{Kind: configfile.Map}
		for _, k := range []string{"added_via_api", "eds_service_name"} {
			if f := c.Get(k); f != nil {
				v.Set(k, f)
			}
		}
		hosts := slices.Clone(c.List("host_statuses"))
		slices.SortFunc(hosts, func(a, b *configfile.Value) int { return cmp.Compare(hostName(a), hostName(b)) })
		all := &configfile.Value{Kind: configfile.Map}
		for _, h := range hosts {
			all.Set(hostName(h), h.Without("stats", "address", "hostname"))
		}
		v.Set("hosts", all)
		out = append(out, resource{"cluster", c.Str("name"), v})
	}
	return out
}

func hostName(h *configfile.Value) string {
	s := h.At("address", "socket_address")
	if s == nil {
		return h.At("address", "pipe").Str("path")
	}
	return s.Str("address") + ":" + s.Str("port_value")
}

// Volatile are stats whose values tell of the moment, of the process or of time, and are no part of what two proxies should agree in.
var Volatile = regexp.MustCompile(`^(server|filesystem|runtime|listener_manager|cluster_manager\.(update_time|cds\.)|main_thread|workers|` +
	`thread_local_cluster_manager|http\.admin|listener\.admin|access_logs)\b|` +
	`(_time(_ms)?|_ms|\.version|\.version_text|_active|_buffered|_time_unix_epoch|watchdog_(mega_)?miss|config_reload\w*|update_(attempt|success|duration))$|\.worker_\d+\.`)

// stats compares /stats: names first, then the values of counters and gauges.
func stats(ctx context.Context, x, y *endpoint, o Options, r *Report) error {
	a, b, err := both(ctx, x, y, "/stats?format=json")
	if err != nil {
		return err
	}
	va, na := values(a)
	vb, nb := values(b)
	vb, nb = inPlace(vb, r.moved), inPlace(nb, r.moved)
	r.A.Draining, r.B.Draining = va["listener_manager.total_listeners_draining"], vb["listener_manager.total_listeners_draining"]
	r.StatsOnlyA, r.StatsOnlyB, r.Values = []string{}, []string{}, []Value{}
	for n := range na {
		switch {
		case nb[n]:
			r.StatCount++
		case !o.ignored(n):
			r.StatsOnlyA = append(r.StatsOnlyA, n)
		}
	}
	for n := range nb {
		if !na[n] && !o.ignored(n) {
			r.StatsOnlyB = append(r.StatsOnlyB, n)
		}
	}
	for n, p := range va {
		q, ok := vb[n]
		if !ok || !o.Volatile && Volatile.MatchString(n) || o.ignored(n) {
			continue
		}
		r.ValueCount++
		if far(p, q, o) {
			r.Values = append(r.Values, Value{n, p, q})
		}
	}
	slices.Sort(r.StatsOnlyA)
	slices.Sort(r.StatsOnlyB)
	slices.SortFunc(r.Values, func(a, b Value) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// far tells whether two values differ by more than they may.
func far(a, b uint64, o Options) bool {
	d := max(a, b) - min(a, b)
	return d > o.Slack && float64(d) > math.Ceil(float64(max(a, b))*o.Tolerance/100)
}

// values reads a page of stats: the values of counters and gauges, and all names, of histograms and texts too.
func values(page *configfile.Value) (map[string]uint64, map[string]bool) {
	out, names := map[string]uint64{}, map[string]bool{}
	for _, s := range page.List("stats") {
		if h := s.Get("histograms"); h != nil {
			for _, q := range h.List("computed_quantiles") {
				names[q.Str("name")] = true
			}
			for _, q := range h.List("details") {
				names[q.Str("name")] = true
			}
			continue
		}
		name := s.Str("name")
		names[name] = true
		if v := s.Get("value"); v != nil && v.Kind == configfile.Number {
			if n, err := strconv.ParseUint(v.Text, 10, 64); err == nil {
				out[name] = n
			}
		}
	}
	delete(names, "")
	return out, names
}
