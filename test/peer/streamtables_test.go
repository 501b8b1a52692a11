//go:build peers

package peer_test

// What the generator of HTTP/1 streams chooses from. Where the first entry is a right one, it is taken most of the time.
var (
	methods = []string{"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "QUERY", "PROPFIND", "M-SEARCH", "MSEARCH",
		"FOO", "get", "G@T", "", "G\x80T", "PRI", "PURGE", "LINK", "Get", "GET\t"}
	blanks   = []string{" ", "  ", "\t", " \t", "", "\r", "\x00", "\x0b", "   "}
	versions = []string{"HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "HTTP/3.7", "http/1.1", "HTTP/1.10", "HTTP/1.", "HTTP/11", "", "HTTP/1.1 ",
		"XTTP/1.1", "HTTP/1.1\t", "HTTP /1.1", "HTTP/1.1 x", "HTTP/1,1", "HTTP/01.1", "HTTP/1.1\r", "HTTP/ 1.1"}
	targets = []string{"/", "/a/b?c=d", "*", "http://h/x", "https://h:8443/y?z", "h:80", "//x", "/a/../b", "/%2e%2e/", "/a%2Fb", "/a%5cb", "/a\\b", "/#f", "/a b",
		"", "http://", "http:///x", "ftp://x/", "http://u@h/", "http://u:p@h/", "http://h@h@x/", "/\x80", "/a\tb", "/%00", "/..;x/", "http://[::1]:80/",
		"http://h:99999/", "?x", "http://h?x", "HTTP://H/X", "a", "/a/./b", "/a//b", "/a//../b", "/%", "/%zz", "/%41", "/a?b#c", "http://h#f", "http://h:/",
		"http://[::1/", "http://h_x/", "http://h/../a", "http:/x", "http:x", "://x", "/a\"b", "/<a>", "/a{b}", "/a|b", "/a^b", "/a`b", "/a;b", "/;", "/..", "/.", "/...",
		"/a/..", "/a/.", "/a%", "/a%2", "/%2F%2f", "/%5C", "/a?%2f", "/?", "/??", "/a?b?c", "/\x7f", "/\x01", "/a/%2e%2e%2fb", "http://1.2.3.4/", "http://-h/", "http://h./",
		"/%c3%a9", "/\xc3\xa9", "/A/B", "http://h:080/", "http://h:-1/", "http://h:8 0/", "http://%68/", "http://h%2fx/", "/x/../../..", "/x;a=b/../y", "/%2E", "/%7e", "/~"}
	eols      = []string{"\r\n", "\n", "\r", "\r\r\n", " \r\n", "\n\r", "\r\n\n", "\x00\r\n", "\r \n"}
	hostNames = []string{"host", "Host", "HOST", "hOsT", ":authority", "host "}
	hosts     = []string{"h", "h.example.com", "h:80", "h:8080", "", "h,x", "h x", "[::1]", "[::1]:80", "h\x80", "u@h", "h/x", "h?", "H", "h.", "h.:80", "h:", "h:x", "h_x",
		"h#", "h\"", "<h>", "h|x", "h\\x", "%68", "h;x", "(h)", "*", "h=x", "h&x", "h:80:81", "-", "h\tx", "h^", "h`", "{h}", "h$", "h!", "'h'", "h+"}
	oddNames = []string{"", " ", "x y", "x\x00", "x(", "x/", "x\x80", "\x80", "x[", "x{y}", "x\"", "x,y", "x;y", "x@", "x=", ":path", ":method", ":scheme", ":status", ":x", "x:y",
		" x", "\tx", "x\x7f", "x\r", "x\x01", "x_y", "X_Y", "_", "x.y", "x!", "x#$%&'*+-.^_`|~", "x<", "x\\"}
	lengths = []string{"0", "3", "5", "+5", "-1", "5, 5", "5,5", "0x5", "05", "005", "5 5", "", "18446744073709551615", "18446744073709551616", "99999999999999999999", "1e3", "5a", "a",
		"5.0", " 5", "5\t", "0, 0", "٥", "\x005", "4294967296", "9223372036854775808"}
	codings = []string{"chunked", "Chunked", "CHUNKED", "chunked, chunked", "gzip, chunked", "identity", "chunked;x", "chunked, identity", "\x0bchunked", "chunke", "", "xchunked",
		"chunked,", ",chunked", "chunked gzip", "\"chunked\"", "chunked\x00", "gzip", "deflate", "chunked, gzip", "chunked\r\n gzip", "identity, chunked", "trailers", "chunked\t"}
	extensions = []string{"", ";a=b", ";a", ";", " ;a", "; a = \"b\"", ";a=\"\n\"", ";a=\"\r\n\"", ";\r", ";\n", " ", "\t", "x", ";a=\x00", ";\x80", ";a=\"b;c\"", "  ;x=y;z", "\r", "\n", ";\x01", ";a\r;b"}
	trailers   = []string{"x-t: 1", "X-T: 2", "content-length: 5", "transfer-encoding: chunked", "host: h", "x t: 1", "x-t", "x-t : 1", " x-t: 1", ": 1", ":path: /", "x-t: a\x00b", "x-t: a\x7fb",
		"connection: close", "x_t: 1", "x-t: 1\r\n folded", "x-t:", "\x80: 1", "te: x", "trailer: x", "x-t: \x80", "upgrade: foo", "authorization: x", "set-cookie: a"}
	oddBytes = []string{"\r", "\n", "\r\n", "\x00", " ", "\t", ":", ",", ";", "\x7f", "\x80", "\xff", "\x0b", "\x0c", "\x01", "0", "9", "a", "Z", "/", "?", "#", "%", "\"", "\\", "@", "(",
		"\r\n\r\n", "\n\n", "HTTP/1.1", "\x1b", "=", "-", "_", "[", "{", "\r\r", "\n\r\n"}
)

