package configfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Op says what became of something.
type Op string

// The operations.
const (
	Added   Op = "added"
	Removed Op = "removed"
	Changed Op = "changed"
)

// Change is one difference of two configurations, in terms of what they configure.
type Change struct {
	// Kind is listener, route, cluster, secret or bootstrap.
	Kind string `json:"kind"`
	// Name names it: the listener's or the cluster's name; of routes "listener / route configuration / virtual host".
	Name string `json:"name"`
	Op   Op     `json:"op"`
	// What describes what was added or removed, in a few words.
	What   string  `json:"what,omitempty"`
	Fields []Field `json:"fields,omitempty"` // of what changed
}

// Field is a field that differs. Old is "" for one that was added, New for one that was removed.
type Field struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Kinds are the kinds of changes, in the order in which they are shown.
var Kinds = []string{"listener", "route", "cluster", "secret", "bootstrap"}

// Diff compares two configurations. What is written differently and means the same is no difference, as far as both can be decoded;
// if one cannot, because of extensions that this build does not have or of mistakes, their texts are compared.
func Diff(a, b *File) []Change {
	x, y := comparable(a, b)
	d := differ{}
	d.named("listener", x.At("static_resources").List("listeners"), y.At("static_resources").List("listeners"), listenerName, describeListener, withoutRoutes)
	d.routes(x, y)
	d.named("cluster", x.At("static_resources").List("clusters"), y.At("static_resources").List("clusters"), clusterName, describeCluster, nil)
	d.named("secret", x.At("static_resources").List("secrets"), y.At("static_resources").List("secrets"), clusterName, nil, nil)
	for _, k := range keysOf(x, y) {
		if k == "static_resources" {
			continue
		}
		d.one("bootstrap", k, x.Get(k), y.Get(k))
	}
	return d.changes
}

// Fields compares two values of any kind.
func Fields(a, b *Value) []Field { return fields(nil, "", a, b) }

// Lost compares a file with what became of it in another form, and takes nothing for the same that is not: YAML has fewer numbers than
// JSON and the protobufs where any kind of value may stand. Files that cannot be decoded have lost nothing.
func Lost(a, b *File) []Field {
	x, err := canonical(a)
	if err != nil {
		return nil
	}
	y, err := canonical(b)
	if err != nil {
		return nil
	}
	return Fields(x, y)
}

// comparable returns both contents in the same way. A number that YAML does not have is the same as its text in another form, and
// where nobody knows which of them a field has.
func comparable(a, b *File) (x, y *Value) {
	x, y, decoded := inOneWay(a, b)
	if a.Form != b.Form || !decoded {
		x.numbersOrText()
		y.numbersOrText()
	}
	return x, y
}

func inOneWay(a, b *File) (x, y *Value, decoded bool) {
	x, err := canonical(a)
	if err == nil {
		var y *Value
		if y, err = canonical(b); err == nil {
			return x, y, true
		}
	}
	x, y = a.Root.clone(), b.Root.clone()
	snake(x)
	snake(y)
	return x, y, false
}

func canonical(f *File) (*Value, error) {
	b, err := f.Bootstrap()
	if err != nil {
		return nil, err
	}
	return FromMessage(b)
}

func (v *Value) clone() *Value {
	c := *v
	c.Keys = slices.Clone(v.Keys)
	c.Items = make([]*Value, len(v.Items))
	for i, x := range v.Items {
		c.Items[i] = x.clone()
	}
	return &c
}

func keysOf(x, y *Value) []string {
	keys := slices.Clone(x.keys())
	for _, k := range y.keys() {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (v *Value) keys() []string {
	if v == nil || v.Kind != Map {
		return nil
	}
	return v.Keys
}

// differ collects changes.
type differ struct{ changes []Change }

func (d *differ) one(kind, name string, x, y *Value) {
	c := Change{Kind: kind, Name: name}
	switch {
	case equal(x, y):
		return
	case x == nil:
		c.Op, c.What = Added, short(y)
	case y == nil:
		c.Op, c.What = Removed, short(x)
	default:
		c.Op, c.Fields = Changed, fields(nil, "", x, y)
	}
	d.changes = append(d.changes, c)
}

// named compares two lists of things that have names. rest takes out of a thing what is compared elsewhere.
func (d *differ) named(kind string, a, b []*Value, name, describe func(*Value) string, rest func(*Value) *Value) {
	what := func(v *Value) string {
		if describe == nil {
			return ""
		}
		return describe(v)
	}
	for _, p := range align(a, b, name) {
		x, y := p.a, p.b
		switch {
		case y == nil:
			d.changes = append(d.changes, Change{Kind: kind, Name: name(x), Op: Removed, What: what(x)})
			continue
		case x == nil:
			d.changes = append(d.changes, Change{Kind: kind, Name: name(y), Op: Added, What: what(y)})
			continue
		}
		n := name(y)
		if rest != nil {
			x, y = rest(x), rest(y)
		}
		d.one(kind, n, x, y)
	}
}

func clusterName(v *Value) string { return v.Str("name") }

// listenerName is the name of a listener, or its address if it has none.
func listenerName(v *Value) string {
	if n := v.Str("name"); n != "" {
		return n
	}
	return address(v.Get("address"))
}

func describeListener(v *Value) string {
	what := address(v.Get("address"))
	for i, c := range v.List("filter_chains") {
		if i == 0 {
			what += ", " + plural(len(v.List("filter_chains")), "filter chain")
		}
		for _, f := range c.List("filters") {
			if n := f.Str("name"); !strings.Contains(what, n) {
				what += ", " + n
			}
		}
	}
	return what
}

func describeCluster(v *Value) string {
	kind := v.Str("type")
	if kind == "" {
		kind = "STATIC"
	}
	n := 0
	var first string
	for _, e := range v.Get("load_assignment").List("endpoints") {
		for _, h := range e.List("lb_endpoints") {
			if n++; n == 1 {
				first = address(h.At("endpoint", "address"))
			}
		}
	}
	switch {
	case n == 1:
		return kind + ", " + first
	case n > 1:
		return fmt.Sprintf("%s, %s and %d more", kind, first, n-1)
	}
	return kind
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// address prints a core.v3.Address.
func address(v *Value) string {
	if s := v.Get("socket_address"); s != nil {
		port := s.Str("port_value")
		if port == "" {
			port = s.Str("named_port")
		}
		host := s.Str("address")
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return host + ":" + port
	}
	if p := v.At("pipe"); p != nil {
		return p.Str("path")
	}
	if v == nil {
		return ""
	}
	return v.compact()
}
