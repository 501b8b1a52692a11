package configfile

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const typePrefix = "type.googleapis.com/envoy.extensions."

// m makes a map of keys and values in turn; a value is a *Value, a string or an int.
func m(pairs ...any) *Value {
	v := &Value{Kind: Map}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i].(string), value(pairs[i+1]))
	}
	return v
}

func list(items ...any) *Value {
	v := &Value{Kind: List}
	for _, x := range items {
		v.Items = append(v.Items, value(x))
	}
	return v
}

func value(x any) *Value {
	switch x := x.(type) {
	case *Value:
		return x
	case int:
		return &Value{Kind: Number, Text: strconv.Itoa(x)}
	case bool:
		return &Value{Kind: Bool, Text: strconv.FormatBool(x)}
	case string:
		return text(x)
	}
	return &Value{}
}

// typed makes an extension's entry.
func typed(name, typ string, pairs ...any) *Value {
	return m("name", name, "typed_config", m(append([]any{"@type", typePrefix + typ}, pairs...)...))
}

func socketAddress(host, port string) *Value {
	n, _ := strconv.Atoi(port)
	return m("socket_address", m("address", host, "port_value", n))
}

// Expand makes a bootstrap of the short form.
func (s *Short) Expand() (*Value, error) {
	e := expander{s: s}
	if len(s.Listen) == 0 && len(s.TCP) == 0 {
		return nil, fmt.Errorf("nothing to listen on: say where, such as --listen 8080")
	}
	if len(s.Listen) > 0 && len(s.Rules) == 0 {
		return nil, fmt.Errorf("nothing to do with requests: give a route, such as /=http://127.0.0.1:9000")
	}
	if (s.Cert == "") != (s.Key == "") {
		return nil, fmt.Errorf("TLS takes a certificate and its key: one of the two is missing")
	}
	hosts, err := e.hosts()
	if err != nil {
		return nil, err
	}
	listeners := list()
	for i, at := range s.Listen {
		l, err := e.listener(i, at, hosts)
		if err != nil {
			return nil, err
		}
		listeners.Items = append(listeners.Items, l)
	}
	for i, t := range s.TCP {
		l, err := e.tcp(i, t)
		if err != nil {
			return nil, err
		}
		listeners.Items = append(listeners.Items, l)
	}
	root := m()
	if s.Admin != "" {
		host, port, err := hostPort(s.Admin, "127.0.0.1")
		if err != nil {
			return nil, err
		}
		root.Set("admin", m("address", socketAddress(host, port)))
	}
	static := m("listeners", listeners)
	if len(e.clusters) > 0 {
		clusters := list()
		for _, c := range e.clusters {
			clusters.Items = append(clusters.Items, c)
		}
		static.Set("clusters", clusters)
	}
	root.Set("static_resources", static)
	return root, nil
}

// expander makes clusters as rules ask for them; equal ones are shared.
type expander struct {
	s        *Short
	clusters []*Value
	names    map[string]string // of clusters, by their upstreams
	named    map[string]bool   // clusters whose upstreams have TLS and names
}

// hosts makes the virtual hosts, in the order in which the rules name them; the one for all others is the last. A rule without a host
// holds for all of them: behind a host's own rules stand those that these leave something of.
func (e *expander) hosts() (*Value, error) {
	var names []string
	routes := map[string]*Value{}
	for _, r := range e.s.Rules {
		host, match, err := e.match(r)
		if err != nil {
			return nil, err
		}
		if routes[host] == nil {
			names = append(names, host)
			routes[host] = list()
		}
		route := m("match", match)
		if err := e.action(r, route); err != nil {
			return nil, err
		}
		routes[host].Items = append(routes[host].Items, route)
	}
	if i := slices.Index(names, "*"); i >= 0 {
		names = append(slices.Delete(names, i, i+1), "*")
	}
	hosts := list()
	for _, n := range names {
		name, domains := n, list(n)
		if n == "*" {
			name = "all"
		} else {
			domains = list(n, n+":*")
			routes[n].Items = append(routes[n].Items, reached(routes[n].Items, routes["*"])...)
		}
		hosts.Items = append(hosts.Items, m("name", name, "domains", domains, "routes", routes[n]))
	}
	return hosts, nil
}

