// Package tag is an HTTP filter by callbacks: it puts a header into requests and their answers. It shows configuration, per-route
// configuration, formats and stats.
package tag

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Extension makes the filter known.
var Extension = ext.HTTPFilter{
	Info:     ext.Info{Name: "dragoman.examples.tag", TypeURLs: []string{"dragoman.examples.Tag"}, Posture: ext.RobustToUntrustedDownstream},
	New:      newFactory,
	NewRoute: newRoute,
}

// factory is the configured filter: plain values, shared by all workers.
type factory struct {
	header              string
	value               ext.Formatter
	requests, responses stats.CounterID
}

// route is a route's own configuration.
type route struct{ value ext.Formatter }

func newFactory(m proto.Message, ctx ext.FactoryContext) (filter.Factory, error) {
	c, err := read(m)
	if err != nil {
		return nil, err
	}
	if c.header == "" || c.header != strings.ToLower(c.header) || c.value == "" {
		return nil, errors.New("header (lower-case) and value are required")
	}
	f := &factory{header: c.header}
	if f.value, err = ctx.Format(c.value); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	scope := ctx.Scope().Scope("tag")
	f.requests, f.responses = scope.Counter("requests"), scope.Counter("responses")
	return f, nil
}

func newRoute(m proto.Message, ctx ext.FactoryContext) (any, error) {
	c, err := read(m)
	if err != nil {
		return nil, err
	}
	if c.header != "" || c.value == "" {
		return nil, errors.New("a route has a value, and no header")
	}
	v, err := ctx.Format(c.value)
	return &route{v}, err
}

// config is what a message says.
type config struct{ header, value string }

func read(m proto.Message) (c config, err error) {
	for name, v := range m.(*structpb.Struct).GetFields() {
		s, ok := v.GetKind().(*structpb.Value_StringValue)
		switch {
		case !ok:
			return c, fmt.Errorf("%s: expected a string", name)
		case name == "header":
			c.header = s.StringValue
		case name == "value":
			c.value = s.StringValue
		default:
			return c, fmt.Errorf("no such field: %s (there are header and value)", name)
		}
	}
	return c, nil
}

// New returns the filter of one stream.
func (f *factory) New(network.Dispatcher) filter.Filter { return &tagger{f: f} }

// Sides says that the filter looks at requests and at answers.
func (f *factory) Sides() filter.Sides { return filter.Both }

// tagger is one stream's.
type tagger struct {
	filter.PassThrough
	f *factory
}

// DecodeHeaders tags the request.
func (t *tagger) DecodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	t.put(h, t.f.requests)
	return filter.HeadersContinue
}

// EncodeHeaders tags the answer, a local reply too.
func (t *tagger) EncodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	t.put(h, t.f.responses)
	return filter.HeadersContinue
}

func (t *tagger) put(h *http.HeaderMap, counter stats.CounterID) {
	format := t.f.value
	if r, ok := t.CB.RouteConfig().(*route); ok {
		format = r.value
	}
	var room [128]byte
	h.SetName(t.f.header, string(format.Append(room[:0], t.CB)))
	t.CB.Stats().Inc(counter)
}
