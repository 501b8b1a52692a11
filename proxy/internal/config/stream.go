package config

import (
	"errors"
	"fmt"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
)

// Stream reads a bootstrap piece by piece, so that of ten thousand static clusters one message is alive at a time. It
// holds the text, of JSON without a tree of the static clusters and listeners; drop it when it has been read. It is not
// safe for concurrent use.
type Stream struct {
	// Thorough hands items that broke a rule to the callee as well, so that it finds what else is wrong with them, and Skeleton
	// returns what could be read beside its errors.
	Thorough bool

	l     *loader
	whole *bootstrapv3.Bootstrap // the protobuf sources, nil without
}

// Item is one static resource of a Stream.
type Item[T proto.Message] struct {
	Index   int
	Path    string // static_resources.clusters[Index]
	Message T      // belongs to the callee
	Raw     []byte // its serialized form; only valid during the call
	// Broken: errors of it are known already (Stream.Thorough), so that values may be missing or out of range.
	Broken bool
}

// Open reads a bootstrap as Load does, but decodes nothing yet: only mistakes of syntax are found.
func Open(path string, opts Options) (*Stream, error) {
	if path == "" && opts.ConfigYAML == "" {
		return nil, errNoConfig
	}
	s := &Stream{l: newLoader(&bootstrapv3.Bootstrap{}, opts)}
	static := s.l.schema.message((&bootstrapv3.Bootstrap_StaticResources{}).ProtoReflect().Descriptor())
	static.fields["clusters"].skip, static.fields["listeners"].skip = true, true
	s.l.parseJSON = func(name string, data []byte) (*yamlpos.Tree, error) {
		return yamlpos.ParseJSONOutline(name, data, yamlpos.Outline{
			Parents: []string{"static_resources", "staticResources"}, Lists: []string{"clusters", "listeners"},
		})
	}
	if err := s.l.sources(path); err != nil {
		return nil, err
	}
	if s.l.opaque {
		s.whole = &bootstrapv3.Bootstrap{}
		if err := proto.Unmarshal(s.l.wire, s.whole); err != nil {
			return nil, fmt.Errorf("cannot decode %s: %w", path, err)
		}
	}
	return s, nil
}

// LimitRegexes bounds the regular expressions of what is read from now on, see Options.MaxRegexSize.
func (s *Stream) LimitRegexes(most func() uint64) { s.l.opts.MaxRegexSize = most }

// Positions returns the places of the fields.
func (s *Stream) Positions() *Positions { return s.l.pos }

// Skeleton returns the bootstrap without its static clusters and listeners.
func (s *Stream) Skeleton() (*bootstrapv3.Bootstrap, error) {
	read := s.l.errs
	if err := read.Err(); err != nil && !s.Thorough {
		return nil, err
	}
	b := &bootstrapv3.Bootstrap{}
	if err := proto.Unmarshal(s.l.wire, b); err != nil {
		return nil, fmt.Errorf("cannot decode the bootstrap: %w", err)
	}
	if b.StaticResources != nil {
		b.StaticResources.Clusters, b.StaticResources.Listeners = nil, nil
	}
	s.l.check(b, "")
	return b, read.Err()
}

// Clusters decodes and checks the static clusters one by one and hands the good ones to do. Errors of the clusters are
// collected, as are those that do returns if they are an *Error or *Errors; another error ends the reading.
func (s *Stream) Clusters(do func(Item[*clusterv3.Cluster]) error) error {
	var ready []*clusterv3.Cluster
	if s.whole != nil {
		ready = s.whole.GetStaticResources().GetClusters()
	}
	return each(s, "clusters", ready, func() *clusterv3.Cluster { return &clusterv3.Cluster{} }, do)
}

// Listeners is Clusters for the static listeners.
func (s *Stream) Listeners(do func(Item[*listenerv3.Listener]) error) error {
	var ready []*listenerv3.Listener
	if s.whole != nil {
		ready = s.whole.GetStaticResources().GetListeners()
	}
	return each(s, "listeners", ready, func() *listenerv3.Listener { return &listenerv3.Listener{} }, do)
}

