package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// metadataCommands print dynamic metadata, metadata of the configuration, and filter state.
var metadataCommands = map[string]command{
	"DYNAMIC_METADATA":  {required | length, func(b *builder) (*operator, error) { return metadata(b, dynamicSpace, b.param), nil }},
	"CLUSTER_METADATA":  {required, func(b *builder) (*operator, error) { return metadata(b, static(stream.ClusterMetadata), b.param), nil }},
	"UPSTREAM_METADATA": {required, func(b *builder) (*operator, error) { return metadata(b, static(stream.HostMetadata), b.param), nil }},
	"METADATA":          {params | length, buildMetadata},
	"FILTER_STATE":      {params | length, buildFilterState},
	// Upstream connections keep no state: no filter of theirs could set some.
	"UPSTREAM_FILTER_STATE": {params | length, func(b *builder) (*operator, error) {
		if _, err := buildFilterState(b); err != nil {
			return nil, err
		}
		return constant("", false), nil
	}},
}

// spaceOf returns the tree of a filter namespace.
type spaceOf func(c *Context, namespace string) (map[string]any, bool)

func dynamicSpace(c *Context, namespace string) (map[string]any, bool) {
	if !c.Info.HasMetadata() {
		return nil, false
	}
	v, ok := c.Info.Metadata().Get(namespace)
	if !ok {
		return nil, false
	}
	m, ok := v.(map[string]any)
	return m, ok
}

func static(kind stream.MetadataKind) spaceOf {
	return func(c *Context, namespace string) (map[string]any, bool) {
		if c.Info.Static == nil {
			return nil, false
		}
		m := c.Info.Static.StaticMetadata(kind, namespace)
		return m, m != nil
	}
}

func buildMetadata(b *builder) (*operator, error) {
	kind, rest, _ := strings.Cut(b.param, ":")
	var space spaceOf
	switch kind {
	case "DYNAMIC":
		space = dynamicSpace
	case "CLUSTER":
		space = static(stream.ClusterMetadata)
	case "ROUTE":
		space = static(stream.RouteMetadata)
	case "UPSTREAM_HOST":
		space = static(stream.HostMetadata)
	case "LISTENER":
		space = static(stream.ListenerMetadata)
	case "VIRTUAL_HOST":
		space = static(stream.VirtualHostMetadata)
	case "LISTENER_FILTER_CHAIN":
		space = static(stream.FilterChainMetadata)
	default:
		return nil, fmt.Errorf("%s is not supported type of metadata", kind)
	}
	return metadata(b, space, rest), nil
}

// metadata is an operator that prints what is at namespace:key:key, text for strings and JSON for the rest.
func metadata(b *builder, space spaceOf, param string) *operator {
	namespace, rest, deep := strings.Cut(param, ":")
	var path []string
	if deep {
		path = strings.Split(rest, ":")
	}
	return valueOperator(b.max, func(c *Context) (any, bool) {
		m, ok := space(c, namespace)
		if !ok {
			return nil, false
		}
		v, ok := network.Follow(m, path...)
		return v, ok && v != nil
	})
}

// valueOperator prints a plain value. In JSON a string is cut to max bytes, other values keep their type whole.
func valueOperator(limit int, get func(c *Context) (any, bool)) *operator {
	return &operator{
		append: func(dst []byte, c *Context) ([]byte, bool) {
			v, ok := get(c)
			if !ok {
				return dst, false
			}
			if s, isString := v.(string); isString {
				return append(dst, s...), true
			}
			return appendValue(dst, c, v), true
		},
		json: func(dst []byte, c *Context) ([]byte, bool) {
			v, ok := get(c)
			if !ok {
				return dst, false
			}
			if s, isString := v.(string); isString && limit >= 0 && len(s) > limit {
				v = s[:limit]
			}
			return appendValue(dst, c, v), true
		},
	}
}

var (
	errStateKey   = refuse("Invalid filter state configuration, key cannot be empty.")
	errStateType  = refuse("Invalid filter state serialize type, only support PLAIN/TYPED/FIELD.")
	errStateField = refuse("Invalid filter state serialize type, FIELD should be used with the field name.")
)

func buildFilterState(b *builder) (*operator, error) {
	p := strings.SplitN(b.param, ":", 3)
	key := p[0]
	if key == "" {
		return nil, errStateKey
	}
	form := "TYPED"
	if len(p) > 1 {
		form = p[1]
	}
	if form != "FIELD" && len(p) > 2 || form == "FIELD" && len(p) < 3 {
		return nil, errStateField
	}
	object := func(c *Context) (any, bool) {
		if c.Info.HasFilterState() {
			if v, ok := c.Info.FilterState().Get(key); ok {
				return v, true
			}
		}
		// A stream sees what was left on its connection.
		if n := c.Info.Conn; n != nil && n.HasFilterState() {
			return n.FilterState().Get(key)
		}
		return nil, false
	}
	switch form {
	case "PLAIN":
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			o, _ := object(c)
			switch o := o.(type) {
			case stream.PlainText:
				return o.AppendPlain(dst), true
			case string:
				return append(dst, o...), true
			}
			return dst, false
		}}, nil
	case "TYPED":
		return typedState(object), nil
	case "FIELD":
		name, _, _ := strings.Cut(p[2], ":")
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			o, _ := object(c)
			f, ok := o.(stream.Fields)
			if !ok {
				return dst, false
			}
			switch v, _ := f.Field(name); v := v.(type) {
			case string:
				return append(dst, v...), true
			case int64:
				return strconv.AppendInt(dst, v, 10), true
			}
			return dst, false
		}}, nil
	}
	return nil, errStateType
}

// typedState prints an object's structured form, which is JSON in text too (a string has quotes).
func typedState(object func(c *Context) (any, bool)) *operator {
	f := func(dst []byte, c *Context) ([]byte, bool) {
		o, _ := object(c)
		switch o := o.(type) {
		case stream.Typed:
			return appendValue(dst, c, o.Typed()), true
		case string:
			return appendValue(dst, c, o), true
		}
		return dst, false
	}
	return &operator{append: f, json: f}
}
