package route

import (
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// Compile builds a table from a route configuration. Errors carry Envoy's texts.
func Compile(rc *routev3.RouteConfiguration, d Deps) (*Table, error) {
	b, err := NewBuilder(rc, d, nil)
	for more := err == nil; more; {
		more, err = b.Step()
	}
	if err != nil {
		return nil, err
	}
	return b.Table(), nil
}

// Builder builds a table a virtual host at a time, so that the main loop can do other things in between. Virtual hosts that did not
// change are those of an older table: ten thousand routes cost a change what it touches. owner: main loop.
type Builder struct {
	compiler
	t       *Table
	old     *Table // nil: nothing can be taken over
	before  *Table // the older table all the same; nil: there is none
	at      int
	domains domainBuilder
	errs    config.Errors // of all virtual hosts
	bytes   []byte        // reused
}

// compiler is what virtual hosts are compiled with.
type compiler struct {
	Deps
	rc      *routev3.RouteConfiguration
	plugins map[string]proto.Message
	all     sharedLevel // of the route configuration

	expressions map[string]expression  // that were compiled already
	joined      map[joinKey]*Mutations // likewise

	spare *Extras // an empty one

	validate bool
	specific bool // most_specific_header_mutations_wins
}

// formats tells whether rate limit descriptors may be format strings.
func (c *compiler) formats() bool {
	return c.Runtime != nil && c.Runtime.Bool("envoy.reloadable_features.enable_formatter_for_ratelimit_action_descriptor_value", false)
}

// NewBuilder begins a table. old is one that the same Deps built, which this one will replace; nil: none.
func NewBuilder(rc *routev3.RouteConfiguration, d Deps, old *Table) (*Builder, error) {
	b := &Builder{compiler: compiler{Deps: d, rc: rc, validate: d.ValidateDefault, specific: rc.GetMostSpecificHeaderMutationsWins()}}
	if rc.ValidateClusters != nil {
		b.validate = rc.ValidateClusters.Value
	}
	if b.Exists == nil {
		b.validate = false
	}
	// The map grows as it fills: all at once it would be a long step.
	t := &Table{Name: rc.Name, exact: map[string]*VirtualHost{}, IgnorePort: rc.GetIgnorePortInHostMatching(),
		IgnoreParams: rc.IgnorePathParametersInPathMatching, HostHeader: strings.ToLower(rc.VhostHeader)}
	t.MaxDirectBody = 4096
	if rc.MaxDirectResponseBodySizeBytes != nil {
		t.MaxDirectBody = int(rc.MaxDirectResponseBodySizeBytes.Value)
	}
	for _, h := range rc.InternalOnlyHeaders {
		t.InternalOnly = append(t.InternalOnly, strings.ToLower(h))
	}
	if rc.Vhds != nil {
		b.errs.Collect("vhds", errNotYet)
	}
	if len(rc.RouteSpecifiers) > 0 {
		b.errs.Collect("route_specifiers", errNotYet)
	}
	var err error
	b.plugins, err = specifiers(rc.ClusterSpecifierPlugins)
	b.errs.Collect("", err)
	b.all, err = b.shared(rc)
	b.errs.Collect("", err)
	b.t, b.before = t, old
	// Clusters that must exist are looked for anew each time.
	if t.rest = b.restOf(rc); old != nil && old.rest == t.rest && !b.validate {
		b.old = old
	}
	return b, nil
}

// restOf is the hash of all but the virtual hosts, and of what else decides how they are compiled.
func (b *Builder) restOf(rc *routev3.RouteConfiguration) uint64 {
	rest := rc.ProtoReflect().New()
	rc.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Name() != "virtual_hosts" {
			rest.Set(f, v)
		}
		return true
	})
	h := b.hash(rest.Interface())
	if b.formats() {
		h = ^h
	}
	return h
}

// hash returns the hash of a message, 0 if it cannot be told.
func (b *Builder) hash(m proto.Message) uint64 {
	var err error
	if b.bytes, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(b.bytes[:0], m); err != nil {
		return 0
	}
	return max(xxhash.Sum64(b.bytes), 1)
}

// Step builds one virtual host, and tells whether there are more. The errors of all come with the last; then the table is given up.
func (b *Builder) Step() (more bool, err error) {
	if more, err = b.step(); err != nil {
		b.Abandon()
	}
	return more, err
}

// Abandon gives a table up that is not done.
func (b *Builder) Abandon() { b.t.Release() }

func (b *Builder) step() (more bool, err error) {
	if b.at == len(b.rc.VirtualHosts) {
		return false, b.errs.Err()
	}
	vh := b.rc.VirtualHosts[b.at]
	hash := b.hash(vh)
	v := b.same(vh, hash)
	path := fmt.Sprintf("virtual_hosts[%d]", b.at)
	if v == nil {
		if v, err = b.virtualHost(b.t, vh, b.nameOf(vh)); err != nil {
			b.errs.Collect(path, err)
			v = &VirtualHost{} // its domains are looked at all the same
		}
		v.hash = hash
	} else {
		v.hold()
	}
	b.t.held = append(b.t.held, v.held...)
	for i, d := range vh.Domains {
		if err := b.domains.add(b.t, d, v); err != nil {
			b.errs.Collect(fmt.Sprintf("%s.domains[%d]", path, i), err)
		}
	}
	if b.at++; b.at < len(b.rc.VirtualHosts) {
		return true, nil
	}
	return false, b.errs.Err()
}

// same returns the virtual host of the old table that is the same as vh.
func (b *Builder) same(vh *routev3.VirtualHost, hash uint64) *VirtualHost {
	if b.old == nil || hash == 0 {
		return nil
	}
	if v := b.old.byDomain(vh.Domains); v != nil && v.hash == hash {
		return v
	}
	return nil
}

// nameOf returns the name of vh, where possible in the memory of the older table: the streams of each table hold the names of their
// virtual hosts.
func (b *Builder) nameOf(vh *routev3.VirtualHost) string {
	if b.before != nil {
		if v := b.before.byDomain(vh.Domains); v != nil && v.Name == vh.Name {
			return v.Name
		}
	}
	return vh.Name
}

// byDomain returns the virtual host of the first plain one of domains, nil if there is none.
func (t *Table) byDomain(domains []string) *VirtualHost {
	for _, d := range domains {
		if d == "*" {
			return t.star
		}
		if !strings.Contains(d, "*") {
			return t.exact[strings.ToLower(d)]
		}
	}
	return nil
}

// Table returns the table, when Step has said that it is done.
func (b *Builder) Table() *Table {
	t := b.t
	b.before = nil
	t.suffixes, t.prefixes = b.domains.suffixes.Build(), b.domains.prefixes.Build()
	if len(t.exact) == 0 && t.suffixes == nil && t.prefixes == nil {
		t.exact = nil
	}
	return t
}
