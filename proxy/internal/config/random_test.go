package config_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// filler fills messages with random values.
type filler struct {
	*rand.Rand
	any []proto.Message // what an Any may hold
}

var alphabet = []rune("abcXYZ_09.-/ \t\n\"\\<>é😀\u2028\x01'")

func (f *filler) text() string {
	r := make([]rune, f.IntN(12))
	for i := range r {
		r[i] = alphabet[f.IntN(len(alphabet))]
	}
	return string(r)
}

func (f *filler) fill(m protoreflect.Message, depth int) {
	d := m.Descriptor()
	switch d.FullName() {
	case "google.protobuf.Any":
		inner := f.any[f.IntN(len(f.any))].ProtoReflect().New()
		f.fill(inner, depth-2)
		a, err := anypb.New(inner.Interface())
		if err != nil {
			panic(err)
		}
		proto.Merge(m.Interface(), a)
		return
	case "google.protobuf.Duration", "google.protobuf.Timestamp":
		secs, nanos := f.Int64N(1<<f.IntN(34)+1), int64([]int{0, 1, 500_000_000, 999_999_999, 120_000, 7_000_000}[f.IntN(6)])
		m.Set(d.Fields().ByName("seconds"), protoreflect.ValueOfInt64(secs))
		m.Set(d.Fields().ByName("nanos"), protoreflect.ValueOfInt32(int32(nanos)))
		return
	case "google.protobuf.FieldMask":
		m.Mutable(d.Fields().ByName("paths")).List().Append(protoreflect.ValueOfString("a_b.c"))
		return
	case "google.protobuf.Struct", "google.protobuf.ListValue", "google.protobuf.Value":
		f.fillDynamic(m.Interface(), depth)
		return
	}
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		if f.IntN(4) != 0 || depth <= 0 && fd.Kind() == protoreflect.MessageKind {
			continue
		}
		f.field(m, fd, depth)
	}
}

func (f *filler) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, depth int) {
	switch {
	case fd.IsMap():
		mp := m.Mutable(fd).Map()
		for range f.IntN(3) {
			mp.Set(f.scalar(fd.MapKey()).MapKey(), f.single(mp.NewValue, fd.MapValue(), depth))
		}
	case fd.IsList():
		l := m.Mutable(fd).List()
		for range f.IntN(4) {
			l.Append(f.single(l.NewElement, fd, depth))
		}
	default:
		m.Set(fd, f.single(func() protoreflect.Value { return m.NewField(fd) }, fd, depth))
	}
}

func (f *filler) single(fresh func() protoreflect.Value, fd protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	if fd.Kind() != protoreflect.MessageKind {
		return f.scalar(fd)
	}
	v := fresh()
	f.fill(v.Message(), depth-1)
	return v
}

func (f *filler) scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(f.IntN(2) == 0)
	case protoreflect.EnumKind:
		vs := fd.Enum().Values()
		return protoreflect.ValueOfEnum(vs.Get(f.IntN(vs.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(f.Uint32() >> f.IntN(32)))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(f.Uint64() >> f.IntN(64)))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(f.Uint32() >> f.IntN(32))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(f.Uint64() >> f.IntN(64))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(f.number()))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(f.number())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(f.text()))
	}
	return protoreflect.ValueOfString(f.text())
}

func (f *filler) number() float64 {
	return []float64{0, 1, -1.5, 1e20, 1e-7, 12345678, math.Inf(1), 0.1}[f.IntN(8)] * float64(1+f.IntN(3))
}

func (f *filler) fillDynamic(m proto.Message, depth int) {
	switch m := m.(type) {
	case *structpb.Struct:
		m.Fields = map[string]*structpb.Value{}
		for range f.IntN(3) {
			m.Fields[f.text()] = f.dynamic(depth)
		}
	case *structpb.ListValue:
		for range f.IntN(3) {
			m.Values = append(m.Values, f.dynamic(depth))
		}
	case *structpb.Value:
		proto.Merge(m, f.dynamic(depth))
	}
}

func (f *filler) dynamic(depth int) *structpb.Value {
	kind := f.IntN(6)
	if depth <= 0 {
		kind = f.IntN(4)
	}
	switch kind {
	case 0:
		return structpb.NewNullValue()
	case 1:
		return structpb.NewBoolValue(f.IntN(2) == 0)
	case 2:
		return structpb.NewNumberValue(float64(f.IntN(1000)) / 8)
	case 3:
		return structpb.NewStringValue(f.text())
	case 4:
		s := &structpb.Struct{}
		f.fillDynamic(s, depth-1)
		return structpb.NewStructValue(s)
	}
	l := &structpb.ListValue{}
	f.fillDynamic(l, depth-1)
	return structpb.NewListValue(l)
}

var filled = []proto.Message{
	&clusterv3.Cluster{}, &routev3.RouteConfiguration{}, &hcmv3.HttpConnectionManager{}, &httpv3.HttpProtocolOptions{},
	&tlsv3.DownstreamTlsContext{}, &structpb.Struct{}, &listenerv3.Listener{}, &bootstrapv3.Bootstrap{},
}

// What protojson writes of a random message must be read as that message, and so must what the printer writes.
func TestRandomMessages(t *testing.T) {
	for seed := range uint64(400) {
		f := &filler{Rand: rand.New(rand.NewPCG(seed, 1)), any: filled[:6]}
		want := filled[seed%uint64(len(filled))].ProtoReflect().New()
		f.fill(want, 7)
		text, err := protojson.MarshalOptions{UseProtoNames: seed%2 == 0, UseEnumNumbers: seed%3 == 0, Multiline: seed%5 == 0}.Marshal(want.Interface())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		printed := config.NewPrinter(nil).Append(nil, want.Interface(), 0)
		for what, text := range map[string][]byte{"protojson": text, "printed": printed} {
			got := want.New().Interface()
			if want.Descriptor().FullName() == "google.protobuf.Struct" {
				continue // not a message with fields of its own; it is inside the others
			}
			if _, err := config.Parse("m.json", text, got, config.Options{SkipValidation: true}); err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, what, err, text)
			}
			if diff := cmp.Diff(want.Interface(), got, protocmp.Transform()); diff != "" {
				t.Fatalf("seed %d, %s: %s", seed, what, diff)
			}
		}
	}
}
