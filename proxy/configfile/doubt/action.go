package doubt

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// action looks at what a route does, r, which stands at a path below the current place.
func (w *walker) action(r *configfile.Value, at []any) {
	a := r.Get("route")
	w.withoutSlash(a, "prefix_rewrite", with(at, "route"))
	w.timeouts(a, with(at, "route"))
	w.hashing(a, with(at, "route", "hash_policy"))
	redirect := r.Get("redirect")
	w.withoutSlash(redirect, "prefix_rewrite", with(at, "redirect"))
	w.withoutSlash(redirect, "path_redirect", with(at, "redirect"))
	if scheme, host, ok := strings.Cut(redirect.Str("host_redirect"), "://"); ok {
		host, _, _ = strings.Cut(host, "/")
		w.add(sure, config.Error{Msg: "clients are sent to a host called '" + redirect.Str("host_redirect") + "': the scheme stands in scheme_redirect ('" + scheme +
			"'), a path in path_redirect", Suggestion: host}, with(at, "redirect", "host_redirect")...)
	}
}

// withoutSlash looks at a field that becomes the begin of a path.
func (w *walker) withoutSlash(v *configfile.Value, field string, at []any) {
	if text := v.Str(field); text != "" && text[0] != '/' {
		w.add(sure, config.Error{Msg: "the path becomes '" + text + "...', and paths begin with '/'"}, with(at, field)...)
	}
}

// defaultTimeout is that of a route which has none.
const defaultTimeout = 15 * time.Second

// timeouts looks at the timeout of each try beside that of all.
func (w *walker) timeouts(a *configfile.Value, at []any) {
	try, ok := duration(a.Get("retry_policy").Str("per_try_timeout"))
	if !ok {
		return
	}
	all, said := defaultTimeout, "15s (the default)"
	switch text := a.Str("timeout"); {
	case a.Get("timeout") == nil && (a.Get("max_stream_duration") != nil || a.Get("max_grpc_timeout") != nil):
		return // what the client says may be longer
	case a.Get("timeout") != nil:
		if all, ok = duration(text); !ok || all == 0 {
			return
		}
		said = text
	}
	if try > all {
		w.add(sure, config.Error{Msg: "per_try_timeout is not used: it is longer than the timeout of all tries together, " + said}, with(at, "retry_policy", "per_try_timeout")...)
	}
}

// duration reads the text of a protobuf's duration, such as 1.5s.
func duration(text string) (time.Duration, bool) {
	digits, ok := strings.CutSuffix(text, "s")
	if !ok || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// hashing looks at a policy of hashes beside the clusters that are to use it.
func (w *walker) hashing(a *configfile.Value, at []any) {
	if a.Get("hash_policy") == nil || w.void[ofCluster] {
		return
	}
	weighted := a.Get("weighted_clusters")
	if weighted.Get("use_hash_policy") != nil {
		return
	}
	names := []string{a.Str("cluster")}
	for i, c := range weighted.List("clusters") {
		if names = append(names, c.Str("name")); i == 0 {
			names = names[1:]
		}
	}
	for _, name := range names {
		if c := w.clusters[name]; c == nil || hashes(c) {
			return
		}
	}
	c := w.clusters[names[0]]
	policy := c.Str("lb_policy")
	if policy == "" {
		policy = "ROUND_ROBIN"
	}
	w.add(sure, config.Error{Msg: "hash_policy is not used: the cluster '" + names[0] + "' has the lb_policy " + policy + ", and of these RING_HASH and MAGLEV use hashes"}, at...)
}

// hashes tells whether a cluster may use hashes to choose hosts.
func hashes(c *configfile.Value) bool {
	for _, key := range []string{"load_balancing_policy", "lb_subset_config", "cluster_type"} {
		if c.Get(key) != nil {
			return true
		}
	}
	return !slices.Contains([]string{"", "ROUND_ROBIN", "LEAST_REQUEST", "RANDOM"}, strings.ToUpper(c.Str("lb_policy")))
}

// substitution is a regular expression with what takes the place of what fits.
func (w *walker) substitution(v *configfile.Value) {
	re, err := syntax.Parse(v.Get("pattern").Str("regex"), syntax.Perl)
	if err != nil {
		return
	}
	text := v.Str("substitution")
	for i := 0; i+1 < len(text); i++ {
		n := int(text[i+1]) - '0'
		switch {
		case n < 0 || n > 9:
		case text[i] == '$' && n > 0 && n <= re.MaxCap():
			w.add(sure, config.Error{Msg: "'$" + strconv.Itoa(n) + "' is taken as it stands: a group is written \\" + strconv.Itoa(n)}, "substitution")
			return
		case text[i] == '\\' && n > re.MaxCap() && (i == 0 || text[i-1] != '\\'):
			w.add(sure, config.Error{Msg: "nothing is replaced: '\\" + strconv.Itoa(n) + "' is a group that the regular expression has not, which has " + strconv.Itoa(re.MaxCap())}, "substitution")
			return
		}
	}
}