// reached are the routes for all hosts that a request still comes to behind those of a host.
func reached(own []*Value, all *Value) (list []*Value) {
	if all == nil {
		return nil
	}
	for _, r := range all.Items {
		if !slices.ContainsFunc(own, func(o *Value) bool { return takesAll(o.Get("match"), r.Get("match")) }) {
			list = append(list, r)
		}
	}
	return list
}

// takesAll tells whether a match of a path takes whatever another one does.
func takesAll(m, other *Value) bool {
	path := other.Str("path") + other.Str("prefix")
	if p := m.Get("prefix"); p != nil {
		return strings.HasPrefix(path, p.Text)
	}
	return other.Get("path") != nil && path == m.Str("path")
}

func (e *expander) match(r Rule) (host string, match *Value, err error) {
	i := strings.Index(r.Match, "/")
	if i < 0 {
		return "", nil, fmt.Errorf("match %q: write a path such as /api/, with a host before it if need be: example.com/", r.Match)
	}
	host, path := r.Match[:i], r.Match[i:]
	kind := "prefix"
	if h, ok := strings.CutSuffix(host, "="); ok {
		host, kind = h, "path"
	}
	if host == "" {
		host = "*"
	}
	return host, m(kind, path), nil
}

func (e *expander) action(r Rule, route *Value) error {
	n := 0
	for _, set := range []bool{len(r.To) > 0, r.Redirect != "", r.Respond != ""} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return fmt.Errorf("route %q: say one of to, redirect and respond", r.Match)
	case r.Respond != "":
		status, body, _ := strings.Cut(r.Respond, " ")
		code, err := strconv.Atoi(status)
		if err != nil || code < 200 || code > 599 {
			return fmt.Errorf("route %q: respond takes a status from 200 to 599 and a text: %q", r.Match, r.Respond)
		}
		answer := m("status", code)
		if body != "" {
			answer.Set("body", m("inline_string", strings.TrimSuffix(body, "\n")+"\n"))
		}
		route.Set("direct_response", answer)
	case r.Redirect == "https":
		route.Set("redirect", m("https_redirect", true))
	case r.Redirect != "":
		u, err := url.Parse(r.Redirect)
		if err != nil || u.Host == "" {
			return fmt.Errorf("route %q: redirect takes https, or a URL: %q", r.Match, r.Redirect)
		}
		to := m("scheme_redirect", u.Scheme, "host_redirect", u.Host)
		if u.Path != "" && u.Path != "/" {
			to.Set("path_redirect", text(u.RequestURI()))
		}
		route.Set("redirect", to)
	default:
		name, err := e.cluster(r.To, false)
		if err != nil {
			return err
		}
		to := m("cluster", name)
		if e.named[name] { // who shows a certificate for a name serves that one: not the one that the client asked for
			to.Set("auto_host_rewrite", value(true))
		}
		if r.Timeout != "" {
			to.Set("timeout", text(r.Timeout))
		}
		route.Set("route", to)
	}
	return nil
}

// cluster makes or finds the cluster of some upstreams.
func (e *expander) cluster(to []string, forTCP bool) (string, error) {
	key := strings.Join(to, ",")
	if n := e.names[key]; n != "" {
		return n, nil
	}
	var ups []upstream
	kind := "STATIC"
	for _, t := range to {
		u, err := parseUpstream(strings.TrimSpace(t))
		if err != nil {
			return "", err
		}
		if len(ups) > 0 && u.scheme != ups[0].scheme {
			return "", fmt.Errorf("upstreams %q: those of one route are of one kind", key)
		}
		if !u.isIP() {
			kind = "STRICT_DNS"
		}
		ups = append(ups, u)
	}
	if tcp := ups[0].scheme == "tcp"; tcp != forTCP {
		return "", fmt.Errorf("upstream %q: tcp:// is for TCP listeners, the other kinds are for routes", key)
	}
	name := e.freeName(ups[0])
	hosts := list()
	for _, u := range ups {
		hosts.Items = append(hosts.Items, m("endpoint", m("address", socketAddress(u.host, u.port))))
	}
	c := m("name", name, "type", kind, "connect_timeout", "5s")
	c.Set("load_assignment", m("cluster_name", name, "endpoints", list(m("lb_endpoints", hosts))))
	e.protocol(c, ups)
	if e.names == nil {
		e.names, e.named = map[string]string{}, map[string]bool{}
	}
	e.named[name] = ups[0].hasTLS() && kind == "STRICT_DNS"
	e.names[key] = name
	e.clusters = append(e.clusters, c)
	return name, nil
}

