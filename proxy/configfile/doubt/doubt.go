// Package doubt finds in a configuration what Envoy takes and nobody means: a route that no request reaches, a cluster that there is
// not, TLS that verifies nobody. None of it is a mistake, so it changes no verdict.
//
// It looks at the file as data, on the caller's goroutine, in a time that is linear in its size, and keeps nothing. It says nothing
// of what it cannot be sure of: what somebody may have meant, or what a control plane may bring, is left alone.
package doubt

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// Of returns what is to be doubted of a file, at most that many, in the order of the file, each with its place. root is the file's
// content with the names of the protobufs, nil if nobody has made it yet (configfile.ProtoNames).
func Of(f *configfile.File, root *configfile.Value, most int) []config.Error {
	if root == nil {
		root = configfile.ProtoNames(f)
	}
	w := walker{most: most, root: root, clusters: map[string]*configfile.Value{}}
	w.prepare(root)
	w.walk(root, "")
	w.settle()
	f.Locate(w.found)
	slices.SortStableFunc(w.found, func(a, b config.Error) int { return cmp.Or(a.Line-b.Line, a.Col-b.Col) })
	return w.found[:min(most, len(w.found))]
}

// The rules: what is looked at: of messages by the end of their @type, and of what stands under a key, wherever it is. Of a list each
// element is looked at.
var (
	byType = map[string]func(*walker, *configfile.Value){
		".http_connection_manager.v3.HttpConnectionManager": (*walker).manager,
		".tcp_proxy.v3.TcpProxy":                            (*walker).tcpProxy,
		".route.v3.Route":                                   (*walker).route, // as the action of a matcher
		".route.v3.RouteList":                               (*walker).routes,
		".aggregate.v3.ClusterConfig":                       (*walker).aggregate,
		".tls.v3.UpstreamTlsContext":                        (*walker).upstreamTLS,
		".tls.v3.DownstreamTlsContext":                      (*walker).downstreamTLS,
		".on_demand.v3.OnDemand":                            (*walker).otherClusters,
	}
	byKey = map[string]func(*walker, *configfile.Value){
		"virtual_hosts":                    (*walker).virtualHost,
		"request_mirror_policies":          (*walker).mirror,
		"envoy_grpc":                       (*walker).grpcService,
		"http_uri":                         (*walker).httpURI,
		"server_uri":                       (*walker).httpURI,
		"odcds":                            (*walker).otherClusters,
		"odcds_config":                     (*walker).otherClusters,
		"on_demand":                        (*walker).otherClusters,
		"early_header_mutation_extensions": (*walker).otherPaths,
		"typed_per_filter_config":          (*walker).perFilter,
		"regex_rewrite":                    (*walker).substitution,
		"host_rewrite_path_regex":          (*walker).substitution,
		"regex_value_rewrite":              (*walker).substitution,
		"range_match":                      (*walker).numberRange,
		"prefix_ranges":                    (*walker).addressRange,
		"source_prefix_ranges":             (*walker).addressRange,
		"direct_source_prefix_ranges":      (*walker).addressRange,
		"cidr_ranges":                      (*walker).addressRange,
		"source_ip":                        (*walker).addressRange,
		"remote_ip":                        (*walker).addressRange,
		"direct_remote_ip":                 (*walker).addressRange,
		"destination_ip":                   (*walker).addressRange,
	}
)

// class is what may make all doubts of a kind void, wherever it stands in the file.
type class uint8

const (
	sure      class = iota
	ofCluster       // a name of a cluster: it may come by CDS
	ofPath          // of what paths look like: they may be changed before routes are chosen
)

// walker goes through a file once.
type walker struct {
	most     int
	found    []config.Error
	classes  []class // of found
	clusters map[string]*configfile.Value
	names    []string // of clusters
	root     *configfile.Value
	filters  map[string]bool // their names, if somebody has asked
	path     []step
	count    [ofPath + 1]int
	void     [ofPath + 1]bool
}

// step is a key, or for "" the index of a list.
type step struct {
	key   string
	index int
}

// prepare collects what the rules ask for.
func (w *walker) prepare(root *configfile.Value) {
	for _, c := range root.At("static_resources").List("clusters") {
		w.clusters[c.Str("name")] = c
		w.names = append(w.names, c.Str("name"))
	}
	if d := root.Get("dynamic_resources"); d != nil {
		w.void[ofCluster] = slices.ContainsFunc(d.Keys, func(k string) bool { return strings.HasPrefix(k, "cds_") })
	}
}

// walk looks at v, which stands under key, and at all below it.
func (w *walker) walk(v *configfile.Value, key string) {
	switch v.Kind {
	case configfile.Map:
		if strings.HasSuffix(v.Str("@type"), ".TypedStruct") {
			return // nobody knows what its names mean
		}
		if do := byKey[key]; do != nil {
			do(w, v)
		}
		if url := v.Str("@type"); url != "" {
			if do := byType[ending(url)]; do != nil {
				do(w, v)
			}
		}
		if key == "clusters" && len(w.path) == 3 && w.path[0].key == "static_resources" {
			w.cluster(v)
		}
		for i, k := range v.Keys {
			w.path = append(w.path, step{key: k})
			if !slices.Contains(foreign, k) {
				w.walk(v.Items[i], k)
			}
			w.path = w.path[:len(w.path)-1]
		}
	case configfile.List:
		for i, x := range v.Items {
			w.path = append(w.path, step{index: i})
			w.walk(x, key)
			w.path = w.path[:len(w.path)-1]
		}
	case configfile.String:
		if v.Text == "envoy.tcp_proxy.cluster" { // filter state that names the cluster of a connection
			w.void[ofCluster] = true
		}
	}
}

// foreign are keys below which names are the user's own.
var foreign = []string{"filter_metadata", "typed_filter_metadata", "node"}

// ending is what of a type's name tells it apart: from the third dot from its end on.
func ending(url string) string {
	at := len(url)
	for range 3 {
		i := strings.LastIndexByte(url[:at], '.')
		if i < 0 {
			return url
		}
		at = i
	}
	return url[at:]
}

// add doubts what stands at a path below the current place: keys, and the numbers of elements.
func (w *walker) add(c class, x config.Error, below ...any) {
	if w.count[c]++; w.count[c] > w.most || w.void[c] {
		return
	}
	var b strings.Builder
	write := func(s step) {
		switch {
		case s.key == "":
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case strings.ContainsAny(s.key, ".[ /"):
			b.WriteString("[" + strconv.Quote(s.key) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	for _, s := range w.path {
		write(s)
	}
	for _, s := range below {
		switch s := s.(type) {
		case string:
			write(step{key: s})
		case int:
			write(step{index: s})
		}
	}
	x.Path, x.Kind = b.String(), config.Doubtful
	w.found, w.classes = append(w.found, x), append(w.classes, c)
}

// settle drops what turned out to be void.
func (w *walker) settle() {
	kept := w.found[:0]
	for i, x := range w.found {
		if !w.void[w.classes[i]] {
			kept = append(kept, x)
		}
	}
	w.found = kept
}

// otherClusters and otherPaths are for what makes doubts void.
func (w *walker) otherClusters(*configfile.Value) { w.void[ofCluster] = true }
func (w *walker) otherPaths(*configfile.Value)    { w.void[ofPath] = true }
