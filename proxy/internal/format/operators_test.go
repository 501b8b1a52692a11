package format_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// The values are those that Envoy 1.40 gave for the same facts.
func TestOperators(t *testing.T) {
	cases := []struct{ op, text, json string }{
		{"ACCESS_LOG_TYPE", "DownstreamEnd", `"DownstreamEnd"`},
		{"BYTES_RECEIVED", "3", "3"},
		{"BYTES_SENT", "13", "13"},
		{"CONNECTION_ID", "2", "2"},
		{"CONNECTION_TERMINATION_DETAILS", "-", "null"},
		{"CUSTOM_FLAGS", "", `""`},
		{"DOWNSTREAM_DETECTED_CLOSE_TYPE", "Normal", `"Normal"`},
		{"DOWNSTREAM_DIRECT_LOCAL_ADDRESS", "127.0.0.1:8081", `"127.0.0.1:8081"`},
		{"DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID", "", `""`},
		{"DOWNSTREAM_DIRECT_LOCAL_PORT", "8081", "8081"},
		{"DOWNSTREAM_DIRECT_REMOTE_ADDRESS", "127.0.0.1:41000", `"127.0.0.1:41000"`},
		{"DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT", "127.0.0.1", `"127.0.0.1"`},
		{"DOWNSTREAM_DIRECT_REMOTE_PORT", "41000", "41000"},
		{"DOWNSTREAM_HANDSHAKE_DURATION", "-", "null"},
		{"DOWNSTREAM_HEADER_BYTES_RECEIVED", "55", "55"},
		{"DOWNSTREAM_HEADER_BYTES_SENT", "160", "160"},
		{"DOWNSTREAM_LOCAL_ADDRESS", "127.0.0.1:8080", `"127.0.0.1:8080"`},
		{"DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(a)", "127.0.0.1", `"127.0.0.1"`},
		{"DOWNSTREAM_LOCAL_CLOSE_REASON", "-", "null"},
		{"DOWNSTREAM_LOCAL_DNS_SAN", "-", "null"},
		{"DOWNSTREAM_LOCAL_PORT", "8080", "8080"},
		{"DOWNSTREAM_PEER_CERT_V_START", "-", "null"},
		{"DOWNSTREAM_PEER_SUBJECT", "-", "null"},
		{"DOWNSTREAM_REMOTE_ADDRESS", "10.0.0.7:40000", `"10.0.0.7:40000"`},
		{"DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", "10.0.0.7", `"10.0.0.7"`},
		{"DOWNSTREAM_REMOTE_PORT", "40000", "40000"},
		{"DOWNSTREAM_TLS_VERSION", "-", "null"},
		{"DOWNSTREAM_TRANSPORT_FAILURE_REASON", "-", "null"},
		{"DOWNSTREAM_WIRE_BYTES_RECEIVED", "95", "95"},
		{"DOWNSTREAM_WIRE_BYTES_SENT", "192", "192"},
		{"DURATION", "12", "12"},
		{"ENVIRONMENT(EMPTY)", "", `""`},
		{"ENVIRONMENT(FOO)", "bar", `"bar"`},
		{"ENVIRONMENT(FOO):2", "ba", `"ba"`},
		{"ENVIRONMENT(a)", "-", `"-"`},
		{"FILTER_CHAIN_NAME", "fc1", `"fc1"`},
		{"GRPC_STATUS", "-", "null"},
		{"GRPC_STATUS_NUMBER", "-", "null"},
		{"HOSTNAME", "vm", `"vm"`},
		{"LISTENER_NAME", "main", `"main"`},
		{"LOCAL_REPLY_BODY", "", `""`},
		{"PROTOCOL", "HTTP/1.1", `"HTTP/1.1"`},
		{"REQUESTED_SERVER_NAME", "-", "null"},
		{"REQUESTED_SERVER_NAME(HOST_FIRST)", "a.com", `"a.com"`},
		{"REQUESTED_SERVER_NAME(HOST_FIRST:ORIG)", "-", "null"},
		{"REQUESTED_SERVER_NAME(SNI_FIRST)", "a.com", `"a.com"`},
		{"REQUEST_DURATION", "2", "2"},
		{"REQUEST_TX_DURATION", "4", "4"},
		{"RESPONSE_CODE", "200", "200"},
		{"RESPONSE_CODE_DETAILS", "via_upstream", `"via_upstream"`},
		{"RESPONSE_DURATION", "8", "8"},
		{"RESPONSE_FLAGS", "-", `"-"`},
		{"RESPONSE_FLAGS_LONG", "-", `"-"`},
		{"RESPONSE_TRAILERS_BYTES", "0", "0"},
		{"RESPONSE_TX_DURATION", "3", "3"},
		{"ROUNDTRIP_DURATION", "-", "null"},
		{"ROUTE_NAME", "ru", `"ru"`},
		{"SPAN_ID", "-", "null"},
		{"STREAM_ID", "id-1", `"id-1"`},
		{"TRACE_ID", "-", "null"},
		{"UPSTREAM_CLUSTER", "up", `"up"`},
		{"UPSTREAM_CLUSTER_RAW", "raw", `"raw"`},
		{"UPSTREAM_CONNECTION_ID", "3", "3"},
		{"UPSTREAM_CONNECTION_IDS_ATTEMPTED", "3", `"3"`},
		{"UPSTREAM_CONNECTION_POOL_READY_DURATION", "3", "3"},
		{"UPSTREAM_HEADER_BYTES_RECEIVED", "120", "120"},
		{"UPSTREAM_HEADER_BYTES_SENT", "156", "156"},
		{"UPSTREAM_FILTER_STATE(my.k)", "-", "null"},
		{"UPSTREAM_HOST", "127.0.0.1:55437", `"127.0.0.1:55437"`},
		{"UPSTREAM_HOSTS_ATTEMPTED", "127.0.0.1:55437", `"127.0.0.1:55437"`},
		{"UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT", "127.0.0.1", `"127.0.0.1"`},
		{"UPSTREAM_HOST_NAMES_ATTEMPTED", "hn.example", `"hn.example"`},
		{"UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT", "hn.example", `"hn.example"`},
		{"UPSTREAM_HOST_NAME", "hn.example", `"hn.example"`},
		{"UPSTREAM_HOST_NAME_WITHOUT_PORT", "hn.example", `"hn.example"`},
		{"UPSTREAM_LOCAL_ADDRESS", "127.0.0.1:52056", `"127.0.0.1:52056"`},
		{"UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", "127.0.0.1", `"127.0.0.1"`},
		{"UPSTREAM_LOCAL_PORT", "52056", "52056"},
		{"UPSTREAM_PEER_SUBJECT", "-", "null"},
		{"UPSTREAM_PROTOCOL", "HTTP/1.1", `"HTTP/1.1"`},
		{"UPSTREAM_REMOTE_ADDRESS", "127.0.0.1:55437", `"127.0.0.1:55437"`},
		{"UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID", "", `""`},
		{"UPSTREAM_REMOTE_PORT", "55437", "55437"},
		{"UPSTREAM_REQUEST_ATTEMPT_COUNT", "1", "1"},
		{"UPSTREAM_TRANSPORT_FAILURE_REASON", "-", "null"},
		{"UPSTREAM_WIRE_BYTES_RECEIVED", "158", "158"},
		{"UPSTREAM_WIRE_BYTES_SENT", "192", "192"},
		{"VIRTUAL_CLUSTER_NAME", "-", "null"},

		{"COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)", "2000", "2000"},
		{"COMMON_DURATION(DS_RX_BEG:DS_RX_END)", "2", "2"},
		{"COMMON_DURATION(DS_RX_BEG:DS_TX_END:ns)", "11000000", "11000000"},
		{"COMMON_DURATION(DS_RX_END:DS_RX_BEG:us)", "-", "null"},
		{"COMMON_DURATION(DS_CX_BEG:DS_TX_BEG)", "20", "20"},
		{"COMMON_DURATION(US_TX_BEG:US_RX_END)", "6", "6"},
		{"COMMON_DURATION(US_CX_BEG:US_HS_END)", "-", "null"},
		{"COMMON_DURATION(FOO:BAR:ms)", "-", "null"},

		{"REQ(:METHOD)", "GET", `"GET"`},
		{"REQ(x-none)", "-", "null"},
		{"REQ(?X-A)", "vwx", `"vwx"`},
		{"REQ(X-A?)", "vwx", `"vwx"`},
		{"REQ(X-E)", "", `""`},
		{"REQ(X-E?X-A)", "", `""`},
		{"REQ(X-NONE?X-A)", "vwx", `"vwx"`},
		{"REQ(x-dup)", "a", `"a"`},
		{"REQ(X-A):2", "vw", `"vw"`},
		{"REQ(X-A):0", "", `""`},
		{"REQ(X-A):99999999999", "vwx", `"vwx"`},
		{"REQ(host)", "a.com", `"a.com"`},
		{"REQ(:AUTHORITY):2", "a.", `"a."`},
		{"REQ(X-Q)", `q"\/<>&` + "é\t", `"q\"\\/<>&é\t"`},
		{"REQUEST_HEADER(x-a)", "vwx", `"vwx"`},
		{"STREAM_INFO_REQ(x-none?x-a):2", "vw", `"vw"`},
		{"RESP(content-type?x-u)", "text/plain", `"text/plain"`},
		{"RESP(:status)", "200", `"200"`},
		{"RESPONSE_HEADER(x-u)", "uv", `"uv"`},
		{"TRAILER(a)", "-", "null"},

		{"PATH", "/up/x?q=1&r=%41%20b+c&s&t=%4&q=2&e=&u=a%26b", `"/up/x?q=1&r=%41%20b+c&s&t=%4&q=2&e=&u=a%26b"`},
		{"PATH(NQ)", "/up/x", `"/up/x"`},
		{"PATH(WQ:ORIG)", "-", "null"},
		{"PATH(NQ:ORIG_OR_PATH)", "/up/x", `"/up/x"`},
		{"PATH(NQ):4", "/up/", `"/up/"`},
		{"QUERY_PARAM(q)", "1", `"1"`},
		{"QUERY_PARAM(r)", "A b+c", `"A b+c"`},
		{"QUERY_PARAM(s)", "", `""`},
		{"QUERY_PARAM(t)", "%4", `"%4"`},
		{"QUERY_PARAM(nope)", "-", "null"},
		{"QUERY_PARAMS", "q=1&r=%41%20b+c&s&t=%4&q=2&e=&u=a%26b", `"q=1&r=%41%20b+c&s&t=%4&q=2&e=&u=a%26b"`},
		{"QUERY_PARAMS(DECODED)", "q=1&r=A%20b+c&s&t=4&q=2&e=&u=a&b", `"q=1&r=A%20b+c&s&t=4&q=2&e=&u=a&b"`},
		{"QUERY_PARAMS(ORIG):4", "q=1&", `"q=1&"`},

		{"DYNAMIC_METADATA(ns:s)", "str\"q\\ \t é <", `"str\"q\\ \t é <"`},
		{"DYNAMIC_METADATA(ns:s):2", "st", `"st"`},
		{"DYNAMIC_METADATA(ns:m)", "123456789.125", "123456789.125"},
		{"DYNAMIC_METADATA(ns:m):2", "12", "123456789.125"},
		{"DYNAMIC_METADATA(ns:t):2", "tr", "true"},
		{"DYNAMIC_METADATA(ns:z)", "-", "null"},
		{"DYNAMIC_METADATA(ns:e)", "", `""`},
		{"DYNAMIC_METADATA(ns:o)", `{"MM":[],"aa":{"b":"c"},"zz":1}`, `{"MM":[],"aa":{"b":"c"},"zz":1}`},
		{"DYNAMIC_METADATA(ns:o):3", `{"M`, `{"MM":[],"aa":{"b":"c"},"zz":1}`},
		{"DYNAMIC_METADATA(ns:o:aa:b)", "c", `"c"`},
		{"DYNAMIC_METADATA(ns:o:zz:c)", "-", "null"},
		{"DYNAMIC_METADATA(ns:)", "-", "null"},
		{"DYNAMIC_METADATA(nope:t)", "-", "null"},
		{"METADATA(DYNAMIC:ns:s):3", "str", `"str"`},
		{"METADATA(DYNAMIC)", "-", "null"},
		{"METADATA(ROUTE:m:k)", "rv", `"rv"`},
		{"METADATA(ROUTE:m:l)", `[1,"a",null]`, `[1,"a",null]`},
		{"METADATA(ROUTE:m:n)", "1.5", "1.5"},
		{"METADATA(CLUSTER:m:k)", "cv", `"cv"`},
		{"METADATA(LISTENER:m:k)", "lv", `"lv"`},
		{"METADATA(UPSTREAM_HOST:m:k)", "ev", `"ev"`},
		{"METADATA(LISTENER_FILTER_CHAIN:m:k)", "-", "null"},
		{"CLUSTER_METADATA(m)", `{"k":"cv"}`, `{"k":"cv"}`},
		{"UPSTREAM_METADATA(m:k)", "ev", `"ev"`},
		{"FILTER_STATE(my.k)", `"val\"ue POST"`, `"val\"ue POST"`},
		{"FILTER_STATE(my.k:PLAIN)", `val"ue POST`, `"val\"ue POST"`},
		{"FILTER_STATE(my.k:PLAIN):3", "val", `"val"`},
		{"FILTER_STATE(my.k):3", `"va`, `"val\"ue POST"`},
		{"FILTER_STATE(my.k:FIELD:x)", "-", "null"},
		{"FILTER_STATE(opaque)", "-", "null"},
		{"FILTER_STATE(opaque:PLAIN)", "cl", `"cl"`},
		{"FILTER_STATE(person)", `{"a":"x","b":1}`, `{"a":"x","b":1}`},
		{"FILTER_STATE(person:FIELD:name)", "kim", `"kim"`},
		{"FILTER_STATE(person:FIELD:age)", "42", `"42"`},
		{"FILTER_STATE(person:FIELD:x)", "-", "null"},

		{`COALESCE({"operators": ["REQUESTED_SERVER_NAME", {"command":"REQ","param":"x-a"}]})`, "vwx", `"vwx"`},
		{`COALESCE({"operators": ["REQUESTED_SERVER_NAME", {"command":"REQ","param":"x-nope"}]})`, "-", "null"},
		{`COALESCE({"operators": ["RESPONSE_CODE"]}):2`, "20", "200"},
		{`COALESCE({"operators": [{"command":"REQ","param":"x-a","max_length":2}]}):1`, "v", `"v"`},
		{`COALESCE({"operators": [{"command":"REQ","param":"x-a","max_length":2}]}):9`, "vw", `"vw"`},
		{`COALESCE({"operators": [{"command":"REQ","param":"x-e"},{"command":"REQ","param":"x-a"}]})`, "", `""`},
	}
	c := request()
	for _, tc := range cases {
		f := "%" + tc.op + "%"
		if got := evaluate(t, "x"+f+"y", c); got != "x"+tc.text+"y" {
			t.Errorf("%s: got %q, want %q", f, strings.TrimPrefix(got, "x"), tc.text)
		}
		if got := evaluateJSON(t, f, c); got != tc.json {
			t.Errorf("%s in JSON: got %s, want %s", f, got, tc.json)
		}
	}
}