// headers are names with values that they might have.
var headers = [][]string{
	{"connection", "close", "keep-alive", "Keep-Alive", "upgrade", "Upgrade, close", "x-a", "te", "close, x-a", ",,", "host", "content-length", "transfer-encoding", ":path",
		"x-forwarded-for", "x-forwarded-proto", "a,b,c,d,e,f,g,h,i,j", "a,b,c,d,e,f,g,h", "upgrade, http2-settings", "close\x00", "", "cookie", "x-b, x_b", "CLOSE", "closed", "te, x-a"},
	{"Connection", "close", "keep-alive", "Upgrade"},
	{"proxy-connection", "close", "keep-alive", "x"},
	{"keep-alive", "timeout=5"},
	{"upgrade", "websocket", "h2c", "foo", "websocket, foo", "", "WebSocket", "H2C", "HTTP/2.0", "ignored"},
	{"http2-settings", "AAMAAABkAAQAAP__"},
	{"expect", "100-continue", "100-Continue", "foo", "100-continue, x"},
	{"te", "trailers", "gzip", "trailers, gzip", "gzip;q=1, trailers;q=0.5", "", "Trailers", "trailers;x"},
	{"trailer", "x-t"},
	{"x-a", "1", "", "  ", "a,b", "\x80", "é"},
	{"x-b", "1", "2"},
	{"X_B", "1"}, {"x_b", "2"},
	{"cookie", "a=b", "a=b; c=d", "", "a"}, {"Cookie", "e=f"},
	{"accept", "*/*"}, {"accept-encoding", "gzip"},
	{"user-agent", "t", ""},
	{"referer", "http://x/", "/y", "x", "http://", "a:b", "http://u@h/", "//x", "http://x/#f", ""},
	{"authorization", "Basic x"},
	{"content-type", "text/plain", "application/grpc", "application/grpc+proto", "application/json"},
	{"grpc-timeout", "1S", "x"},
	{"x-forwarded-for", "1.2.3.4", "1.2.3.4, 10.0.0.1", "x", "", "::1", "1.2.3.4:5", "10.0.0.1", "1.2.3.4,", ",", "1.2.3.4 , 5.6.7.8"},
	{"x-forwarded-proto", "https", "http", "ftp", "", "HTTPS", "https, http", "Http"},
	{"x-forwarded-host", "x"}, {"x-forwarded-port", "1"}, {"x-forwarded-client-cert", "Hash=x"}, {"forwarded", "for=1"},
	{"x-request-id", "a", "", "6d8c3a1e-7d4c-4a2b-9c1d-0123456789ab", "6d8c3a1e-7d4c-9a2b-9c1d-0123456789ab", "6d8c3a1e-7d4c-aa2b-9c1d-0123456789ab", "6d8c3a1e-7d4c-ba2b-9c1d-0123456789ab"},
	{"x-client-trace-id", "x"},
	{"x-envoy-internal", "true"}, {"x-envoy-external-address", "1.1.1.1"}, {"x-envoy-original-path", "/x"}, {"x-envoy-original-host", "x"}, {"x-envoy-force-trace", "true"},
	{"x-envoy-max-retries", "2"}, {"x-envoy-retry-on", "5xx"}, {"x-envoy-upstream-rq-timeout-ms", "5000"}, {"x-envoy-expected-rq-timeout-ms", "1"}, {"x-envoy-attempt-count", "1"},
	{"x-envoy-downstream-service-cluster", "x"}, {"x-envoy-decorator-operation", "x"}, {"x-envoy-ip-tags", "x"}, {"x-envoy-foo", "x"}, {"x-envoy-hedge-on-per-try-timeout", "true"},
	{"x-envoy-upstream-alt-stat-name", "x"}, {"x-envoy-peer-metadata", "x"}, {"x-envoy-is-timeout-retry", "x"}, {"x-envoy-original-dst-host", "1.2.3.4:5"}, {"x-envoy-livingness", "x"},
	{"via", "1.1 x"}, {"server", "x"}, {"date", "x"}, {"early-data", "1"}, {"max-forwards", "1"}, {"alt-svc", "x"}, {"set-cookie", "x"}, {"warning", "x"}, {"pragma", "x"},
	{"content-encoding", "gzip"}, {"range", "bytes=0-"}, {"if-none-match", "x"}, {"origin", "http://x"}, {"access-control-request-method", "GET"}, {"x-http-method-override", "PUT"},
	{"x-ot-span-context", "x"}, {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, {"x-b3-sampled", "1"}, {"host", "other", "h", ""}, {"Host", "other"},
	{"sec-websocket-key", "x"}, {"location", "/x"}, {"status", "200"}, {"path", "/x"}, {"method", "GET"}, {"scheme", "https"}, {"protocol", "x"}, {"authority", "x"},
	{"content-length", "0"}, {"content-length ", "5"}, {"transfer-encoding ", "chunked"}, {"transfer_encoding", "chunked"}, {"content_length", "5"}, {"refresh", "x"},
}

// What upstreams say.
var (
	answerCodes = []string{"200", "204", "304", "206", "404", "500", "503", "101", "100", "199", "201", "299", "302", "99", "1000", "20", "2000", "abc", "", "0200", "-200", "600",
		"999", "426", "20x", "+200"}
	reasonPhrases = []string{"OK", "", "Not OK at all", "\x80", "a\tb", "\x00", "é", "\x7f", "OK ", "\r"}
	answerFields  = [][]string{
		{"connection", "close", "keep-alive", "upgrade", "x-a", "Close"}, {"proxy-connection", "close"}, {"keep-alive", "timeout=1"},
		{"server", "up", ""}, {"date", "Thu, 01 Jan 1970 00:00:00 GMT", "x"}, {"content-type", "text/plain", "application/grpc"}, {"location", "/x"}, {"set-cookie", "a=b", "c=d"},
		{"x-a", "1", "", "\x80", "a,b"}, {"X-Proper-Case", "1"}, {"x_u", "1"}, {"via", "1.1 up"}, {"trailer", "x-t"}, {"upgrade", "websocket", "h2c", "foo"}, {"alt-svc", "x"},
		{"x-envoy-upstream-service-time", "5"}, {"x-envoy-overloaded", "true"}, {"x-envoy-degraded", "true"}, {"x-envoy-immediate-health-check-fail", "true"}, {"x-envoy-foo", "x"},
		{"x-envoy-attempt-count", "2"}, {"x-envoy-decorator-operation", "x"}, {"x-request-id", "up"}, {"grpc-status", "0", "5", "x"}, {"grpc-message", "m"}, {"www-authenticate", "Basic"},
		{"content-encoding", "gzip"}, {"etag", "x"}, {"vary", "a", "b"}, {"host", "up"}, {":status", "404"}, {"status", "404"}, {"te", "trailers"}, {"http2-settings", "x"},
		{"proxy-status", "x"}, {"x-forwarded-for", "1.2.3.4"}, {"strict-transport-security", "x"}, {"content-length", "0", "5"}, {"transfer-encoding", "chunked", "gzip"},
		{"x-envoy-ratelimited", "true"}, {"retry-after", "1"}, {"expect", "100-continue"}, {"warning", "x"}, {"age", "1"},
	}
)
