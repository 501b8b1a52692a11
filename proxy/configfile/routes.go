package configfile

import (
	"strconv"
	"strings"
)

// routeConfig is a route configuration that stands in a listener.
type routeConfig struct {
	listener string
	chain    string // the filter chain that has it, as chainName calls it
	name     string
	v        *Value
}

// shared is what route configurations have in common that take over from each other: most listeners have one.
func (r *routeConfig) shared() string { return r.listener + " / " + r.name }

// own tells them apart where several chains of a listener have one of a name.
func (r *routeConfig) own() string { return r.listener + " / " + r.chain + " / " + r.name }

// routeConfigs finds them in the order of the file.
func routeConfigs(root *Value) (list []routeConfig) {
	for _, l := range root.At("static_resources").List("listeners") {
		eachManager(l, func(chain string, m *Value) {
			if rc := m.Get("route_config"); rc != nil {
				name := rc.Str("name")
				if name == "" {
					name = m.Str("stat_prefix")
				}
				list = append(list, routeConfig{listenerName(l), chain, name, rc})
			}
		})
	}
	return list
}

// routePair is a route configuration before and after, nil where there is none, and the name that it is shown by.
type routePair struct {
	a, b *Value
	name string
}

// pairRoutes finds what belongs together: by listener, chain and name first; what is left by listener and name, for a chain that matches
// something else now. What is gone comes before what is new. The chain is named where the rest does not tell which one it is.
func pairRoutes(a, b []routeConfig) []routePair {
	many := map[string]bool{}
	for _, list := range [][]routeConfig{a, b} {
		seen := map[string]bool{}
		for i := range list {
			k := list[i].shared()
			many[k] = many[k] || seen[k]
			seen[k] = true
		}
	}
	partner := make([]int, len(b))
	for j := range partner {
		partner[j] = -1
	}
	taken := make([]bool, len(a))
	for _, key := range []func(*routeConfig) string{(*routeConfig).own, (*routeConfig).shared} {
		places := map[string][]int{}
		for i := range a {
			if !taken[i] {
				places[key(&a[i])] = append(places[key(&a[i])], i)
			}
		}
		for j := range b {
			if list := places[key(&b[j])]; partner[j] < 0 && len(list) > 0 {
				partner[j], taken[list[0]] = list[0], true
				places[key(&b[j])] = list[1:]
			}
		}
	}
	shown := func(r *routeConfig) string {
		if many[r.shared()] {
			return r.own()
		}
		return r.shared()
	}
	var out []routePair
	for i := range a {
		if !taken[i] {
			out = append(out, routePair{a: a[i].v, name: shown(&a[i])})
		}
	}
	for j := range b {
		p := routePair{b: b[j].v, name: shown(&b[j])}
		if i := partner[j]; i >= 0 {
			p.a = a[i].v
		}
		out = append(out, p)
	}
	return out
}

// chainName calls a filter chain by its name, by what it matches, or else by its place.
func chainName(c *Value, i int) string {
	if n := c.Str("name"); n != "" {
		return n
	}
	m := c.Get("filter_chain_match")
	var names []string
	for _, x := range m.List("server_names") {
		names = append(names, x.Text)
	}
	switch {
	case len(m.keys()) == 0:
		return "filter chain " + strconv.Itoa(i)
	case len(m.keys()) == 1 && len(names) > 0:
		return strings.Join(names, ", ")
	}
	return m.compact()
}

// eachManager calls f for the HTTP connection managers of a listener, with the names of their filter chains.
func eachManager(l *Value, f func(chain string, m *Value)) {
	each := func(chain string, c *Value) {
		for _, x := range c.List("filters") {
			if m := x.Get("typed_config"); m != nil && strings.HasSuffix(m.Str("@type"), ".HttpConnectionManager") {
				f(chain, m)
			}
		}
	}
	for i, c := range l.List("filter_chains") {
		each(chainName(c, i), c)
	}
	if c := l.Get("default_filter_chain"); c != nil {
		each("default filter chain", c)
	}
}

// withoutRoutes returns a copy of a listener whose connection managers lack their routes.
func withoutRoutes(l *Value) *Value {
	l = l.clone()
	eachManager(l, func(_ string, m *Value) { *m = *m.Without("route_config") })
	return l
}

