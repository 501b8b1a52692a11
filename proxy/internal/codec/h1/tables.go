package h1

// Character classes. A class is a bit of the table, so that one load answers any question.
const (
	ctToken  = 1 << iota // RFC 9110, 5.6.2 tchar
	ctURL                // allowed in a request target's path and query: as Envoy, also TAB and FF
	ctHost               // allowed in the host of an absolute or authority form target
	ctAuth               // allowed in a host header
	ctScheme             // after a scheme's first letter
	ctAlpha
	ctName // allowed in the host of a target that is taken apart
)

// lower maps a token character to itself in lower case and everything else to 0.
var lower = func() (t [256]byte) {
	for c := range t {
		if isToken(byte(c)) {
			t[c] = byte(c)
			if c >= 'A' && c <= 'Z' {
				t[c] += 'a' - 'A'
			}
		}
	}
	return t
}()

var class = func() (t [256]byte) {
	for i := range t {
		c := byte(i)
		alpha := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if isToken(c) {
			t[i] |= ctToken
		}
		if c == 9 || c == 12 || c > ' ' && c < 0x7f {
			t[i] |= ctURL
		}
		if alpha || digit || in(c, "!$%&'()*+,-.:;=@[]_~") {
			t[i] |= ctHost | ctAuth
		}
		if alpha || digit || in(c, "+-.") {
			t[i] |= ctScheme
		}
		if alpha || digit || in(c, "-.") {
			t[i] |= ctName
		}
		if alpha {
			t[i] |= ctAlpha
		}
	}
	return t
}()

func in(c byte, set string) bool {
	for i := 0; i < len(set); i++ {
		if set[i] == c {
			return true
		}
	}
	return false
}

func isToken(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || in(c, "!#$%&'*+-.^_`|~")
}

// allOf tells whether all bytes of s are in the class.
func allOf(s string, bit byte) bool {
	for i := 0; i < len(s); i++ {
		if class[s[i]]&bit == 0 {
			return false
		}
	}
	return true
}

// methods are those that Envoy's parser takes without allow_custom_methods.
var methods = func() map[string]string {
	m := map[string]string{}
	for _, s := range []string{
		"ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "MERGE", "MKACTIVITY",
		"MKCALENDAR", "MKCOL", "MOVE", "MSEARCH", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE",
		"PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
	} {
		m[s] = s
	}
	return m
}()

// method returns the constant for a method, "" if it is unknown.
func method(b []byte) string {
	switch string(b) {
	case "GET":
		return "GET"
	case "POST":
		return "POST"
	case "PUT":
		return "PUT"
	case "HEAD":
		return "HEAD"
	}
	return methods[string(b)]
}

// reasons are the reason phrases by status.
var reasons = map[int]string{
	100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
	200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
	205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used",
	300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy",
	307: "Temporary Redirect", 308: "Permanent Redirect",
	400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
	405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout",
	409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large",
	414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
	421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency",
	425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
	500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
	504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage",
	508: "Loop Detected", 510: "Not Extended", 511: "Network Authentication Required",
	599: "Last Unassigned Server Error Code",
}

// Reason returns the reason phrase of a status, "Unknown" if it has none.
func Reason(status int) string {
	if r, ok := reasons[status]; ok {
		return r
	}
	return "Unknown"
}

// statusLines are the first lines of HTTP/1.1 responses, by status.
var statusLines = func() (t [1000]string) {
	for i := 100; i < len(t); i++ {
		t[i] = "HTTP/1.1 " + string([]byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)}) + " " + Reason(i) + "\r\n"
	}
	return t
}()
