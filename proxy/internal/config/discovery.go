package config

import (
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// Discovery reads files of resources, as path_config_source names them, one resource at a time and again and again: of what has not
// changed since, nothing is decoded. JSON does best, since a resource is known by its bytes before it is read; YAML is read whole,
// and known by what it says. It may be used by one goroutine at a time.
type Discovery struct {
	// Want is the type URL of the resources that are to be read; "": any. Those of another are refused before they are looked into.
	Want string

	opts    Options
	lax     Options // without the field rules
	schema  *schema
	root    *message
	tree    *yamlpos.Tree // reused
	element *yamlpos.Tree // reused
	buf     []byte        // reused
	places  *Positions    // of what was read last
	told    []*Error      // unknown fields of the resource that is being read
}

// Found is one resource of a file.
type Found struct {
	// Index is its place in the file. Hash is that of its bytes.
	Index int
	Hash  uint64
	// Known: the caller knows the hash. The rest is empty.
	Known bool
	// Message is the decoded resource, if the field rules asked for it anyway; else nil.
	Message proto.Message
	// Resource is the resource. Its value belongs to the callee. If there is an Err, it is what could be read of it.
	Resource xdstype.Any
	// Err says what is wrong with it; the other resources are none the worse.
	Err error
}

// NewDiscovery returns a reader.
func NewDiscovery(opts Options) *Discovery {
	opts.Resolver = orGlobal(opts.Resolver)
	s := newSchema()
	d := &Discovery{opts: opts, lax: opts, schema: s, root: s.discoveryResponse()}
	d.lax.SkipValidation = true
	d.root.fields["resources"].skip = true
	if tell := opts.OnUnknownField; tell != nil && opts.AllowUnknownFields {
		d.lax.OnUnknownField = func(x *Error) {
			d.told = append(d.told, x)
			tell(x)
		}
		d.opts.OnUnknownField = d.lax.OnUnknownField
	}
	return d
}

// Read hands the resources of a file to do, in order; the end of name says in which form data are. known tells of hashes that need not
// be read again. It returns the version, or why nothing at all can be read. data may be overwritten afterwards.
func (d *Discovery) Read(name string, data []byte, known func(hash uint64) bool, do func(Found)) (version string, err error) {
	lower := strings.ToLower(name)
	d.places = nil
	switch {
	case strings.HasSuffix(lower, ".pb_text"):
		return "", fmt.Errorf("%s: resource files in text protobuf are not supported; use YAML, JSON or binary protobuf", name)
	case strings.HasSuffix(lower, ".pb"):
		return d.binary(name, data, known, do)
	case strings.HasSuffix(lower, ".yaml"), strings.HasSuffix(lower, ".yml"):
		t, err := yamlpos.ParseYAML(name, data)
		if err != nil {
			return "", syntaxError(err)
		}
		return d.text(t, known, do)
	}
	t, err := yamlpos.ParseJSONOutline(name, data, yamlpos.Outline{Lists: []string{"resources"}, Into: d.tree})
	if err != nil {
		return "", syntaxError(err)
	}
	d.tree = t
	return d.text(t, known, do)
}

// Places are those of the resources that were read last, below resources[i]; nil if they have none. Nothing of them may be asked when
// data is overwritten or the next is read.
func (d *Discovery) Places() *Positions { return d.places }

func (d *Discovery) binary(name string, data []byte, known func(hash uint64) bool, do func(Found)) (string, error) {
	r, err := xdstype.ParseResponse(data)
	if err != nil {
		return "", fmt.Errorf("Unable to parse file %q as a binary protobuf (type %s): %w", name, d.root.name, err) //nolint:staticcheck // Envoy's text
	}
	for i, a := range r.Resources {
		f := Found{Index: i, Hash: xxhash.Sum64(a.Value)}
		if f.Known = known(f.Hash); !f.Known {
			f.Resource = xdstype.Any{TypeURL: a.TypeURL, Value: append([]byte(nil), a.Value...)}
			f.Err = d.check(&f)
		}
		do(f)
	}
	return r.Version, nil
}

// check runs the field rules of a resource that came as bytes.
func (d *Discovery) check(f *Found) error {
	if d.opts.SkipValidation {
		return nil
	}
	a, path := f.Resource, fmt.Sprintf("resources[%d]", f.Index)
	if xdstype.Name(a.TypeURL) == xdstype.Name(xdstype.DeltaResource) {
		r, err := xdstype.ParseResource(a.Value)
		if err != nil || !r.HasAny {
			return nil // who takes it tells
		}
		a, path = r.Any, path+".resource"
	}
	msg, err := unpack(&anypb.Any{TypeUrl: a.TypeURL, Value: a.Value}, d.opts.Resolver)
	if err != nil {
		return &Error{Path: path, Msg: err.Error()}
	}
	return Validate(msg, d.opts.Resolver, path)
}

// text reads a tree.
func (d *Discovery) text(t *yamlpos.Tree, known func(hash uint64) bool, do func(Found)) (string, error) {
	pos := &Positions{trees: []*yamlpos.Tree{t}}
	d.places = pos
	if k := t.Kind(t.Root()); k != yamlpos.Map {
		x := &Error{File: t.File(), Line: 1, Col: 1, Msg: "expected '{', a map of the fields of " + d.root.name, Found: k.String()}
		if t.YAML() && k < yamlpos.Map {
			x.Msg = "Unable to convert YAML as JSON: " + x.Msg
		}
		return "", &Errors{List: []*Error{x}}
	}
	e := newEncoder(t, d.schema, &d.opts)
	e.errs, e.pos, e.buf = &Errors{}, pos, d.buf[:0]
	defer func() { d.buf = e.buf[:0] }()
	e.body(t.Root(), d.root)
	if err := e.errs.Err(); err != nil {
		return "", err
	}
	version, _ := xdstype.StringField(e.buf, 1)
	index := 0
	for _, list := range childOf([]treeNode{{t, t.Root()}}, "resources") {
		switch t.Kind(list.node) {
		case yamlpos.Null:
			continue
		case yamlpos.Seq:
		default:
			return "", &Errors{List: []*Error{pos.Error("resources", Error{Msg: "expected a list of resources", Found: t.Kind(list.node).String()})}}
		}
		for n, end := t.First(list.node), t.End(list.node); n < end; n = t.End(n) {
			do(d.found(e, t, n, index, known))
			index++
		}
	}
	return version, nil
}

// found reads one element of the list.
func (d *Discovery) found(e *encoder, t *yamlpos.Tree, n yamlpos.Node, index int, known func(hash uint64) bool) Found {
	f := Found{Index: index}
	raw := t.RawText(n)
	if raw != nil {
		if f.Hash = xxhash.Sum64(raw); known(f.Hash) {
			f.Known = true
			return f
		}
		var err error
		if d.element, err = t.Expand(n, d.element); err != nil {
			f.Err = syntaxError(err)
			return f
		}
		t, n = d.element, d.element.Root()
	}
	e.errs, e.tree, e.buf, e.path = &Errors{}, t, e.buf[:0], append(e.path[:0], frame{name: "resources", index: index})
	if e.opts = &d.opts; raw == nil {
		e.opts = &d.lax // most of them are known
	}
	e.payload = nil
	if f.Err = d.another(e, n); f.Err != nil {
		return f
	}
	d.told = d.told[:0]
	e.any(n)
	d.blame(e.errs.List)
	if f.Err = e.errs.Err(); f.Err != nil {
		f.Resource = copyAny(e.buf)
		return f
	}
	if raw == nil {
		if f.Hash = xxhash.Sum64(e.buf); known(f.Hash) {
			return Found{Index: index, Hash: f.Hash, Known: true}
		}
	}
	f.Resource, f.Message = copyAny(e.buf), e.payload
	if raw == nil && f.Resource.TypeURL != "" {
		if f.Err = e.pos.Attach("", d.check(&f)); f.Err != nil {
			if many, ok := f.Err.(*Errors); ok {
				d.blame(many.List)
			}
			return f
		}
	}
	if f.Resource.TypeURL == "" {
		f.Err = &Errors{List: []*Error{e.pos.Error(pathString(e.path), Error{Msg: "the resource has no @type"})}}
	}
	return f
}

// blame puts errors about values that are missing to the unknown fields that stand in the same messages, of which it was told: they were
// meant to be these values.
func (d *Discovery) blame(list []*Error) {
	parent := func(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }
	for _, x := range list {
		if x.Kind != BrokenRule || x.Found != "" {
			continue
		}
		for _, u := range d.told {
			if u.Kind == UnknownField && u.Line > 0 && parent(u.Path) == parent(x.Path) {
				x.Line, x.Col, x.Suggestion = u.Line, u.Col, u.Suggestion
				x.Advice = "the unknown field '" + u.Path[strings.LastIndexByte(u.Path, '.')+1:] + "' stands here"
				break
			}
		}
	}
}

// another is the error about a resource of another type than those that are wanted, nil if it is not so.
func (d *Discovery) another(e *encoder, n yamlpos.Node) error {
	if d.Want == "" || e.tree.Kind(n) != yamlpos.Map {
		return nil
	}
	url, ok := e.tree.Child(n, "@type")
	if !ok || e.tree.Kind(url) != yamlpos.String {
		return nil // which is told anyway
	}
	got, want := xdstype.Name(string(e.tree.Text(url))), xdstype.Name(d.Want)
	if got == xdstype.Name(xdstype.DeltaResource) {
		if n, ok = e.tree.Child(n, "resource"); !ok || e.tree.Kind(n) != yamlpos.Map {
			return nil
		}
		if url, ok = e.tree.Child(n, "@type"); !ok || e.tree.Kind(url) != yamlpos.String {
			return nil
		}
		got = xdstype.Name(string(e.tree.Text(url)))
	}
	if got == want {
		return nil
	}
	e.fail(url, Error{Kind: Invalid, Msg: "Unable to unpack as " + want + ": " + shorten(got) + " is another message"})
	return e.errs.Err()
}

// copyAny reads an Any that the encoder has written.
func copyAny(b []byte) (a xdstype.Any) {
	for len(b) > 0 {
		num, _, n := protowire.ConsumeTag(b)
		if n < 0 {
			return a
		}
		v, k := protowire.ConsumeBytes(b[n:])
		if k < 0 {
			return a
		}
		if num == 1 {
			a.TypeURL = string(v)
		} else {
			a.Value = append([]byte(nil), v...)
		}
		b = b[n+k:]
	}
	return a
}
