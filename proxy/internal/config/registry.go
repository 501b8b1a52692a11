package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// Registry is the set of message types that an Any may hold: those of the extensions that this proxy has, and the few
// of the API itself. It is built once and not changed afterwards.
type Registry struct {
	types map[string]protoreflect.MessageType
	names []string
}

// baseTypes may stand in an Any without belonging to an extension.
var baseTypes = []string{
	"google.protobuf.Any", "google.protobuf.BoolValue", "google.protobuf.BytesValue", "google.protobuf.DoubleValue",
	"google.protobuf.Duration", "google.protobuf.Empty", "google.protobuf.FieldMask", "google.protobuf.FloatValue",
	"google.protobuf.Int32Value", "google.protobuf.Int64Value", "google.protobuf.ListValue", "google.protobuf.StringValue",
	"google.protobuf.Struct", "google.protobuf.Timestamp", "google.protobuf.UInt32Value", "google.protobuf.UInt64Value",
	"google.protobuf.Value",
	"xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct",
	"envoy.config.cluster.v3.Cluster", "envoy.config.endpoint.v3.ClusterLoadAssignment", "envoy.config.listener.v3.Listener",
	"envoy.config.route.v3.RouteConfiguration", "envoy.config.route.v3.ScopedRouteConfiguration",
	"envoy.config.route.v3.VirtualHost", "envoy.config.route.v3.FilterConfig", "envoy.config.core.v3.TypedExtensionConfig",
	"envoy.extensions.transport_sockets.tls.v3.Secret", "envoy.service.runtime.v3.Runtime",
	"envoy.service.discovery.v3.Resource",
}

// NewRegistry makes a registry of the given type URLs or type names and of the types that need no extension. The types
// must be linked in: an extension imports the protos that it declares. A name that is not linked in is an error.
func NewRegistry(types ...string) (*Registry, error) {
	r := &Registry{types: make(map[string]protoreflect.MessageType, len(types)+len(baseTypes))}
	for _, t := range baseTypes {
		if mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(t)); err == nil {
			r.add(t, mt)
		}
	}
	for _, t := range types {
		name := typeName(t)
		mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
		if err != nil {
			return nil, fmt.Errorf("registry: message type %s is not linked into this binary: %w", name, err)
		}
		r.add(name, mt)
	}
	return r, nil
}

func (r *Registry) add(name string, mt protoreflect.MessageType) {
	if _, dup := r.types[name]; !dup {
		r.names = append(r.names, name)
	}
	r.types[name] = mt
}

// FindMessageByURL finds a type; the host of the URL does not matter.
func (r *Registry) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if mt := r.types[typeName(url)]; mt != nil {
		return mt, nil
	}
	return nil, protoregistry.NotFound
}

// Names returns the names of all types, in the order in which they were given.
func (r *Registry) Names() []string { return r.names }

func orGlobal(r Resolver) Resolver {
	if r == nil {
		return protoregistry.GlobalTypes
	}
	return r
}

