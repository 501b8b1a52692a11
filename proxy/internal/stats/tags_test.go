package stats_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/google/go-cmp/cmp"
)

func newTagger(t testing.TB, cfg stats.TagConfig) *stats.Tagger {
	t.Helper()
	tg, err := stats.NewTagger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

// TestTagsAsEnvoy prints each name as a metric, by itself and as the plain stat of a group (its last token split off).
func TestTagsAsEnvoy(t *testing.T) {
	tg := newTagger(t, stats.TagConfig{})
	for _, tc := range taggedNames {
		s := stats.NewStore()
		s.Root().Counter(tc.name)
		s.Collect()
		o, err := s.Prometheus(stats.Query{}, tg)
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(string(stats.WriteAll(o)), "\n")
		if want := tc.metric + " 0\n"; got != want {
			t.Errorf("%s\n got %swant %s", tc.name, got, want)
		}
	}
}

func TestTagRules(t *testing.T) {
	type result struct {
		Left string
		Tags []stats.Tag
	}
	re := regexp.MustCompile
	istio := stats.TagRule{Name: "cluster_name", Regex: re(`^cluster\.((.+?(\..+?\.svc\.cluster\.local)?)\.)`)}
	for _, tc := range []struct {
		name string
		cfg  stats.TagConfig
		stat string
		want result
	}{
		{"fixed tags stand before those of the first token and behind those of any name", stats.TagConfig{
			Fixed: []stats.Tag{{"zone", "z1"}}, Rules: []stats.TagRule{istio, {Name: "fx", Fixed: "v1"}}},
			"cluster.outbound|80||a.ns.svc.cluster.local.upstream_rq_200",
			result{"cluster.upstream_rq", []stats.Tag{{"envoy.response_code", "200"}, {"zone", "z1"}, {"fx", "v1"},
				{"envoy.cluster_name", "outbound|80||a"}, {"cluster_name", "outbound|80||a.ns.svc.cluster.local"}}}},
		{"defaults off", stats.TagConfig{NoDefaults: true}, "cluster.a.up", result{"cluster.a.up", nil}},
		{"one default on", stats.TagConfig{NoDefaults: true, Rules: []stats.TagRule{{Name: "envoy.cluster_name"}}}, "cluster.a.upstream_rq_200",
			result{"cluster.upstream_rq_200", []stats.Tag{{"envoy.cluster_name", "a"}}}},
		{"one group is value and cut", stats.TagConfig{Rules: []stats.TagRule{{Name: "any", Regex: re(`upstream_(cx)_`)}}}, "x.upstream_cx_total",
			result{"x.upstream__total", []stats.Tag{{"any", "cx"}}}},
		{"groups without text, nothing left", stats.TagConfig{Rules: []stats.TagRule{{Name: "opt", Regex: re(`upstream_rq(_zz)?_total`)},
			{Name: "two", Regex: re(`(upstream_rq(_qq)?_total)`)}}}, "cluster.h2.upstream_rq_total",
			result{"cluster", []stats.Tag{{"opt", ""}, {"two", ""}, {"envoy.cluster_name", "h2"}}}},
		{"the first rule of a name counts", stats.TagConfig{Rules: []stats.TagRule{{Name: "envoy.cluster_name", Regex: re(`^cluster\.(.*\.)x$`)},
			{Name: "q", Fixed: "1"}, {Name: "q", Fixed: "2"}}}, "cluster.a.b.x",
			result{"cluster.b.x", []stats.Tag{{"q", "1"}, {"envoy.cluster_name", "a"}}}},
		{"rules with and without first token", stats.TagConfig{Rules: []stats.TagRule{{Name: "yy", Regex: re(`^server\.(l)(i)(v)e`)},
			{Name: "zz", Regex: re(`^server\.live()$`)}, {Name: "ww", Regex: re(`^server\.live$`)}, {Name: "vv", Regex: re(`^ser(ve)r\.li.e$`)},
			{Name: "uu", Regex: re(`^server$`)}, {Name: "tt", Regex: re(`^server.(live)$`)}}}, "server.live",
			result{"serr", []stats.Tag{{"vv", "ve"}, {"tt", "live"}, {"yy", "i"}, {"zz", ""}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got result
			got.Left, got.Tags = newTagger(t, tc.cfg).Extract(tc.stat, nil)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTagRuleErrors(t *testing.T) {
	many := make([]stats.Tag, stats.MaxTags/2+1)
	for name, cfg := range map[string]stats.TagConfig{
		"empty name":      {Rules: []stats.TagRule{{Regex: regexp.MustCompile("x")}}},
		"unknown default": {Rules: []stats.TagRule{{Name: "nope"}}},
		"too many fixed":  {Fixed: many},
	} {
		if _, err := stats.NewTagger(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := stats.NewTagger(stats.TagConfig{Fixed: many[1:]}); err != nil {
		t.Errorf("as many fixed tags as are possible: %v", err)
	}
}

// reference does what Envoy does: it tries every regex and every token pattern, in order.
type reference struct {
	tag, regex, tokens, except string
}

const (
	addressRE  = `(?:(?:\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[[a-fA-F_\d]+\])_\d+)`
	transport  = `(?:listener|cluster)\..*?`
	oneTokenRE = `[^\.]+`
)

var references = []reference{
	{tag: "envoy.response_code", regex: `_rq(_(\d{3}))$`},
	{tag: "envoy.response_code_class", regex: `_rq_((\d))xx$`},
	{tag: "envoy.ssl_curve", regex: `^` + transport + `\.ssl\.curves(\.([\w-]+))$`},
	{tag: "envoy.ssl_sigalg", regex: `^` + transport + `\.ssl\.sigalgs(\.([\w-]+))$`},
	{tag: "envoy.ssl_version", regex: `^` + transport + `\.ssl\.versions(\.(TLSv\d\.\d))$`},
	{tag: "envoy.worker_id", regex: `^(?:listener\.(?:` + addressRE + `|` + oneTokenRE +
		`)|server|listener_manager|thread_local_cluster_manager)\.worker_((\d+)\.)`},
	{tag: "envoy.tls_certificate", regex: `^` + transport + `\.ssl\.certificate\.((T)\.).*$`},
	{tag: "envoy.local_http_ratelimit_prefix", tokens: "$.http_local_rate_limit.**"},
	{tag: "envoy.rbac_prefix", tokens: "$.rbac.**"},
	{tag: "envoy.dynamo_partition_id", regex: `^http\.T\.dynamodb\.table\.T\.capacity\.T(\.__partition_id=(\w{7}))$`},
	{tag: "envoy.dynamo_operation", regex: `^http\.T\.dynamodb.(?:operation|table\.T\.capacity)(\.(T))(?:\.|$)`},
	{tag: "envoy.dynamo_table", regex: `^http\.T\.dynamodb.(?:table|error)\.((T)\.)`},
	{tag: "envoy.rds_route_config", regex: `^http\.T\.rds\.(([\w-\./]+)\.)\w+?$`},
	{tag: "envoy.scoped_rds_config", regex: `^http\.T\.scoped_rds\.(([\w-\.]+)\.)\w+?$`},
	{tag: "envoy.rbac_policy_name", regex: `^http\.T\.rbac\.(?:T\.)?policy\.((T)\.)(allowed|shadow_allowed|denied|shadow_denied)$`},
	{tag: "envoy.rbac_http_prefix", regex: `^http\.T\.rbac\.((T)\.).*?`, except: "policy"},
	{tag: "envoy.http_user_agent", tokens: "http.*.user_agent.$.**"},
	{tag: "envoy.fault_downstream_cluster", tokens: "http.*.fault.$.**"},
	{tag: "envoy.ext_authz_prefix", tokens: "http.*.ext_authz.$.**"},
	{tag: "envoy.http_conn_manager_prefix", tokens: "http.$.**"},
	{tag: "cipher_suite", regex: `^cluster\.T\.ssl\.ciphers(\.([\w-]+))$`},
	{tag: "envoy.health_check_name", regex: `^cluster\.T\.health_check(\.name\.(T))\..+`},
	{tag: "envoy.grpc_bridge_method", tokens: "cluster.*.grpc.*.$.**"},
	{tag: "envoy.grpc_bridge_service", tokens: "cluster.*.grpc.$.**"},
	{tag: "envoy.cluster_name", tokens: "cluster.$.**"},
	{tag: "envoy.ext_authz_prefix", tokens: "cluster.*.ext_authz.$.**"},
	{tag: "envoy.ssl_cipher", regex: `^listener\..*?\.ssl\.ciphers(\.([\w-]+))$`},
	{tag: "envoy.http_conn_manager_prefix", regex: `^listener\..*?\.http\.((T)\.)`},
	{tag: "envoy.listener_address", regex: `^listener\.((` + addressRE + `|T)\.)`, except: "admin"},
	{tag: "envoy.virtual_cluster", tokens: "vhost.*.vcluster.$.**"},
	{tag: "envoy.virtual_host", tokens: "vhost.$.**"},
	{tag: "envoy.route", tokens: "vhost.*.route.$.**"},
	{tag: "envoy.mongo_callsite", tokens: "mongo.*.collection.*.callsite.$.query.**"},
	{tag: "envoy.mongo_collection", tokens: "mongo.*.collection.$.**.query.*"},
	{tag: "envoy.mongo_cmd", tokens: "mongo.*.cmd.$.**"},
	{tag: "envoy.mongo_prefix", tokens: "mongo.$.**"},
	{tag: "envoy.tcp_prefix", tokens: "tcp.$.**"},
	{tag: "envoy.udp_prefix", tokens: "udp.$.**"},
	{tag: "envoy.clientssl_prefix", tokens: "auth.clientssl.$.**"},
	{tag: "envoy.ratelimit_prefix", tokens: "ratelimit.$.**"},
	{tag: "envoy.thrift_prefix", tokens: "thrift.$.**"},
	{tag: "envoy.redis_prefix", tokens: "redis.$.**"},
	{tag: "envoy.local_network_ratelimit_prefix", tokens: "local_rate_limit.$.**"},
	{tag: "envoy.local_listener_ratelimit_prefix", tokens: "listener_local_ratelimit.$.**"},
	{tag: "envoy.dns_filter_prefix", tokens: "dns_filter.$.**"},
	{tag: "envoy.connection_limit_prefix", tokens: "connection_limit.$.**"},
	{tag: "envoy.google_grpc_client_prefix", tokens: "grpc.$.**"},
	{tag: "envoy.proxy_protocol_prefix", regex: `^proxy_proto\.((T)\.).+$`, except: "versions"},
	{tag: "envoy.proxy_protocol_version", regex: `^proxy_proto\.((?:T\.)?versions\.v(\d)\.)\w+$`},
	{tag: "envoy.xds_resource_name", regex: `^sds\.((T)\.).+`},
}

var (
	referenceREs = func() map[string]*regexp.Regexp {
		out := make(map[string]*regexp.Regexp)
		for _, r := range references {
			if r.regex != "" {
				re := strings.ReplaceAll(strings.ReplaceAll(r.regex, `(T)`, `(`+oneTokenRE+`)`), `\.T`, `\.`+oneTokenRE)
				re = strings.ReplaceAll(strings.ReplaceAll(re, `|T)`, `|`+oneTokenRE+`)`), `(?:T`, `(?:`+oneTokenRE)
				out[r.regex] = regexp.MustCompile(re)
			}
		}
		return out
	}()
)

func (r reference) find(name string) (cut, value [2]int, ok bool) {
	if r.regex != "" {
		m := referenceREs[r.regex].FindStringSubmatchIndex(name)
		if m == nil || name[m[4]:m[5]] == r.except && r.except != "" {
			return cut, value, false
		}
		return [2]int{m[2], m[3]}, [2]int{m[4], m[5]}, true
	}
	i := matchTokens(strings.Split(r.tokens, "."), strings.Split(name, "."))
	if i < 0 {
		return cut, value, false
	}
	parts := strings.Split(name, ".")
	start := len(strings.Join(parts[:i], "."))
	if i > 0 {
		start++
	}
	end := start + len(parts[i])
	return [2]int{start, end + 1}, [2]int{start, end}, true
}

// matchTokens returns the position of the token that '$' stands for, -1 without a match.
func matchTokens(pattern, name []string) int {
	switch {
	case len(pattern) == 0 && len(name) == 0:
		return 0
	case len(pattern) == 0 || len(name) == 0:
		return -1
	case pattern[0] == "**" && len(pattern) == 1:
		return 0
	case pattern[0] == "**":
		for i := range name {
			if matchTokens(pattern[1:], name[i:]) >= 0 {
				return 0
			}
		}
		return -1
	case pattern[0] != "$" && pattern[0] != "*" && pattern[0] != name[0]:
		return -1
	}
	rest := matchTokens(pattern[1:], name[1:])
	if pattern[0] == "$" || rest < 0 {
		return min(rest, 0)
	}
	if slices.Contains(pattern[1:], "$") {
		return rest + 1
	}
	return 0
}

func extractReference(name string) (string, []stats.Tag) {
	var tags []stats.Tag
	cut := make([]bool, len(name)+1)
	for _, r := range references {
		c, v, ok := r.find(name)
		if !ok {
			continue
		}
		tags = append(tags, stats.Tag{Name: r.tag, Value: name[v[0]:v[1]]})
		for i := c[0]; i < c[1]; i++ {
			cut[i] = true
		}
	}
	var left []byte
	for i := range len(name) {
		if !cut[i] {
			left = append(left, name[i])
		}
	}
	return strings.TrimRight(string(left), "."), tags
}

// fuzzWords are what makes names interesting.
var fuzzWords = strings.Fields(`cluster listener http vhost mongo tcp udp auth clientssl ratelimit thrift redis local_rate_limit
	listener_local_ratelimit dns_filter connection_limit grpc proxy_proto versions v1 v2 sds server listener_manager
	thread_local_cluster_manager worker_0 worker_12 worker_x admin 127 0 1 1_80 [__1]_80 ssl ciphers curves sigalgs TLSv1 TLSv1.3 3 certificate
	TLS_AES-1 health_check name ext_authz rbac policy allowed shadow_denied http_local_rate_limit rds scoped_rds a/b a-b user_agent fault
	dynamodb dynamodbXtable operation table error capacity __partition_id=abcdef7 collection callsite query cmd vcluster route
	upstream_rq_200 upstream_rq_2xx rq_200 x y_z outbound|80||svc upstream_cx_total downstream_rq_time`)

func nameFromBytes(data []byte) string {
	parts := make([]string, 0, len(data))
	for _, b := range data {
		parts = append(parts, fuzzWords[int(b)%len(fuzzWords)])
	}
	return strings.Join(parts, ".")
}

func wordsAsBytes(name string) []byte {
	var out []byte
	for part := range strings.SplitSeq(name, ".") {
		out = append(out, byte(max(0, slices.Index(fuzzWords, part))))
	}
	return out
}

// FuzzTags compares the extraction with the reference, for free text and for names made of the words that rules look for, and the
// page of a group with the one of single stats.
func FuzzTags(f *testing.F) {
	for _, tc := range taggedNames {
		f.Add(tc.name, wordsAsBytes(tc.name), byte(1))
		f.Add(tc.name, wordsAsBytes(tc.name), byte(2))
	}
	tg := newTagger(f, stats.TagConfig{})
	f.Fuzz(func(t *testing.T, free string, words []byte, split byte) {
		if len(words) > 10 || len(free) > 200 || strings.ContainsAny(free, "\n\x00:") {
			return
		}
		for _, name := range []string{free, nameFromBytes(words)} {
			if strings.Contains(name, "..") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Count(name, ".") > 50 {
				continue // an empty token is no name; more than 64 tokens have no tags here
			}
			wantLeft, wantTags := extractReference(name)
			left, tags := tg.Extract(name, nil)
			if left != wantLeft || !slices.Equal(tags, wantTags) {
				t.Fatalf("%q\n got %q %q\nwant %q %q", name, left, tags, wantLeft, wantTags)
			}
			samePage(t, tg, name, int(split))
		}
	})
}
