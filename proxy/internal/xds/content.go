package xds

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// entry is one resource of a file. The same entry stays as long as the bytes of the resource do.
type entry struct {
	name, version string
	ttl           time.Duration
	value         []byte        // serialized, for subscriptions that come later
	body          proto.Message // from reading to the end of applying; made of value again when it is needed later
	packed        []byte        // value, compressed, if it is large; lives as long as body
	err           error         // it cannot be read; then it is not among the known
	hash          uint64
	round         uint32 // of the reading that saw it last
	// index is its place in the file at that reading; wrapped: it stands within a Resource there.
	index   int
	wrapped bool
}

// content is what is known of a file. It belongs to whoever reads the file, else to the main loop.
type content struct {
	read    bool // at least once, with success
	version string
	order   []*entry
	byName  map[string]*entry
	known   map[uint64]*entry // by hash: what was read and not refused
	refused map[string]bool   // names that may be in use although they are not among the known
	round   uint32
	bare    bool // the entries have no values
	stamp   stamp
	scratch
	notes *[]*config.Error // where the reader tells of unknown and deprecated fields
}

// stamp tells the states of a file apart; the zero stamp is of none.
type stamp struct {
	changed int64 // ns since 1970
	hash    uint64
}

// scratch is memory for the next reading. It goes when a file has not changed for a while.
type scratch struct {
	spare  []*entry
	buf    bytes.Buffer
	pack   []byte
	reader *config.Discovery
	places *config.Positions // of what was read last; nil: nobody knows them any more
}

// result is what one reading gave.
type result struct {
	err   error    // nothing could be read
	whole bool     // fresh is all that there is
	fresh []*entry // what is new or other than before, also what cannot be read
	gone  []string // names that are no more, sorted
	notes []*config.Error
	same  bool // the file is as it was at the last reading: there is nothing to show
}

// forgetAll makes all of the file fresh the next time.
func (c *content) forgetAll() {
	c.stamp = stamp{}
	for h, e := range c.known {
		c.refused[e.name] = true // it may be gone then
		delete(c.known, h)
	}
}

// reload reads the file again. It changes nothing but the content.
func (x *file) reload() result {
	c, r := &x.content, result{}
	before := c.stamp
	data, err := c.fetch(x.f.Read, x.key.path)
	if err != nil {
		return result{err: err}
	}
	if x.soon && c.stamp == before && before != (stamp{}) {
		return result{same: true}
	}
	c.places = nil // its bytes are gone
	c.round++
	r.whole = len(c.known) == 0
	order := c.spare[:0]
	version, err := c.discovery(x.f.Options, x.key.typeURL, &r).Read(x.key.path, data, func(h uint64) bool { return c.known[h] != nil }, func(f config.Found) {
		e := c.known[f.Hash]
		if !f.Known {
			e = c.decode(&f, x.key.typeURL, x.f.Options.Resolver)
		}
		e.round, e.index = c.round, f.Index
		order = append(order, e)
	})
	if err != nil {
		return result{err: err, notes: r.notes}
	}
	c.order, c.spare = order, c.order
	c.places = c.reader.Places()
	c.version, c.read = version, true
	c.name(&r, x.key.typeURL)
	c.compare(&r)
	return r
}

