package doubt

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// perFilter is what a route or a virtual host says for filters, by their names. A filter of any HTTP connection manager in the file
// counts, since several may share their routes.
func (w *walker) perFilter(v *configfile.Value) {
	if w.filters == nil {
		w.filters = map[string]bool{}
		collect(w.root, "", w.filters)
	}
	for i, name := range v.Keys {
		x := v.Items[i]
		if w.filters[name] || x.Str("is_optional") == "true" || x.Str("disabled") == "true" { // what is not there need not be disabled
			continue
		}
		w.add(sure, config.Error{Msg: "this is not used: no filter has the name '" + name + "'", Suggestion: w.nearestFilter(name)}, name)
	}
}

// nearestFilter is the filter that name may mean, by their last words: the others are mostly the same. "" if none is like it.
func (w *walker) nearestFilter(name string) string {
	last := func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
	full, words := map[string]string{}, []string{}
	for n := range w.filters {
		if full[last(n)] = max(n, full[last(n)]); last(n) != "" {
			words = append(words, last(n))
		}
	}
	return full[config.Nearest(last(name), words)]
}

// collect gathers the names of extensions and of what stands in http_filters.
func collect(v *configfile.Value, key string, names map[string]bool) {
	if v.Kind == configfile.Map && (key == "http_filters" || slices.Contains(v.Keys, "typed_config") || slices.Contains(v.Keys, "config_discovery")) {
		if name := v.Str("name"); name != "" {
			names[name] = true
		}
	}
	for i, x := range v.Items {
		k := key
		if v.Kind == configfile.Map {
			k = v.Keys[i]
		}
		collect(x, k, names)
	}
}

// addressRange is a range of addresses.
func (w *walker) addressRange(v *configfile.Value) {
	prefix := v.Get("address_prefix")
	if prefix == nil {
		return
	}
	a, err := netip.ParseAddr(prefix.Text)
	if err != nil {
		return
	}
	text := v.Str("prefix_len")
	n, err := strconv.ParseUint(text, 10, 32)
	switch {
	case v.Get("prefix_len") == nil && !a.IsUnspecified():
		w.add(sure, config.Error{Msg: "every address is in this range: without a prefix_len it is 0", Suggestion: "prefix_len: " + strconv.Itoa(a.BitLen())})
	case err == nil && n > uint64(a.BitLen()):
		w.add(sure, config.Error{Msg: "an address of IPv4 has 32 bits: a prefix_len of " + text + " is taken as 32"}, "prefix_len")
	}
}

// numberRange is a range of numbers, whose end is not in it.
func (w *walker) numberRange(v *configfile.Value) {
	start, err1 := strconv.ParseInt(cmp.Or(v.Str("start"), "0"), 10, 64)
	end, err2 := strconv.ParseInt(cmp.Or(v.Str("end"), "0"), 10, 64)
	if err1 == nil && err2 == nil && end <= start {
		w.add(sure, config.Error{Msg: "no number is in this range: the end is not in it, and not above the start"})
	}
}

// versionsOfTLS are in their order; TLS_AUTO is none of them.
var versionsOfTLS = []string{"TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3"}
