package server

import (
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tls"
)

// Every row of every table names a field that there is.
func TestGapsAreFields(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range Gaps() {
		if seen[g.Message()] {
			t.Errorf("%s has two tables", g.Message())
		}
		seen[g.Message()] = true
		for _, p := range g.Problems() {
			t.Error(p)
		}
	}
}

// An extension's rows are refused with the field's name, wherever the message stands, before the extension sees it.
func TestExtensionGaps(t *testing.T) {
	x, err := newExtensions(nil, ext.Set{
		HTTPFilters: []ext.HTTPFilter{{Info: ext.Info{Name: "a", TypeURLs: []string{"google.protobuf.StringValue"}, Refused: []string{"value=no", "FieldMask:paths"}},
			RouteTypeURLs: []string{"google.protobuf.FieldMask"}}},
		NetworkFilters:  []ext.NetworkFilter{{Info: ext.Info{Name: "b", TypeURLs: []string{"google.protobuf.Duration"}, Refused: []string{"nanos"}}}},
		ListenerFilters: []ext.ListenerFilter{{Info: ext.Info{Name: "c", TypeURLs: []string{"google.protobuf.Timestamp"}, Refused: []string{"!nanos"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    proto.Message
		want string
	}{
		{wrapperspb.String("yes"), ""},
		{wrapperspb.String("no"), "typed_config.value: not supported yet; found no"},
		{&fieldmaskpb.FieldMask{Paths: []string{"x"}}, "typed_config.paths: not supported yet"},
		{&durationpb.Duration{Seconds: 1}, ""},
		{&durationpb.Duration{Nanos: 1}, "typed_config.nanos: not supported yet"},
		{&timestamppb.Timestamp{Nanos: 1}, ""}, // left to the filter
		{&structpb.Struct{}, ""},
		{nil, ""},
	} {
		got := ""
		if err := x.check(c.m); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.m, got, c.want)
		}
	}
}

// The names of the field without types are those of the one with types: each kind.
func TestOldAlternativeNames(t *testing.T) {
	store := stats.NewStore()
	any := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "a"}}
	p := &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
		ValidationContext: &tlsv3.CertificateValidationContext{MatchSubjectAltNames: []*matcherv3.StringMatcher{any}}}}} //nolint:staticcheck // deprecated, still read by Envoy
	_, err := tls.NewClient(p, tls.Deps{Scope: store.Root(), Match: func(*matcherv3.StringMatcher) (interface{ Match(string) bool }, error) {
		t.Error("the names are compiled although there is no authority to check certificates with")
		return nil, nil
	}})
	if err == nil || err.Error() != "common_tls_context.validation_context: SAN-based verification of peer certificates without trusted CA is insecure and not allowed" {
		t.Error(err)
	}
}

// The admin interface's old field for its log is a log file.
func TestOldAdminLog(t *testing.T) {
	logs := adminLogs(&bootstrapv3.Admin{AccessLogPath: "/dev/null"}) //nolint:staticcheck // deprecated, still read by Envoy
	if len(logs) != 1 || logs[0].GetTypedConfig().GetTypeUrl() != "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog" {
		t.Error(logs)
	}
	if logs := adminLogs(&bootstrapv3.Admin{}); logs != nil {
		t.Error(logs)
	}
}