// fetch reads the file. The bytes are good until the next time.
func (c *content) fetch(read func(string) ([]byte, error), path string) ([]byte, error) {
	if read != nil {
		return read(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("unable to read file: %s: %w", path, err)
	}
	defer f.Close()
	b := &c.buf
	b.Reset()
	c.stamp = stamp{}
	i, err := f.Stat()
	if err == nil {
		b.Grow(int(min(i.Size(), yamlpos.MaxSource)) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(f, yamlpos.MaxSource+1)); err != nil {
		return nil, fmt.Errorf("unable to read file: %s: %w", path, err)
	}
	if err == nil {
		c.stamp = stamp{i.ModTime().UnixNano(), xxhash.Sum64(b.Bytes())}
	}
	return b.Bytes(), nil
}

// discovery returns the reader of the file's form.
func (c *content) discovery(opts config.Options, typeURL string, r *result) *config.Discovery {
	c.notes = &r.notes
	if c.reader == nil {
		if opts.OnUnknownField != nil {
			opts.OnUnknownField = func(e *config.Error) { *c.notes = append(*c.notes, e) }
		}
		if opts.OnDeprecated != nil {
			opts.OnDeprecated = func(e *config.Error, said string) {
				e.Msg = said
				*c.notes = append(*c.notes, e)
			}
		}
		c.reader = config.NewDiscovery(opts)
		c.reader.Want = typeURL
	}
	return c.reader
}

// name makes the table of names anew and finds what is fresh. A name that comes twice is refused the second time.
func (c *content) name(r *result, typeURL string) {
	if c.byName == nil {
		c.byName, c.known, c.refused = map[string]*entry{}, map[uint64]*entry{}, map[string]bool{}
	}
	clear(c.byName)
	for i, e := range c.order {
		if first := c.byName[e.name]; first != nil && e.name != "" {
			if first != e {
				e.round = 0 // it is not what is in use
			}
			r.fresh = append(r.fresh, &entry{name: e.name, index: i, err: fmt.Errorf("duplicate %s %s found", kindOf(typeURL), e.name)})
			continue
		}
		if e.name != "" {
			c.byName[e.name] = e
		}
		if c.known[e.hash] != e || e.err != nil {
			r.fresh = append(r.fresh, e)
		}
	}
}

// compare finds what is gone, and forgets it.
func (c *content) compare(r *result) {
	nameless := false
	for _, e := range r.fresh {
		if e.err == nil {
			c.known[e.hash] = e
		}
		nameless = nameless || e.name == ""
	}
	for h, e := range c.known {
		if e.round != c.round {
			delete(c.known, h)
			c.refused[e.name] = true
		}
	}
	for n := range c.refused {
		switch {
		case c.byName[n] != nil:
			delete(c.refused, n) // it is fresh; if it is refused, it comes back
		case !nameless:
			// While a resource cannot be read at all, it may be any of those that are missing: then they stay.
			delete(c.refused, n)
			r.gone = append(r.gone, n)
		}
	}
	slices.Sort(r.gone)
}

// refuse notes that e was not taken: it is fresh the next time too, and what was there under its name is not forgotten.
func (c *content) refuse(e *entry) {
	if c.known[e.hash] == e {
		delete(c.known, e.hash)
	}
	if e.name != "" {
		c.refused[e.name] = true
	}
}

// decode turns a resource of the file into its message.
func (c *content) decode(f *config.Found, typeURL string, r config.Resolver) *entry {
	return decode(f, typeURL, r, &c.pack)
}

// decode turns a resource into its message. pack is memory for what is compressed.
func decode(f *config.Found, typeURL string, r config.Resolver, pack *[]byte) *entry {
	e := &entry{hash: f.Hash, err: f.Err}
	a := f.Resource
	wrapped := xdstype.Name(a.TypeURL) == xdstype.Name(xdstype.DeltaResource)
	if wrapped {
		w, err := xdstype.ParseResource(a.Value)
		if err != nil {
			e.err = err
			return e
		}
		e.name, e.version, e.ttl, a, e.wrapped = w.Name, w.Version, w.TTL, w.Any, true
	}
	if name, ok := nameOf(a); ok && e.name == "" {
		e.name = name
	}
	if got, want := xdstype.Name(a.TypeURL), xdstype.Name(typeURL); e.err == nil && got != want {
		e.err = fmt.Errorf("Type URL %s does not match %s", a.TypeURL, typeURL) //nolint:staticcheck // like Envoy's text
		e.name = ""                                                             // of another kind: it stands for none of ours
	}
	if e.err != nil {
		return e
	}
	if e.value = a.Value; len(e.value) >= packFrom {
		e.packed, *pack = config.CompressWith(*pack, e.value)
	}
	if e.body = f.Message; e.body == nil || wrapped {
		e.unpack(typeURL, r)
	}
	if e.err == nil && wrapped {
		e.err = config.Validate(e.body, r, "") // what is wrapped was not looked at yet
	}
	return e
}

// packFrom is from how many bytes on a resource is compressed by itself, away from the main loop.
const packFrom = 32 << 10

// unpack makes the message of the bytes.
func (e *entry) unpack(typeURL string, r config.Resolver) {
	e.body, e.err = unpack(typeURL, e.value, r)
}

// unpack makes a message of bytes. A Runtime, whose message comes with a gRPC library, is only what it holds: its layer.
func unpack(typeURL string, value []byte, r config.Resolver) (proto.Message, error) {
	if xdstype.Name(typeURL) == xdstype.Name(xdstype.Runtime) {
		layer, _ := xdstype.StringField(value, 2)
		body := &structpb.Struct{}
		return body, proto.Unmarshal([]byte(layer), body)
	}
	body, _, err := config.Unpack(&anypb.Any{TypeUrl: typeURL, Value: value}, r)
	return body, err
}

// nameOf reads field 1 of a resource, which is its name in clusters, endpoints, listeners, routes and secrets.
func nameOf(a xdstype.Any) (string, bool) { return xdstype.StringField(a.Value, 1) }

// kindOf is the word for a type in messages.
func kindOf(typeURL string) string {
	name := xdstype.Name(typeURL)
	return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
}
