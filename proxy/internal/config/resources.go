package config

import (
	"fmt"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// LoadDiscoveryResponse reads a file of resources, as path_config_source names it: a DiscoveryResponse in YAML, JSON or
// binary protobuf whose resources carry their @type. The field rules of all resources are checked unless opts leaves
// them out; as in Envoy one bad resource refuses the file. In Positions a resource's fields stand under resources[i].
func LoadDiscoveryResponse(path string, opts Options) (*xdstype.Response, *Positions, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	return ParseDiscoveryResponse(path, data, opts)
}

// ParseDiscoveryResponse is LoadDiscoveryResponse for bytes; the end of name says in which form they are.
func ParseDiscoveryResponse(name string, data []byte, opts Options) (*xdstype.Response, *Positions, error) {
	l := newLoader(nil, opts)
	l.root = l.schema.discoveryResponse()
	lower := strings.ToLower(name)
	switch {
	case strings.HasSuffix(lower, ".pb_text"):
		return nil, nil, fmt.Errorf("%s: resource files in text protobuf are not supported; use YAML, JSON or binary protobuf", name)
	case strings.HasSuffix(lower, ".pb"):
		l.wire, l.opaque = data, true
	default:
		if err := l.file(name, data); err != nil {
			return nil, l.pos, err
		}
	}
	if err := l.errs.Err(); err != nil {
		return nil, l.pos, err
	}
	r, err := xdstype.ParseResponse(l.wire)
	if err != nil {
		return nil, l.pos, fmt.Errorf("Unable to parse file %q as a binary protobuf (type %s): %w", name, l.root.name, err) //nolint:staticcheck // Envoy's text
	}
	if l.opaque && !opts.SkipValidation {
		l.checkResources(r)
	}
	if err := l.errs.Err(); err != nil {
		return nil, l.pos, err
	}
	return r, l.pos, nil
}

// checkResources runs the field rules of resources that came as bytes.
func (l *loader) checkResources(r *xdstype.Response) {
	for i, res := range r.Resources {
		path := fmt.Sprintf("resources[%d]", i)
		msg, err := unpack(&anypb.Any{TypeUrl: res.TypeURL, Value: res.Value}, l.opts.Resolver)
		if err != nil {
			l.errs.Add(&Error{Path: path, Msg: err.Error()}, l.opts.maxErrors())
			continue
		}
		if msg != nil {
			l.check(msg, path)
		}
	}
}

// discoveryResponse describes envoy.service.discovery.v3.DiscoveryResponse by hand: its generated package links in a gRPC
// library.
func (s *schema) discoveryResponse() *message {
	plane := byHand("envoy.config.core.v3.ControlPlane", &field{name: "identifier", kind: protoreflect.StringKind}, 1)
	return byHand("envoy.service.discovery.v3.DiscoveryResponse",
		&field{name: "version_info", kind: protoreflect.StringKind}, 1,
		&field{name: "resources", kind: protoreflect.MessageKind, list: true, message: s.message((*anypb.Any)(nil).ProtoReflect().Descriptor())}, 2,
		&field{name: "canary", kind: protoreflect.BoolKind}, 3,
		&field{name: "type_url", kind: protoreflect.StringKind}, 4,
		&field{name: "nonce", kind: protoreflect.StringKind}, 5,
		&field{name: "control_plane", kind: protoreflect.MessageKind, message: plane}, 6,
		&field{name: "resource_errors", kind: protoreflect.MessageKind, list: true, skip: true}, 7,
	)
}

// discoveryResource describes envoy.service.discovery.v3.Resource by hand, for the same reason.
func (s *schema) discoveryResource() *message {
	name := byHand("envoy.service.discovery.v3.ResourceName", &field{name: "name", kind: protoreflect.StringKind}, 1,
		&field{name: "dynamic_parameter_constraints", kind: protoreflect.MessageKind, skip: true}, 2)
	cache := byHand("envoy.service.discovery.v3.Resource.CacheControl", &field{name: "do_not_cache", kind: protoreflect.BoolKind}, 1)
	return byHand("envoy.service.discovery.v3.Resource",
		&field{name: "version", kind: protoreflect.StringKind}, 1,
		&field{name: "resource", kind: protoreflect.MessageKind, message: s.message((*anypb.Any)(nil).ProtoReflect().Descriptor())}, 2,
		&field{name: "name", kind: protoreflect.StringKind}, 3,
		&field{name: "aliases", kind: protoreflect.StringKind, list: true}, 4,
		&field{name: "ttl", kind: protoreflect.MessageKind, message: s.message((*durationpb.Duration)(nil).ProtoReflect().Descriptor())}, 6,
		&field{name: "cache_control", kind: protoreflect.MessageKind, message: cache}, 7,
		&field{name: "resource_name", kind: protoreflect.MessageKind, message: name}, 8,
		&field{name: "metadata", kind: protoreflect.MessageKind, skip: true}, 9,
	)
}

// byHand makes a message of fields and their numbers.
func byHand(name string, pairs ...any) *message {
	m := &message{name: name, fields: map[string]*field{}}
	for i := 0; i < len(pairs); i += 2 {
		f, num := pairs[i].(*field), protowire.Number(pairs[i+1].(int))
		f.tag, f.oneof = protowire.AppendTag(nil, num, wireType(f.kind)), -1
		m.fields[f.name] = f
		m.fields[camel(f.name)] = f
	}
	return m
}

func camel(s string) string {
	parts := strings.Split(s, "_")
	for i := range parts[1:] {
		parts[i+1] = strings.ToUpper(parts[i+1][:1]) + parts[i+1][1:]
	}
	return strings.Join(parts, "")
}

// Decode unmarshals the resource a as the type T, wrapped or not in a Resource of the discovery service, and checks its
// field rules. name is the one that the wrapper gives, "" without. A payload of another type is an error.
func Decode[T proto.Message](a xdstype.Any, into T, r Resolver) (name string, err error) {
	if xdstype.Name(a.TypeURL) == xdstype.Name(xdstype.DeltaResource) {
		w, err := xdstype.ParseResource(a.Value)
		if err != nil {
			return "", err
		}
		name, a = w.Name, w.Any
	}
	want := string(into.ProtoReflect().Descriptor().FullName())
	if got := xdstype.Name(a.TypeURL); got != want {
		return name, fmt.Errorf("Type URL %s%s does not match %s", typePrefix, want, a.TypeURL) //nolint:staticcheck // like Envoy's text
	}
	if err := proto.Unmarshal(a.Value, into); err != nil {
		return name, fmt.Errorf("cannot decode %s: %w", a.TypeURL, err)
	}
	return name, Validate(into, r, "")
}
