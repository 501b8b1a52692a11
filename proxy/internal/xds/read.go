package xds

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// item is one resource of a response.
type item struct {
	entry
	same    bool // its bytes are those that were taken before; there is no body
	refused bool
}

// lease is how long a resource holds; 0 means without end.
type lease struct {
	name string
	ttl  time.Duration
}

// response is what a discovery response says, compared with what was there. It is made by a goroutine, from bytes.
type response struct {
	err        error // it cannot be taken at all
	version    string
	nonce      string
	identifier string
	items      []item
	fresh      []int          // indices of those that are not the same
	told       []sub.Resource // the fresh ones, as a subscription to all resources is told of them
	gone       []string       // sorted names of resources that were there and are no more
	leases     []lease
	notes      []*config.Error
}

// reader makes responses of bytes. It touches nothing but have, which is lent to it.
type reader struct {
	url   string
	delta bool
	// wildcard: a response in state of the world holds all that there is.
	wildcard bool
	have     map[string]held
	opts     config.Options
	pack     []byte
	out      response
	seen     map[string]bool
}

// read reads a response.
func (d *reader) read(b []byte) response {
	d.seen = map[string]bool{}
	if d.delta {
		d.readDelta(b)
	} else {
		d.readAll(b)
	}
	if x := &d.out; d.wildcard && x.err == nil {
		x.told = make([]sub.Resource, len(x.fresh))
		for n, i := range x.fresh {
			x.told[n] = x.items[i].resource()
		}
	}
	return d.out
}

// resource is the item as subscriptions are told of it.
func (i *item) resource() sub.Resource {
	r := sub.Resource{Name: i.name, Version: i.version, TTL: i.ttl, Body: i.body, Packed: i.packed, Err: i.err, Unchanged: i.same}
	if r.Err != nil {
		r.Body = nil
	}
	return r
}

// readAll reads a response in state of the world.
func (d *reader) readAll(b []byte) {
	r, err := xdstype.ParseResponse(b)
	if err != nil {
		d.out.err = err
		return
	}
	x := &d.out
	x.version, x.nonce, x.identifier = r.Version, r.Nonce, r.ControlPlane
	x.items = make([]item, 0, len(r.Resources))
	nameless := false
	for _, a := range r.Resources {
		w := xdstype.Resource{Any: a, HasAny: true}
		if xdstype.Name(a.TypeURL) == xdstype.Name(xdstype.DeltaResource) {
			if w, err = xdstype.ParseResource(a.Value); err != nil {
				x.err = err
				return
			}
		}
		if got, want := xdstype.Name(w.Any.TypeURL), xdstype.Name(d.url); w.HasAny && got != want {
			x.err = fmt.Errorf("%s does not match the message-wide type URL %s in DiscoveryResponse", w.Any.TypeURL, d.url)
			return
		}
		w.Version = r.Version
		name := d.add(&w)
		nameless = nameless || name == ""
	}
	if d.wildcard && !nameless {
		for n := range d.have {
			if !d.seen[n] {
				delete(d.have, n)
				x.gone = append(x.gone, n)
			}
		}
		slices.Sort(x.gone)
	}
}

// readDelta reads a delta response.
func (d *reader) readDelta(b []byte) {
	r, err := xdstype.ParseDeltaResponse(b)
	x := &d.out
	if err != nil {
		x.err = err
		return
	}
	x.version, x.nonce, x.identifier, x.gone = r.Version, r.Nonce, r.ControlPlane, r.Removed
	x.items = make([]item, 0, len(r.Resources))
	for i := range r.Resources {
		w := &r.Resources[i]
		if w.HasAny && xdstype.Name(w.Any.TypeURL) != xdstype.Name(d.url) {
			x.err = fmt.Errorf("type URL %s embedded in an individual Any does not match the message-wide type URL %s in DeltaDiscoveryResponse", w.Any.TypeURL, d.url)
			return
		}
		if d.seen[w.Name] && w.Name != "" {
			x.err = fmt.Errorf("duplicate name %s found among added/updated resources", w.Name)
			return
		}
		d.add(w)
	}
	for _, n := range r.Removed {
		if d.seen[n] {
			x.err = fmt.Errorf("duplicate name %s found in the union of added+removed resources", n)
			return
		}
		d.seen[n] = true
	}
	for _, n := range r.Removed {
		delete(d.have, n)
	}
}

// add takes one resource and returns its name.
func (d *reader) add(w *xdstype.Resource) string {
	x := &d.out
	name := w.Name
	if name == "" {
		name, _ = nameOf(w.Any)
	}
	again := d.seen[name]
	d.seen[name] = true
	if w.HasTTL || !w.HasAny {
		x.leases = append(x.leases, lease{name, w.TTL})
	} else {
		x.leases = append(x.leases, lease{name: name})
	}
	if !w.HasAny {
		return name // a sign of life
	}
	hash := xxhash.Sum64(w.Any.Value)
	if h, ok := d.have[name]; ok && h.hash == hash && hash != 0 && !again {
		x.items = append(x.items, item{entry: entry{name: name, version: w.Version, value: w.Any.Value, hash: hash}, same: true})
		return name
	}
	e := decode(&config.Found{Hash: hash, Resource: w.Any}, d.url, d.opts.Resolver, &d.pack)
	e.name, e.version, e.ttl = name, w.Version, w.TTL
	if e.err == nil {
		e.err = d.check(name, e.body)
	}
	if again && d.wildcard && name != "" {
		e.err = fmt.Errorf("duplicate %s %s found", kindOf(d.url), name)
	}
	x.fresh = append(x.fresh, len(x.items))
	x.items = append(x.items, item{entry: *e})
	return name
}

// check runs the rules of a resource's fields, and looks for fields that are unknown or deprecated.
func (d *reader) check(name string, body proto.Message) error {
	if d.opts.OnUnknownField != nil || d.opts.OnDeprecated != nil || !d.opts.AllowUnknownFields {
		list := config.Unknown(body, d.opts.Resolver, d.opts.OnDeprecated != nil)
		for _, e := range list {
			if e.Kind == config.UnknownField && !d.opts.AllowUnknownFields {
				return e
			}
			at := "resources[" + strconv.Quote(name) + "]" // it has no file and no line
			if e.Path != "" {
				at += "." + e.Path
			}
			e.Path = at
		}
		d.out.notes = append(d.out.notes, list...)
	}
	if d.opts.SkipValidation {
		return nil
	}
	return config.Validate(body, d.opts.Resolver, "")
}

// unpack makes the body of an item that was taken for the same.
func (i *item) unpack(url string, r config.Resolver) {
	i.body, i.err = unpack(url, i.value, r)
	i.same = false
}
