package configfile

import "strings"

// routeConfig is a route configuration that stands in a listener.
type routeConfig struct {
	name string // listener / route configuration
	v    *Value
}

// routeConfigs finds them in the order of the file.
func routeConfigs(root *Value) (list []routeConfig) {
	for _, l := range root.At("static_resources").List("listeners") {
		eachManager(l, func(m *Value) {
			if rc := m.Get("route_config"); rc != nil {
				name := rc.Str("name")
				if name == "" {
					name = m.Str("stat_prefix")
				}
				list = append(list, routeConfig{listenerName(l) + " / " + name, rc})
			}
		})
	}
	return list
}

// eachManager calls f for the HTTP connection managers of a listener.
func eachManager(l *Value, f func(*Value)) {
	chains := l.List("filter_chains")
	if d := l.Get("default_filter_chain"); d != nil {
		chains = append(chains[:len(chains):len(chains)], d)
	}
	for _, c := range chains {
		for _, x := range c.List("filters") {
			if m := x.Get("typed_config"); m != nil && strings.HasSuffix(m.Str("@type"), ".HttpConnectionManager") {
				f(m)
			}
		}
	}
}

// withoutRoutes returns a copy of a listener whose connection managers lack their routes.
func withoutRoutes(l *Value) *Value {
	l = l.clone()
	eachManager(l, func(m *Value) { *m = *m.Without("route_config") })
	return l
}

// routes compares the route configurations, down to the single route.
func (d *differ) routes(x, y *Value) {
	old, next := map[string]*Value{}, map[string]*Value{}
	a, b := routeConfigs(x), routeConfigs(y)
	for _, r := range a {
		old[r.name] = r.v
	}
	for _, r := range b {
		next[r.name] = r.v
	}
	for _, r := range a {
		if next[r.name] == nil {
			d.changes = append(d.changes, Change{Kind: "route", Name: r.name, Op: Removed, What: describeRoutes(r.v)})
		}
	}
	for _, r := range b {
		o := old[r.name]
		if o == nil {
			d.changes = append(d.changes, Change{Kind: "route", Name: r.name, Op: Added, What: describeRoutes(r.v)})
			continue
		}
		d.one("route", r.name, o.Without("virtual_hosts"), r.v.Without("virtual_hosts"))
		d.hosts(r.name, o.List("virtual_hosts"), r.v.List("virtual_hosts"))
		delete(old, r.name) // of several with one name, the first pair is compared
	}
}

// hosts compares virtual hosts by their names.
func (d *differ) hosts(name string, a, b []*Value) {
	prefix := func(v *Value) string { return name + " / " + v.Str("name") }
	d.named("route", a, b, prefix, describeHost, func(v *Value) *Value { return v.Without("routes") })
	old := map[string]*Value{}
	for _, x := range a {
		old[x.Str("name")] = x
	}
	for _, y := range b {
		if x := old[y.Str("name")]; x != nil {
			d.each(prefix(y), x.List("routes"), y.List("routes"))
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