// routes compares the route configurations, down to the single route.
func (d *differ) routes(x, y *Value) {
	for _, p := range pairRoutes(routeConfigs(x), routeConfigs(y)) {
		switch {
		case p.b == nil:
			d.changes = append(d.changes, Change{Kind: "route", Name: p.name, Op: Removed, What: describeRoutes(p.a)})
		case p.a == nil:
			d.changes = append(d.changes, Change{Kind: "route", Name: p.name, Op: Added, What: describeRoutes(p.b)})
		default:
			d.one("route", p.name, p.a.Without("virtual_hosts"), p.b.Without("virtual_hosts"))
			d.hosts(p.name, p.a.List("virtual_hosts"), p.b.List("virtual_hosts"))
		}
	}
}

// hosts compares virtual hosts by their names.
func (d *differ) hosts(name string, a, b []*Value) {
	host := func(v *Value) string { return name + " / " + v.Str("name") }
	d.named("route", a, b, host, describeHost, func(v *Value) *Value { return v.Without("routes") })
	for _, p := range align(a, b, host) {
		if p.a != nil && p.b != nil {
			d.each(host(p.b), p.a.List("routes"), p.b.List("routes"))
		}
	}
}

// each compares the routes of a virtual host. Their order counts: it decides which one is taken.
func (d *differ) each(name string, a, b []*Value) {
	for _, p := range align(a, b, routeID) {
		switch {
		case p.a == nil:
			d.changes = append(d.changes, Change{Kind: "route", Name: name + " / " + routeName(p.b), Op: Added, What: describeRoute(p.b)})
		case p.b == nil:
			d.changes = append(d.changes, Change{Kind: "route", Name: name + " / " + routeName(p.a), Op: Removed, What: describeRoute(p.a)})
		case p.moved && equal(p.a, p.b):
			d.changes = append(d.changes, Change{Kind: "route", Name: name + " / " + routeName(p.b), Op: Changed, What: "its place among the routes"})
		default:
			d.one("route", name+" / "+routeName(p.b), p.a, p.b)
		}
	}
}

func describeRoutes(v *Value) string { return plural(len(v.List("virtual_hosts")), "virtual host") }

func describeHost(v *Value) string {
	var domains []string
	for _, x := range v.List("domains") {
		domains = append(domains, x.Text)
	}
	return strings.Join(domains, ", ") + ": " + plural(len(v.List("routes")), "route")
}

// routeName says what a route matches.
func routeName(v *Value) string {
	m := v.Get("match")
	var parts []string
	for _, k := range m.keys() {
		x := m.Get(k)
		switch k {
		case "prefix", "path", "path_separated_prefix":
			parts = append(parts, k+" "+x.Text)
		case "safe_regex":
			parts = append(parts, "regex "+x.Str("regex"))
		case "headers", "query_parameters":
			for _, h := range m.List(k) {
				parts = append(parts, strings.TrimSuffix(strings.ReplaceAll(k, "_", " "), "s")+" "+h.Str("name"))
			}
		default:
			parts = append(parts, k)
		}
	}
	name := strings.Join(parts, ", ")
	if n := v.Str("name"); n != "" {
		name = n + " (" + name + ")"
	}
	return name
}

// routeID tells routes apart: by their name, or else by what they match.
func routeID(v *Value) string {
	if n := v.Str("name"); n != "" {
		return n
	}
	return v.Get("match").orNull().compact()
}

func (v *Value) orNull() *Value {
	if v == nil {
		return &Value{}
	}
	return v
}

// describeRoute says what a route does.
func describeRoute(v *Value) string {
	if r := v.Get("route"); r != nil {
		switch {
		case r.Str("cluster") != "":
			return "to cluster " + r.Str("cluster")
		case r.Str("cluster_header") != "":
			return "to the cluster that header " + r.Str("cluster_header") + " names"
		case r.Get("weighted_clusters") != nil:
			var list []string
			for _, c := range r.Get("weighted_clusters").List("clusters") {
				list = append(list, c.Str("name")+" "+c.Str("weight"))
			}
			return "to clusters " + strings.Join(list, ", ")
		}
		return "to an upstream"
	}
	if r := v.Get("direct_response"); r != nil {
		return "answer " + r.Str("status")
	}
	if r := v.Get("redirect"); r != nil {
		return "redirect"
	}
	return ""
}