func typeName(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// unknownType explains a type URL that the resolver does not have.
func unknownType(r Resolver, url string) Error {
	x := Error{Kind: UnknownType, Msg: "could not find @type '" + shortenTo(url, 256) + "'"}
	name := typeName(url)
	names := typeNames(r)
	if knownToEnvoy(name) && !slices.ContainsFunc(names, func(n string) bool { return packageOf(n) == packageOf(name) }) {
		x.Kind, x.Extension = Unsupported, name
		x.Msg += ": not supported yet, an extension of Envoy that this build does not have"
		return x
	}
	if s := nearestType(name, names); s != "" {
		x.Suggestion = typePrefix + s
		return x
	}
	if s := nearKnown(name); s != "" {
		x.Suggestion, x.Advice = typePrefix+s, "which is an extension that this build does not have"
		return x
	}
	if now := newTypeName(name); now != "" {
		x.Msg += ": the v2 API is not supported"
		if x.Suggestion = typePrefix + now; !slices.Contains(names, now) {
			x.Advice = "which is an extension that this build does not have"
		}
		return x
	}
	if strings.Contains(name, ".v2.") {
		x.Msg += ": the v2 API is not supported"
		return x
	}
	if s := byLastWord(name, names); s != "" {
		x.Suggestion = typePrefix + s
	}
	return x
}

// nearestType is the one of names that is name but for a few letters, "" if there is none. A word alone is none of them.
func nearestType(name string, names []string) string {
	if strings.Count(name, ".") < 2 {
		return ""
	}
	return nearestWithin(name, names, 4)
}

// byLastWord is the first of names whose last word is that of name, "" if there is none. The name of an extension may stand for its
// message.
func byLastWord(name string, names []string) string {
	word := lastWord(name)
	if len(word) < 2 {
		return ""
	}
	foreign := strings.Contains(name, ".") && !strings.HasPrefix(name, "envoy.")
	for _, n := range names {
		if foreign && slices.Contains(resourcePackages, packageOf(n)) {
			continue // no extension: what others call a Filter or a Listener is none of these
		}
		if pkg := strings.TrimSuffix(packageOf(n), ".v3"); fold(lastWord(n)) == fold(word) && (!genericNames[lastWord(n)] || fold(lastWord(pkg)) == fold(word)) {
			return n
		}
	}
	return ""
}

// genericNames say nothing about which extension is meant.
var genericNames = map[string]bool{"Config": true, "FilterConfig": true, "Router": true, "ConfigsPerRoute": true, "PerRouteConfig": true, "Action": true}

// typeNames lists what a resolver has, in alphabetical order, as far as it can be asked.
func typeNames(r Resolver) []string {
	var names []string
	switch r := r.(type) {
	case *Registry:
		names = slices.Clone(r.names)
	case *protoregistry.Types:
		r.RangeMessages(func(mt protoreflect.MessageType) bool {
			names = append(names, string(mt.Descriptor().FullName()))
			return true
		})
	}
	slices.Sort(names)
	return names
}

// Unpack decodes the payload of an Any. A TypedStruct is converted to the type that it names, with the name it gives;
// the returned URL is that of the message. An empty Any gives nil and no error.
func Unpack(a *anypb.Any, r Resolver) (msg proto.Message, url string, err error) {
	if a.GetTypeUrl() == "" {
		return nil, "", nil
	}
	msg, err = unpack(a, orGlobal(r))
	if err != nil {
		return nil, a.GetTypeUrl(), err
	}
	return msg, typePrefix + string(msg.ProtoReflect().Descriptor().FullName()), nil
}

// PayloadURL returns the type URL of what an Any holds, with the usual host; for a TypedStruct that of the type it names.
func PayloadURL(a *anypb.Any) string {
	url := a.GetTypeUrl()
	if !isTypedStruct(typeName(url)) {
		return url
	}
	inner := url
	// Field 1 of both TypedStructs is the type URL; the Struct behind it need not be decoded.
	if num, typ, n := protowire.ConsumeTag(a.GetValue()); n > 0 && num == 1 && typ == protowire.BytesType {
		if v, m := protowire.ConsumeBytes(a.GetValue()[n:]); m > 0 {
			inner = string(v)
		}
	} else if mt, err := protoregistry.GlobalTypes.FindMessageByURL(url); err == nil {
		m := mt.New().Interface()
		if ts, ok := m.(typedStruct); ok && proto.Unmarshal(a.GetValue(), m) == nil {
			inner = ts.GetTypeUrl()
		}
	}
	return typePrefix + typeName(inner)
}

var errNoType = errors.New("no such type")

// unpack also takes a dynamic Any, as protoreflect hands it out.
func unpack(m proto.Message, r Resolver) (proto.Message, error) {
	a, ok := m.(*anypb.Any)
	if !ok {
		return nil, errNoType
	}
	if a.TypeUrl == "" {
		return nil, nil
	}
	mt, err := r.FindMessageByURL(a.TypeUrl)
	if err != nil {
		x := unknownType(r, a.TypeUrl)
		return nil, &x
	}
	msg := mt.New().Interface()
	if err := proto.Unmarshal(a.Value, msg); err != nil {
		return nil, fmt.Errorf("cannot decode %s: %w", a.TypeUrl, err)
	}
	if isTypedStruct(string(mt.Descriptor().FullName())) {
		return fromTypedStruct(msg, r)
	}
	return msg, nil
}