func TestUniqueID(t *testing.T) {
	c := request()
	got := evaluate(t, "%UNIQUE_ID% %UNIQUE_ID%", c)
	a, b, _ := strings.Cut(got, " ")
	if len(a) != 36 || len(b) != 36 || a == b {
		t.Errorf("got %q", got)
	}
	c.Rand = nil
	if got := evaluate(t, "%UNIQUE_ID%", c); got != "-" {
		t.Errorf("without a source: got %q", got)
	}
}

// A stream of which nothing is known yet must print, not panic.
func TestEmptyInfo(t *testing.T) {
	c := &format.Context{Info: &stream.Info{}}
	want := "0 - - - - - - 0 - 0 - - 0 NotSet - - - - - -"
	got := evaluate(t, "%RESPONSE_CODE% %RESPONSE_FLAGS% %PROTOCOL% %REQ(a)% %RESP(a)% %TRAILER(a)% %PATH% %REQUEST_HEADERS_BYTES% %QUERY_PARAM(a)% "+
		"%CONNECTION_ID% %DOWNSTREAM_REMOTE_ADDRESS% %DURATION% %BYTES_SENT% %ACCESS_LOG_TYPE% %GRPC_STATUS% %UPSTREAM_REMOTE_ADDRESS% "+
		"%UPSTREAM_HOST_NAME% %DYNAMIC_METADATA(a)% %CLUSTER_METADATA(a)% %FILTER_STATE(a)%", c)
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWords(t *testing.T) {
	c := request()
	c.Info.Details = "upstream_reset_before_response_started{remote connection failure|delayed connect error: Connection refused}"
	c.Info.Upstream.Failure = "delayed connect error: Connection\trefused"
	c.Info.Flags.Set(stream.UpstreamRetryLimitExceeded)
	c.Info.Flags.Set(stream.UpstreamConnectionFailure)
	got := evaluate(t, "%RESPONSE_CODE_DETAILS%|%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%|%UPSTREAM_TRANSPORT_FAILURE_REASON%|%RESPONSE_FLAGS%|%RESPONSE_FLAGS_LONG%", c)
	want := "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}|" + c.Info.Details +
		"|delayed_connect_error:_Connection_refused|URX,UF|UpstreamRetryLimitExceeded,UpstreamConnectionFailure"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestGRPCStatus(t *testing.T) {
	const all = "%GRPC_STATUS% %GRPC_STATUS(SNAKE_STRING)% %GRPC_STATUS(NUMBER)% %GRPC_STATUS_NUMBER%"
	for status, want := range map[string]string{
		"0": "OK OK 0 0", "1": "Canceled CANCELLED 1 1", "5": "NotFound NOT_FOUND 5 5", "16": "Unauthenticated UNAUTHENTICATED 16 16",
		"17": "17 17 17 17", "-1": "-1 -1 -1 -1", "abc": "-1 -1 -1 -1", "05": "NotFound NOT_FOUND 5 5",
		"99999999999": "99999999999 99999999999 99999999999 99999999999",
	} {
		c := request()
		c.Info.RequestHeaders = headers("content-type", "application/grpc+proto")
		c.Info.ResponseHeaders = headers("grpc-status", status)
		if got := evaluate(t, all, c); got != want {
			t.Errorf("grpc-status %s: got %q, want %q", status, got, want)
		}
	}
	c := request()
	c.Info.RequestHeaders = headers("content-type", "application/grpc")
	c.Info.ResponseTrailers = headers("grpc-status", "3")
	c.Info.ResponseHeaders = headers("grpc-status", "5")
	if got := evaluate(t, "%GRPC_STATUS%", c); got != "InvalidArgument" {
		t.Errorf("trailers go first: got %q", got)
	}
	c.Info.ResponseTrailers, c.Info.ResponseHeaders = nil, nil
	for code, want := range map[int]string{400: "Internal", 401: "Unauthenticated", 403: "PermissionDenied", 404: "Unimplemented", 503: "Unavailable", 500: "Unknown", 0: "-"} {
		c.Info.Code = code
		if got := evaluate(t, "%GRPC_STATUS%", c); got != want {
			t.Errorf("HTTP %d: got %q, want %q", code, got, want)
		}
	}
	c.Info.Code = 200
	c.Info.RequestHeaders = headers("content-type", "application/grpc-web")
	if got := evaluate(t, "%GRPC_STATUS%", c); got != "-" {
		t.Errorf("not gRPC: got %q", got)
	}
}

func TestOmitEmpty(t *testing.T) {
	o := options()
	o.OmitEmpty = true
	f, err := format.ParseText("a%REQ(nope)%b %RESPONSE_CODE%", o)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.Evaluate(nil, request())); got != "ab 200" {
		t.Errorf("got %q", got)
	}
	h, err := format.ParseHeader("%REQ(nope)%", options())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(h.Evaluate(nil, request())); got != "" {
		t.Errorf("header: got %q", got)
	}
}

func TestLiteral(t *testing.T) {
	for f, want := range map[string]string{"": "", "plain": "plain", "100%%": "100%", "%HOSTNAME%-%ENVIRONMENT(FOO)%": "vm-bar", "%REQ(a)%": "!"} {
		p, err := format.ParseText(f, options())
		if err != nil {
			t.Fatal(err)
		}
		got, ok := p.Literal()
		if !ok {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", f, got, want)
		}
	}
}

func TestExtra(t *testing.T) {
	o := options()
	if _, err := format.ParseText("%REQ_WITHOUT_QUERY(:PATH)%", o); err == nil || err.Error() != "Not supported field in StreamInfo: REQ_WITHOUT_QUERY; it needs envoy.formatter.req_without_query among the formatters" {
		t.Errorf("without the extension: %v", err)
	}
	o.Extra = map[string]format.Extra{"REQ_WITHOUT_QUERY": format.ReqWithoutQuery}
	f, err := format.ParseText("%REQ_WITHOUT_QUERY(:PATH)% %REQ_WITHOUT_QUERY(X-NONE?:PATH):3% %REQ_WITHOUT_QUERY(X-NONE)%", o)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.Evaluate(nil, request())); got != "/up/x /up -" {
		t.Errorf("got %q", got)
	}
}

