package hpack

import "github.com/dragoman-proxy/dragoman/api/http"

// staticCount is the number of entries of the static table; dynamic entries begin after it.
const staticCount = 61

// staticFields is the static table (RFC 7541, appendix A).
var staticFields = [staticCount + 1][2]string{
	{"", ""},
	{":authority", ""}, {":method", "GET"}, {":method", "POST"}, {":path", "/"}, {":path", "/index.html"},
	{":scheme", "http"}, {":scheme", "https"},
	{":status", "200"}, {":status", "204"}, {":status", "206"}, {":status", "304"}, {":status", "400"}, {":status", "404"},
	{":status", "500"},
	{"accept-charset", ""}, {"accept-encoding", "gzip, deflate"}, {"accept-language", ""}, {"accept-ranges", ""},
	{"accept", ""}, {"access-control-allow-origin", ""}, {"age", ""}, {"allow", ""}, {"authorization", ""},
	{"cache-control", ""}, {"content-disposition", ""}, {"content-encoding", ""}, {"content-language", ""},
	{"content-length", ""}, {"content-location", ""}, {"content-range", ""}, {"content-type", ""}, {"cookie", ""},
	{"date", ""}, {"etag", ""}, {"expect", ""}, {"expires", ""}, {"from", ""}, {"host", ""}, {"if-match", ""},
	{"if-modified-since", ""}, {"if-none-match", ""}, {"if-range", ""}, {"if-unmodified-since", ""}, {"last-modified", ""},
	{"link", ""}, {"location", ""}, {"max-forwards", ""}, {"proxy-authenticate", ""}, {"proxy-authorization", ""},
	{"range", ""}, {"referer", ""}, {"refresh", ""}, {"retry-after", ""}, {"server", ""}, {"set-cookie", ""},
	{"strict-transport-security", ""}, {"transfer-encoding", ""}, {"user-agent", ""}, {"vary", ""}, {"via", ""},
	{"www-authenticate", ""},
}

// static is staticFields with IDs, ready to be copied into a result.
var static = makeStatic()

func makeStatic() (t [staticCount + 1]Field) {
	for i := 1; i <= staticCount; i++ {
		t[i] = Field{Name: staticFields[i][0], Value: staticFields[i][1], ID: http.Lookup(staticFields[i][0])}
		if t[i].ID != http.None {
			t[i].Name = t[i].ID.Name()
		}
	}
	return t
}

// The classes of octets in names and values.
const (
	classToken = 1 << iota // may stand in a lower-case name
	classValue             // may stand in a value (RFC 9113, section 8.2.1, with obs-text)
)

var classes = makeClasses()

func makeClasses() (t [256]uint8) {
	for c := range t {
		if c >= 0x20 && c != 0x7f || c == '\t' {
			t[c] |= classValue
		}
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			t[c] |= classToken
		}
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] |= classToken
	}
	return t
}

// badName tells whether s is no lower-case token. One leading colon is allowed; whether the pseudo header exists is for others.
func badName(s []byte) bool {
	if len(s) > 1 && s[0] == ':' {
		s = s[1:]
	}
	if len(s) == 0 {
		return true
	}
	ok := uint8(classToken)
	for _, c := range s {
		ok &= classes[c]
	}
	return ok == 0
}

// badValue tells whether s has an octet that no value may have. Eight octets are looked at together: the usual value has none that
// is below a space or DEL, and a tab is sorted out afterwards.
func badValue(s []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := le64(s[i:])
		del := x ^ 0x7f*ones
		if ((x-0x20*ones)&^x|(del-ones)&^del)&highs != 0 {
			return badValueSlow(s[i:])
		}
	}
	return i < len(s) && badValueSlow(s[i:])
}

func badValueSlow(s []byte) bool {
	ok := uint8(classValue)
	for _, c := range s {
		ok &= classes[c]
	}
	return ok == 0
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func be64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[7]) | uint64(b[6])<<8 | uint64(b[5])<<16 | uint64(b[4])<<24 |
		uint64(b[3])<<32 | uint64(b[2])<<40 | uint64(b[1])<<48 | uint64(b[0])<<56
}