func each[T proto.Message](s *Stream, name string, ready []T, make func() T, do func(Item[T]) error) error {
	r := reader[T]{s: s, name: name, errs: &Errors{}, make: make, do: do}
	for _, msg := range ready {
		raw, err := proto.Marshal(msg)
		if err != nil {
			return fmt.Errorf("cannot encode %s: %w", name, err)
		}
		if err := r.use(msg, raw, &Errors{}); err != nil {
			return err
		}
	}
	for _, t := range s.l.pos.trees {
		if err := r.tree(t); err != nil {
			return err
		}
	}
	return r.errs.Err()
}

// reader reads the elements of one list of static resources.
type reader[T proto.Message] struct {
	s     *Stream
	name  string
	index int
	errs  *Errors
	make  func() T
	do    func(Item[T]) error
}

// tree reads the elements that stand in one source.
func (r *reader[T]) tree(t *yamlpos.Tree) error {
	l := r.s.l
	m := l.schema.message(r.make().ProtoReflect().Descriptor())
	e := newEncoder(t, l.schema, &l.opts)
	e.pos, e.notes = l.pos, &l.notes // indices count through all sources
	e.path = []frame{{name: "static_resources", index: -1}, {name: r.name}}
	boot := (&bootstrapv3.Bootstrap{}).ProtoReflect().Descriptor()
	e.around = []nesting{{m: l.schema.message(boot)}, {m: l.schema.message(boot.Fields().ByName("static_resources").Message()), depth: 1}}
	var scratch *yamlpos.Tree
	for n := range staticElements(t, r.name) {
		own := &Errors{}
		e.errs, e.buf, e.path[1].index, e.tree = own, e.buf[:0], r.index, t
		own.given = r.errs.Len()
		if t.Kind(n) == yamlpos.Raw {
			var err error
			if scratch, err = t.Expand(n, scratch); err != nil {
				return syntaxError(err)
			}
			e.tree, n = scratch, scratch.Root()
		}
		if e.tree.Kind(n) != yamlpos.Null {
			e.body(n, m)
		}
		if own.Len() > 0 && !r.s.Thorough {
			r.take(own)
			r.index++
			continue
		}
		msg := r.make()
		if err := proto.Unmarshal(e.buf, msg); err != nil {
			return fmt.Errorf("cannot decode %s: %w", pathString(e.path), err)
		}
		if err := r.use(msg, e.buf, own); err != nil {
			return err
		}
	}
	return nil
}

// use checks one element and hands it on; own are the errors that it has already.
func (r *reader[T]) use(msg T, raw []byte, own *Errors) error {
	l := r.s.l
	it := Item[T]{Index: r.index, Path: fmt.Sprintf("static_resources.%s[%d]", r.name, r.index), Message: msg, Raw: raw}
	r.index++
	l.errs = own
	l.check(msg, it.Path)
	it.Broken = own.Len() > 0
	var err error
	if !it.Broken || r.s.Thorough {
		var also *Errors
		if also, err = asErrors(r.do(it)); also != nil {
			own.after(also, l.opts.maxErrors())
		}
	}
	r.take(own)
	return err
}

func (r *reader[T]) take(own *Errors) {
	for _, x := range own.List {
		r.errs.Add(x, r.s.l.opts.maxErrors())
	}
	r.errs.More += own.More
}

// asErrors returns configuration errors as a list, and others as they are.
func asErrors(err error) (*Errors, error) {
	var one *Error
	var many *Errors
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &many):
		return many, nil
	case errors.As(err, &one):
		return &Errors{List: []*Error{one}}, nil
	}
	return nil, err
}

// staticElements yields the nodes of the elements of static_resources.<name>.
func staticElements(t *yamlpos.Tree, name string) func(yield func(yamlpos.Node) bool) {
	return func(yield func(yamlpos.Node) bool) {
		for _, static := range childOf([]treeNode{{t, t.Root()}}, "static_resources") {
			for _, list := range childOf([]treeNode{static}, name) {
				if t.Kind(list.node) != yamlpos.Null && !yieldElements(t, list.node, yield) {
					return
				}
			}
		}
	}
}

// yieldElements flattens lists in lists, as the encoder does.
func yieldElements(t *yamlpos.Tree, n yamlpos.Node, yield func(yamlpos.Node) bool) bool {
	if t.Kind(n) != yamlpos.Seq {
		return yield(n)
	}
	for c := t.First(n); c < t.End(n); c = t.End(c) {
		if t.Kind(c) == yamlpos.Seq {
			if !yieldElements(t, c, yield) {
				return false
			}
		} else if !yield(c) {
			return false
		}
	}
	return true
}
