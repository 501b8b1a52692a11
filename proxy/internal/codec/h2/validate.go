package h2

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// Classes of octets in the values of pseudo headers, as Envoy's library has them.
const (
	classMethod    = 1 << iota // token
	classPath                  // visible, and everything above ASCII
	classAuthority             // the characters of a URI's authority
	classScheme
)

var classes = makeClasses()

func makeClasses() (t [256]uint8) {
	add := func(class uint8, set string) {
		for i := 0; i < len(set); i++ {
			t[set[i]] |= class
		}
	}
	for c := range t {
		if c > 0x20 && c != 0x7f {
			t[c] |= classPath
		}
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			t[c] |= classMethod | classAuthority | classScheme
		}
	}
	add(classMethod, "!#$%&'*+-.^_`|~")
	add(classAuthority, "!$%&'()*+,-.:;=[]_~") // no user information (RFC 9113, section 8.3.1)
	add(classScheme, "+-.")
	return t
}

func allOf(s string, class uint8) bool {
	ok := class
	for i := 0; i < len(s); i++ {
		ok &= classes[s[i]]
	}
	return ok != 0
}

func validAuthority(s string) bool { return s != "" && allOf(s, classAuthority) }

// pseudo checks whether a pseudo header may stand in this direction, and its value.
func (s *session) pseudo(id http.ID, v string) bool {
	if s.client != nil {
		return id == http.Status && validStatus(v)
	}
	switch id {
	case http.Method:
		return v == "GET" || v == "POST" || v != "" && allOf(v, classMethod)
	case http.Path:
		return v != "" && allOf(v, classPath)
	case http.Authority:
		return validAuthority(v)
	case http.Scheme:
		return v == "http" || v == "https" || v != "" && (v[0]|0x20 >= 'a' && v[0]|0x20 <= 'z') && allOf(v, classScheme)
	case http.Protocol:
		return s.opts.AllowConnect && v != ""
	}
	return false
}

// validStatus: three digits; 101 does not exist in HTTP/2 (RFC 9113, section 8.6).
func validStatus(v string) bool {
	if len(v) != 3 || v == "101" {
		return false
	}
	for i := range 3 {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return v[0] >= '1'
}

// checkRequest checks a complete request head (RFC 9113, sections 8.3.1 and 8.5; RFC 8441, section 4).
func (s *session) checkRequest(st *stream, m *http.HeaderMap, end bool) *codec.Err {
	if !m.Has(http.Method) {
		return errMissing
	}
	method := m.Get(http.Method)
	if method == "CONNECT" && !m.Has(http.Protocol) {
		st.contentLength = -1
		st.isConnect = true
		if m.Has(http.Scheme) || m.Has(http.Path) || !m.Has(http.Authority) {
			return errMissing
		}
		return nil
	}
	if !m.Has(http.Scheme) || !m.Has(http.Path) || !m.Has(http.Authority) {
		return errMissing
	}
	if m.Has(http.Protocol) {
		if method != "CONNECT" {
			return errMissing
		}
		st.isConnect = true
	}
	if path := m.Get(http.Path); path[0] != '/' && !(path == "*" && method == "OPTIONS") {
		if scheme := m.Get(http.Scheme); equalFold(scheme, "http") || equalFold(scheme, "https") {
			return errPathForm
		}
	}
	if end && st.contentLength > 0 {
		return errLengthMismatch
	}
	st.isHead = method == "HEAD"
	return nil
}

// checkResponse checks a complete response head, informational or final.
func (s *session) checkResponse(st *stream, m *http.HeaderMap, end bool) *codec.Err {
	if !m.Has(http.Status) {
		return errMissing
	}
	status := m.Get(http.Status)
	switch {
	case status[0] == '1':
		switch {
		case end:
			return errInfoEnd
		case m.Has(http.ContentLength):
			return errContentLength
		case st.informational >= maxInformational:
			return errManyInfo
		}
		return nil
	case status[0] == '2' && st.isConnect:
		// A tunnel has no length (RFC 9110, section 9.3.6).
		st.contentLength = -1
		m.Remove(http.ContentLength)
	case st.isHead || status == "304":
		// The length is that of the body that a GET would have; there must be none here.
		st.contentLength = 0
	case status == "204":
		if st.contentLength > 0 {
			return errContentLength
		}
		st.contentLength = 0
		m.Remove(http.ContentLength) // RFC 9110, section 8.6
	}
	if end && st.contentLength > 0 {
		return errLengthMismatch
	}
	return nil
}