// freeName names a cluster after its first host.
func (e *expander) freeName(u upstream) string {
	base := "upstream_" + u.port
	if !u.isIP() {
		base, _, _ = strings.Cut(u.host, ".")
	}
	name := base
	for i := 2; slices.ContainsFunc(e.clusters, func(c *Value) bool { return c.Str("name") == name }); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	return name
}

// protocol makes a cluster speak what its upstreams' scheme says.
func (e *expander) protocol(c *Value, ups []upstream) {
	u := ups[0]
	if u.scheme == "h2" || u.scheme == "h2c" {
		const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
		c.Set("typed_extension_protocol_options", m(options, m("@type", "type.googleapis.com/"+options,
			"explicit_http_config", m("http2_protocol_options", m()))))
	}
	if u.hasTLS() {
		tls := []any{"common_tls_context", m("validation_context", m("trusted_ca", m("filename", "/etc/ssl/certs/ca-certificates.crt")))}
		switch same := !slices.ContainsFunc(ups, func(x upstream) bool { return x.host != u.host }); {
		case !same: // each is asked for its own certificate
			tls = append([]any{"auto_host_sni", true, "auto_sni_san_validation", true}, tls...)
		case !u.isIP():
			tls = append([]any{"sni", u.host}, tls...)
			tls[3].(*Value).Get("validation_context").Set("match_typed_subject_alt_names",
				list(m("san_type", "DNS", "matcher", m("exact", u.host))))
		}
		c.Set("transport_socket", typed("envoy.transport_sockets.tls", "transport_sockets.tls.v3.UpstreamTlsContext", tls...))
	}
}

func (e *expander) listener(i int, at string, hosts *Value) (*Value, error) {
	host, port, err := hostPort(at, "0.0.0.0")
	if err != nil {
		return nil, err
	}
	name := "http"
	if i > 0 {
		name = fmt.Sprintf("http_%d", i+1)
	}
	manager := []any{"stat_prefix", name}
	if e.s.AccessLog != "" {
		if e.s.AccessLog == "-" {
			manager = append(manager, "access_log", list(typed("envoy.access_loggers.stdout", "access_loggers.stream.v3.StdoutAccessLog")))
		} else {
			manager = append(manager, "access_log", list(typed("envoy.access_loggers.file", "access_loggers.file.v3.FileAccessLog", "path", e.s.AccessLog)))
		}
	}
	manager = append(manager, "use_remote_address", true, "route_config", m("name", name, "virtual_hosts", hosts),
		"http_filters", list(typed("envoy.filters.http.router", "filters.http.router.v3.Router")))
	chain := m("filters", list(typed("envoy.filters.network.http_connection_manager",
		"filters.network.http_connection_manager.v3.HttpConnectionManager", manager...)))
	if e.s.Cert != "" {
		chain.Set("transport_socket", typed("envoy.transport_sockets.tls", "transport_sockets.tls.v3.DownstreamTlsContext",
			"common_tls_context", m("alpn_protocols", list("h2", "http/1.1"), "tls_certificates",
				list(m("certificate_chain", m("filename", e.s.Cert), "private_key", m("filename", e.s.Key))))))
	}
	return m("name", name, "address", socketAddress(host, port), "filter_chains", list(chain)), nil
}

func (e *expander) tcp(i int, t TCP) (*Value, error) {
	host, port, err := hostPort(t.Listen, "0.0.0.0")
	if err != nil {
		return nil, err
	}
	if len(t.To) == 0 {
		return nil, fmt.Errorf("tcp listener %q has no upstream", t.Listen)
	}
	var to []string
	for _, x := range t.To {
		if !strings.Contains(x, "://") {
			x = "tcp://" + x
		}
		to = append(to, x)
	}
	cluster, err := e.cluster(to, true)
	if err != nil {
		return nil, err
	}
	name := "tcp"
	if i > 0 {
		name = fmt.Sprintf("tcp_%d", i+1)
	}
	return m("name", name, "address", socketAddress(host, port), "filter_chains", list(m("filters", list(
		typed("envoy.filters.network.tcp_proxy", "filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix", name, "cluster", cluster))))), nil
}