// Types of access logs print Envoy's names.
func TestTypes(t *testing.T) {
	var got []string
	for ty := accesslog.NotSet; ty <= accesslog.TCPConnectionStart; ty++ {
		got = append(got, ty.String())
	}
	want := []string{"NotSet", "TcpUpstreamConnected", "TcpPeriodic", "TcpConnectionEnd", "DownstreamStart", "DownstreamPeriodic", "DownstreamEnd",
		"UpstreamPoolReady", "UpstreamPeriodic", "UpstreamEnd", "DownstreamTunnelSuccessfullyEstablished", "UdpTunnelUpstreamConnected",
		"UdpPeriodic", "UdpSessionEnd", "TcpConnectionStart"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestHeaderBytes(t *testing.T) {
	c := request()
	c.Info.RequestHeaders = headers(":method", "GET", "x-a", "vwx")
	c.Info.ResponseTrailers = headers("t", "1")
	if got := evaluate(t, "%REQUEST_HEADERS_BYTES% %RESPONSE_TRAILERS_BYTES% %TRAILER(T)%", c); got != "16 2 1" {
		t.Errorf("got %q", got)
	}
	if http.Lookup("x-a") != http.None {
		t.Error("the test wants a header without an ID")
	}
}

// As Envoy 1.40: attempts of a TCP session add up, and without a connection there is nothing to tell of a request.
func TestAttempted(t *testing.T) {
	for _, c := range []struct {
		tried  []stream.Tried
		connID uint64
		want   string
	}{
		{nil, 0, "- - - - -"},
		{nil, 7, "127.0.0.1:55437 127.0.0.1 hn.example hn.example 7"},
		{[]stream.Tried{{Host: addr("10.0.0.1:80"), HostName: "a.test:80"}, {Host: addr("10.0.0.2:80")}}, 0,
			"10.0.0.1:80,10.0.0.2:80 10.0.0.1,10.0.0.2 a.test:80,10.0.0.2:80 a.test,10.0.0.2 -"},
		{[]stream.Tried{{Host: addr("10.0.0.1:80")}}, 7, "10.0.0.1:80,127.0.0.1:55437 10.0.0.1,127.0.0.1 10.0.0.1:80,hn.example 10.0.0.1,hn.example 7"},
	} {
		x := request()
		x.Info.Upstream.Tried, x.Info.Upstream.ConnID = c.tried, c.connID
		f, err := format.ParseText("%UPSTREAM_HOSTS_ATTEMPTED% %UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT% %UPSTREAM_HOST_NAMES_ATTEMPTED% "+
			"%UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT% %UPSTREAM_CONNECTION_IDS_ATTEMPTED%", options())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(f.Evaluate(nil, x)); got != c.want {
			t.Errorf("%v, connection %d: %q, want %q", c.tried, c.connID, got, c.want)
		}
	}
}
