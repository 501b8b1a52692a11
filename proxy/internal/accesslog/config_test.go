package accesslog_test

import (
	"strings"
	"testing"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	dataaccesslogv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	reqv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/req_without_query/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	api "github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (r *rig) deps() *accesslog.Deps {
	return &accesslog.Deps{
		Manager: r.m,
		Format:  &format.Options{Hostname: "h"},
		Header: func(m *routev3.HeaderMatcher) (func(*http.HeaderMap) bool, error) {
			return func(h *http.HeaderMap) bool { _, ok := h.GetName(m.GetName()); return ok }, nil
		},
		String: func(m *matcherv3.StringMatcher) (func(string) bool, error) {
			return func(s string) bool { return s == m.GetExact() }, nil
		},
	}
}

func fileLog(t testing.TB, c *filev3.FileAccessLog) *accesslogv3.AccessLog {
	return &accesslogv3.AccessLog{Name: "f", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: pack(t, c)}}
}

func inline(s string) *corev3.SubstitutionFormatString {
	return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{
		TextFormatSource: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}}}
}

func tree(t testing.TB, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFormats(t *testing.T) {
	js := map[string]any{"c": "%RESPONSE_CODE%", "n": "%REQ(x)%"}
	omit := inline("[%REQ(x)%]\n")
	omit.OmitEmptyValues = true
	extra := inline("%REQ_WITHOUT_QUERY(:PATH)%\n")
	extra.Formatters = []*corev3.TypedExtensionConfig{{Name: "envoy.formatter.req_without_query", TypedConfig: pack(t, &reqv3.ReqWithoutQuery{})}}
	for name, tc := range map[string]struct {
		config *filev3.FileAccessLog
		want   string
	}{
		"none":       {&filev3.FileAccessLog{}, "[2026-11-29T20:00:00.000Z] \"- - -\" 200 - 0 0 5 - \"-\" \"-\" \"-\" \"-\" \"-\"\n"},
		"old empty":  {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_Format{}}, "[2026-11-29T20:00:00.000Z] \"- - -\" 200 - 0 0 5 - \"-\" \"-\" \"-\" \"-\" \"-\"\n"},
		"old":        {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_Format{Format: "%RESPONSE_CODE%\n"}}, "200\n"},
		"old json":   {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_JsonFormat{JsonFormat: tree(t, js)}}, `{"c":200,"n":null}` + "\n"},
		"typed json": {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_TypedJsonFormat{TypedJsonFormat: tree(t, js)}}, `{"c":200,"n":null}` + "\n"},
		"text":       {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: inline("%HOSTNAME% %REQ(x)%\n")}}, "h -\n"},
		"omit":       {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: omit}}, "[]\n"},
		"formatter":  {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: extra}}, "-\n"},
		"json": {&filev3.FileAccessLog{AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: tree(t, js)}}}}, `{"c":200,"n":null}` + "\n"},
	} {
		d := newDisk()
		r := newRig(t, 1, accesslog.Config{Open: d.open})
		tc.config.Path = "/log"
		l, err := accesslog.New(fileLog(t, tc.config), r.deps())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		i := code(200)
		i.Start, i.StartWall, i.End = 1, epoch.UnixNano(), 1+5*int64(time.Millisecond)
		l.Log(r.workers[0], i, api.DownstreamEnd)
		r.close()
		if got := d.files["/log"].String(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	d := newDisk()
	r := newRig(t, 1, accesslog.Config{Open: d.open})
	lf := func(f *corev3.SubstitutionFormatString) *accesslogv3.AccessLog {
		return fileLog(t, &filev3.FileAccessLog{Path: "/log", AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: f}})
	}
	source := func(s *corev3.DataSource) *corev3.SubstitutionFormatString {
		return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: s}}
	}
	withFormatter := inline("x")
	withFormatter.Formatters = []*corev3.TypedExtensionConfig{{Name: "zz", TypedConfig: pack(t, &wrapperspb.StringValue{})}}
	filter := func(f *accesslogv3.AccessLogFilter) *accesslogv3.AccessLog {
		a := lf(inline("x"))
		a.Filter = f
		return a
	}
	for want, a := range map[string]*accesslogv3.AccessLog{
		"typed_config.log_format.text_format_source.inline_string: Not supported field in StreamInfo: BOGUS": lf(inline("%BOGUS%")),
		"typed_config.log_format.text_format_source: Invalid path: /nope":                                    lf(source(&corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/nope"}})),
		"typed_config.log_format.text_format_source: Environment variable doesn't exist: NOPE":               lf(source(&corev3.DataSource{Specifier: &corev3.DataSource_EnvironmentVariable{EnvironmentVariable: "NOPE"}})),
		"typed_config.log_format: Formatter not found: zz":                                                   lf(withFormatter),
		"typed_config: Didn't find a registered implementation for 'x' with type URL: 'google.protobuf.StringValue'": {Name: "x",
			ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: pack(t, &wrapperspb.StringValue{})}},
		"typed_config: Didn't find a registered implementation for 'x' with type URL: ''; allowed: a name together with a typed_config, whose @type says what it is": {Name: "x"},
		"filter: Didn't find a registered implementation for 'e' with type URL: ''; allowed: a name together with a typed_config, whose @type says what it is": filter(&accesslogv3.AccessLogFilter{
			FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{ExtensionFilter: &accesslogv3.ExtensionFilter{Name: "e"}}}),
		"filter: access log traceable_filter is not supported yet": filter(&accesslogv3.AccessLogFilter{
			FilterSpecifier: &accesslogv3.AccessLogFilter_TraceableFilter{TraceableFilter: &accesslogv3.TraceableFilter{}}}),
		`filter: access log response_flag_filter: there is no response flag "XX"`: filter(&accesslogv3.AccessLogFilter{
			FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: []string{"XX"}}}}),
	} {
		if _, err := accesslog.New(a, r.deps()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// Whatever fails gives up the files that it had opened.
	if _, err := accesslog.NewAll([]*accesslogv3.AccessLog{lf(inline("x")), lf(inline("%BOGUS%"))}, r.deps()); err == nil {
		t.Error("the list is accepted")
	}
	if len(d.opened) == 0 {
		t.Fatal("no file was opened")
	}
	r.until("every file to be closed", func() bool {
		f := d.files["/log"]
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.closed == len(d.opened)
	})
}

func TestStreamConfig(t *testing.T) {
	var out, errs strings.Builder
	r := newRig(t, 1, accesslog.Config{Stdout: &out, Stderr: &errs})
	for _, m := range []proto.Message{
		&streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: inline("o\n")}},
		&streamv3.StderrAccessLog{AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: inline("e\n")}},
	} {
		l, err := accesslog.New(&accesslogv3.AccessLog{ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: pack(t, m)}}, r.deps())
		if err != nil {
			t.Fatal(err)
		}
		l.Log(r.workers[0], code(200), api.DownstreamEnd)
	}
	r.close()
	if out.String() != "o\n" || errs.String() != "e\n" {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
}

type runtime struct{ ints map[string]uint64 }

func (r runtime) Integer(key string, def uint64) uint64 {
	if v, ok := r.ints[key]; ok {
		return v
	}
	return def
}

func (r runtime) Enabled(key string, numerator, random, denominator uint64) bool {
	return random%denominator < r.Integer(key, numerator)
}

func requestHeaders(kv ...string) *http.HeaderMap {
	var a http.Arena
	a.Init(&http.ArenaPool{})
	m := &http.HeaderMap{}
	m.Init(&a)
	for i := 0; i < len(kv); i += 2 {
		m.AddName(kv[i], kv[i+1])
	}
	return m
}

func TestFilters(t *testing.T) {
	info := func() *stream.Info {
		i := code(503)
		i.Start, i.End = 1, 1+100*int64(time.Millisecond)
		i.Flags.Set(stream.UpstreamConnectionFailure)
		i.RequestHeaders = requestHeaders("x-a", "1", "x-request-id", "0000000a-0000-4000-8000-000000000000") // 10
		i.ResponseHeaders = requestHeaders("grpc-status", "14")
		md := i.Metadata()
		md.Set("ns", "s", "a")
		md.Set("ns", "n", 1.5)
		md.Set("ns", "z", nil)
		md.Set("ns", "b", true)
		md.Set("ns", "l", []any{"x", "a"})
		return i
	}
	meta := func(key, value, more string) string {
		return `{"metadataFilter": {"matcher": {"filter": "ns", "path": [{"key": "` + key + `"}], "value": ` + value + `}` + more + `}}`
	}
	for f, want := range map[string]bool{
		`{"statusCodeFilter": {"comparison": {"op": "GE", "value": {"defaultValue": 503, "runtimeKey": "x"}}}}`:   true,
		`{"statusCodeFilter": {"comparison": {"op": "GE", "value": {"defaultValue": 504, "runtimeKey": "x"}}}}`:   false,
		`{"statusCodeFilter": {"comparison": {"op": "GE", "value": {"defaultValue": 504, "runtimeKey": "low"}}}}`: true,
		`{"statusCodeFilter": {"comparison": {"op": "EQ", "value": {"defaultValue": 503}}}}`:                      true,
		`{"statusCodeFilter": {"comparison": {"op": "LE", "value": {"defaultValue": 502}}}}`:                      false,
		`{"statusCodeFilter": {"comparison": {"op": "LE", "value": {"defaultValue": 503}}}}`:                      true,
		`{"statusCodeFilter": {"comparison": {"op": "NE", "value": {"defaultValue": 503}}}}`:                      false,
		`{"durationFilter": {"comparison": {"op": "GE", "value": {"defaultValue": 100}}}}`:                        true,
		`{"durationFilter": {"comparison": {"op": "GE", "value": {"defaultValue": 101}}}}`:                        false,
		`{"notHealthCheckFilter": {}}`: true,
		`{"runtimeFilter": {"runtimeKey": "x", "percentSampled": {"numerator": 10}}}`:                                               false,
		`{"runtimeFilter": {"runtimeKey": "x", "percentSampled": {"numerator": 11}}}`:                                               true,
		`{"runtimeFilter": {"runtimeKey": "x", "percentSampled": {"numerator": 11, "denominator": "MILLION"}}}`:                     true,
		`{"runtimeFilter": {"runtimeKey": "low", "percentSampled": {"numerator": 100}}}`:                                            false,
		`{"runtimeFilter": {"runtimeKey": "x", "useIndependentRandomness": true}}`:                                                  false,
		`{"runtimeFilter": {"runtimeKey": "x", "percentSampled": {"numerator": 100}, "useIndependentRandomness": true}}`:            true,
		`{"andFilter": {"filters": [{"notHealthCheckFilter": {}}, {"headerFilter": {"header": {"name": "x-a"}}}]}}`:                 true,
		`{"andFilter": {"filters": [{"notHealthCheckFilter": {}}, {"headerFilter": {"header": {"name": "x-b"}}}]}}`:                 false,
		`{"orFilter": {"filters": [{"headerFilter": {"header": {"name": "x-b"}}}, {"notHealthCheckFilter": {}}]}}`:                  true,
		`{"orFilter": {"filters": [{"headerFilter": {"header": {"name": "x-b"}}}, {"headerFilter": {"header": {"name": "x-c"}}}]}}`: false,
		`{"responseFlagFilter": {}}`:                                                                            true,
		`{"responseFlagFilter": {"flags": ["UH", "UF"]}}`:                                                       true,
		`{"responseFlagFilter": {"flags": ["UH"]}}`:                                                             false,
		`{"grpcStatusFilter": {"statuses": ["UNAVAILABLE"]}}`:                                                   true,
		`{"grpcStatusFilter": {"statuses": ["OK"]}}`:                                                            false,
		`{"grpcStatusFilter": {"statuses": ["UNAVAILABLE"], "exclude": true}}`:                                  false,
		`{"logTypeFilter": {"types": ["DownstreamEnd"]}}`:                                                       true,
		`{"logTypeFilter": {"types": ["DownstreamEnd"], "exclude": true}}`:                                      false,
		`{"logTypeFilter": {"types": ["DownstreamStart"]}}`:                                                     false,
		meta("s", `{"stringMatch": {"exact": "a"}}`, ""):                                                        true,
		meta("s", `{"stringMatch": {"exact": "b"}}`, ""):                                                        false,
		meta("q", `{"stringMatch": {"exact": "b"}}`, ""):                                                        true,
		meta("q", `{"stringMatch": {"exact": "b"}}`, `, "matchIfKeyNotFound": false`):                           false,
		meta("z", `{"nullMatch": {}}`, `, "matchIfKeyNotFound": false`):                                         true,
		meta("b", `{"boolMatch": true}`, ""):                                                                    true,
		meta("b", `{"boolMatch": false}`, ""):                                                                   false,
		meta("n", `{"doubleMatch": {"exact": 1.5}}`, ""):                                                        true,
		meta("n", `{"doubleMatch": {"range": {"start": 1, "end": 1.5}}}`, ""):                                   false,
		meta("n", `{"presentMatch": true}`, ""):                                                                 true,
		meta("n", `{"presentMatch": false}`, ""):                                                                false,
		meta("l", `{"listMatch": {"oneOf": {"stringMatch": {"exact": "a"}}}}`, ""):                              true,
		meta("s", `{"orMatch": {"valueMatchers": [{"boolMatch": true}, {"stringMatch": {"exact": "a"}}]}}`, ""): true,
		`{"metadataFilter": {}}`:                                                                                true,
		`{"metadataFilter": {"matchIfKeyNotFound": false}}`:                                                     false,
	} {
		r := newRig(t, 1, accesslog.Config{Open: newDisk().open})
		d := r.deps()
		d.Runtime = runtime{map[string]uint64{"low": 5}}
		c := &accesslogv3.AccessLogFilter{}
		if err := protojson.Unmarshal([]byte(f), c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		g, err := accesslog.NewFilter(c, d)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if got := g.Log(r.workers[0], info(), api.DownstreamEnd); got != want {
			t.Errorf("%s: %v", f, got)
		}
	}
}

// Nothing is known of a stream: filters answer, and header filters see no headers.
func TestFiltersWithoutFacts(t *testing.T) {
	r := newRig(t, 1, accesslog.Config{Open: newDisk().open})
	for f, want := range map[string]bool{
		`{"headerFilter": {"header": {"name": "x-b"}}}`:                                    false,
		`{"statusCodeFilter": {"comparison": {"op": "EQ", "value": {"defaultValue": 0}}}}`: true,
		`{"grpcStatusFilter": {"statuses": ["UNKNOWN"]}}`:                                  true,
		`{"responseFlagFilter": {}}`:                                                       false,
	} {
		c := &accesslogv3.AccessLogFilter{}
		if err := protojson.Unmarshal([]byte(f), c); err != nil {
			t.Fatal(err)
		}
		g, err := accesslog.NewFilter(c, r.deps())
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Log(r.workers[0], &stream.Info{}, api.NotSet); got != want {
			t.Errorf("%s: %v", f, got)
		}
	}
	accesslog.Filtered(reject{}, panics{}).Log(r.workers[0], &stream.Info{}, api.NotSet)
}

// Our types have the numbers of Envoy's enum.
func TestTypeNumbers(t *testing.T) {
	for n, name := range dataaccesslogv3.AccessLogType_name {
		if got := api.Type(n).String(); got != name {
			t.Errorf("%d is %s, want %s", n, got, name)
		}
	}
}
