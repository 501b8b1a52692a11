package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// headersOf says which of a stream's header maps an operator reads.
type headersOf func(i *stream.Info) *http.HeaderMap

func requestHeaders(i *stream.Info) *http.HeaderMap   { return i.RequestHeaders }
func responseHeaders(i *stream.Info) *http.HeaderMap  { return i.ResponseHeaders }
func responseTrailers(i *stream.Info) *http.HeaderMap { return i.ResponseTrailers }

// headerCommands are those that read headers.
var headerCommands = map[string]command{
	"REQ":              {required | length, header(requestHeaders)},
	"REQUEST_HEADER":   {required | length, header(requestHeaders)},
	"STREAM_INFO_REQ":  {required | length, header(requestHeaders)},
	"RESP":             {required | length, header(responseHeaders)},
	"RESPONSE_HEADER":  {required | length, header(responseHeaders)},
	"TRAILER":          {required | length, header(responseTrailers)},
	"RESPONSE_TRAILER": {required | length, header(responseTrailers)},

	"REQUEST_HEADERS_BYTES":   headerBytes(requestHeaders),
	"RESPONSE_HEADERS_BYTES":  headerBytes(responseHeaders),
	"RESPONSE_TRAILERS_BYTES": headerBytes(responseTrailers),

	"PATH":         {params | length, buildPath},
	"QUERY_PARAM":  {required | length, buildQueryParam},
	"QUERY_PARAMS": {params | length, buildQueryParams},

	"GRPC_STATUS":        {params, buildGRPCStatus},
	"GRPC_STATUS_NUMBER": {bare, func(*builder) (*operator, error) { return grpcNumber(), nil }},
}

// field is a header to look for: by ID where it has one.
type field struct {
	id   http.ID
	name string
}

func newField(name string) field {
	name = strings.ToLower(name)
	if name == "host" {
		name = ":authority"
	}
	return field{id: http.Lookup(name), name: name}
}

func (f *field) find(m *http.HeaderMap) (string, bool) {
	if f.id != http.None {
		if !m.Has(f.id) {
			return "", false
		}
		return m.Get(f.id), true
	}
	if f.name == "" {
		return "", false
	}
	return m.GetName(f.name)
}

// twoFields splits "main?alternative".
func twoFields(s string) (first, second field, err error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/;<=>@[\]{}`, r) }) {
		return first, second, refuse("Invalid header configuration. Format string contains invalid characters.")
	}
	a, b, _ := strings.Cut(s, "?")
	if strings.Contains(b, "?") {
		return first, second, refuse("More than 1 alternative header specified in token: %s", s)
	}
	return newField(a), newField(b), nil
}

func header(of headersOf) func(b *builder) (*operator, error) {
	return func(b *builder) (*operator, error) {
		first, second, err := twoFields(b.param)
		if err != nil {
			return nil, err
		}
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			m := of(c.Info)
			if m == nil {
				return dst, false
			}
			v, ok := first.find(m)
			if !ok {
				v, ok = second.find(m)
			}
			return append(dst, v...), ok
		}}, nil
	}
}

func headerBytes(of headersOf) command {
	return count(func(c *Context) uint64 {
		if m := of(c.Info); m != nil {
			return uint64(m.Size())
		}
		return 0
	})
}

// pathOf gives the request's path, by preference the one before rewriting.
func pathOf(option string) (func(i *stream.Info) (string, bool), bool) {
	get := func(i *stream.Info, id http.ID) (string, bool) {
		if i.RequestHeaders == nil || !i.RequestHeaders.Has(id) {
			return "", false
		}
		return i.RequestHeaders.Get(id), true
	}
	switch option {
	case "PATH":
		return func(i *stream.Info) (string, bool) { return get(i, http.Path) }, true
	case "ORIG":
		return func(i *stream.Info) (string, bool) { return get(i, http.EnvoyOriginalPath) }, true
	case "ORIG_OR_PATH", "":
		return func(i *stream.Info) (string, bool) {
			if p, ok := get(i, http.EnvoyOriginalPath); ok {
				return p, true
			}
			return get(i, http.Path)
		}, true
	}
	return nil, false
}

func buildPath(b *builder) (*operator, error) {
	opts := strings.Split(b.param, ":")
	var query bool
	switch opts[0] {
	case "", "WQ":
		query = true
	case "NQ":
	default:
		return nil, refuse("Invalid PATH option: '%s', only 'WQ'/'NQ' are allowed", opts[0])
	}
	which := ""
	if len(opts) > 1 {
		which = opts[1]
	}
	path, ok := pathOf(which)
	if !ok {
		return nil, refuse("Invalid PATH option: '%s', only 'ORIG'/'PATH'/'ORIG_OR_PATH' are allowed", which)
	}
	return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
		p, ok := path(c.Info)
		if !query {
			p, _ = cutQuery(p)
		}
		return append(dst, p...), ok
	}}, nil
}

// cutQuery splits a path at its query; there is none if ok is false.
func cutQuery(path string) (before, query string) {
	before, query, _ = strings.Cut(path, "?")
	return before, query
}

// ReqWithoutQuery is the operator REQ_WITHOUT_QUERY of the formatter extension of that name: REQ, cut at the first "?".
func ReqWithoutQuery(param string) (func(dst []byte, c *Context) ([]byte, bool), error) {
	if param == "" {
		return nil, fmt.Errorf("REQ_WITHOUT_QUERY requires parameters")
	}
	first, second, err := twoFields(param)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, c *Context) ([]byte, bool) {
		m := c.Info.RequestHeaders
		if m == nil {
			return dst, false
		}
		v, ok := first.find(m)
		if !ok {
			v, ok = second.find(m)
		}
		v, _ = cutQuery(v)
		return append(dst, v...), ok
	}, nil
}

func query(c *Context) string {
	if c.Info.RequestHeaders == nil {
		return ""
	}
	path := c.Info.RequestHeaders.Get(http.Path)
	path, _, _ = strings.Cut(path, "#")
	_, q := cutQuery(path)
	return q
}

func buildQueryParam(b *builder) (*operator, error) {
	name := b.param
	return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
		for q := query(c); q != ""; {
			var pair string
			pair, q, _ = strings.Cut(q, "&")
			key, value, _ := strings.Cut(pair, "=")
			if sameDecoded(key, name) {
				return AppendDecoded(dst, value), true
			}
		}
		return dst, false
	}}, nil
}

// sameDecoded tells whether key, percent-decoded, is name.
func sameDecoded(key, name string) bool {
	if strings.IndexByte(key, '%') < 0 {
		return key == name
	}
	var buf [128]byte
	return string(AppendDecoded(buf[:0], key)) == name
}

// AppendDecoded appends s with its valid percent escapes decoded (RFC 3986, section 2.1).
func AppendDecoded(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi < 16 && lo < 16 {
				dst = append(dst, hi<<4|lo)
				i += 2
				continue
			}
		}
		dst = append(dst, s[i])
	}
	return dst
}

func unhex(b byte) byte {
	switch {
	case b >= '0' && b <= '9':
		return b - '0'
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10
	}
	return 0xff
}

func buildQueryParams(b *builder) (*operator, error) {
	switch b.param {
	case "", "ORIG":
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			q := query(c)
			return append(dst, q...), q != ""
		}}, nil
	case "DECODED":
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			q := query(c)
			return appendReadable(dst, q), q != ""
		}}, nil
	}
	return nil, refuse("Invalid QUERY_PARAMS option: '%s', only 'ORIG'/'DECODED' are allowed", b.param)
}

// appendReadable decodes the escapes of printable characters that are safe in a URL, as Envoy does here: others stay escaped,
// and a "%" that begins no escape is dropped.
func appendReadable(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			dst = append(dst, s[i])
			continue
		}
		if i+2 >= len(s) {
			continue
		}
		hi, lo := unhex(s[i+1]), unhex(s[i+2])
		if hi > 15 || lo > 15 {
			continue
		}
		if v := hi<<4 | lo; v > ' ' && v < 0x7f && strings.IndexByte("\"<>\\{|}", v) < 0 {
			dst = append(dst, v)
		} else {
			dst = append(dst, s[i:i+3]...)
		}
		i += 2
	}
	return dst
}

// grpcNames are the canonical codes as CAMEL_STRING and SNAKE_STRING print them.
var grpcNames = [...][2]string{
	{"OK", "OK"}, {"Canceled", "CANCELLED"}, {"Unknown", "UNKNOWN"}, {"InvalidArgument", "INVALID_ARGUMENT"},
	{"DeadlineExceeded", "DEADLINE_EXCEEDED"}, {"NotFound", "NOT_FOUND"}, {"AlreadyExists", "ALREADY_EXISTS"},
	{"PermissionDenied", "PERMISSION_DENIED"}, {"ResourceExhausted", "RESOURCE_EXHAUSTED"},
	{"FailedPrecondition", "FAILED_PRECONDITION"}, {"Aborted", "ABORTED"}, {"OutOfRange", "OUT_OF_RANGE"},
	{"Unimplemented", "UNIMPLEMENTED"}, {"Internal", "INTERNAL"}, {"Unavailable", "UNAVAILABLE"}, {"DataLoss", "DATA_LOSS"},
	{"Unauthenticated", "UNAUTHENTICATED"},
}

func buildGRPCStatus(b *builder) (*operator, error) {
	column := 0
	switch b.param {
	case "", "CAMEL_STRING":
	case "SNAKE_STRING":
		column = 1
	case "NUMBER":
		return grpcNumber(), nil
	default:
		return nil, refuse("GrpcStatusFormatter only supports CAMEL_STRING, SNAKE_STRING or NUMBER. Got: %s", b.param)
	}
	return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
		code, ok := GRPCStatus(c.Info)
		if !ok {
			return dst, false
		}
		if code >= 0 && code < int64(len(grpcNames)) {
			return append(dst, grpcNames[code][column]...), true
		}
		return strconv.AppendInt(dst, code, 10), true
	}}, nil
}

func grpcNumber() *operator {
	return &operator{number: true, append: func(dst []byte, c *Context) ([]byte, bool) {
		code, ok := GRPCStatus(c.Info)
		if !ok {
			return dst, false
		}
		return strconv.AppendInt(dst, code, 10), true
	}}
}

// GRPCStatus returns the gRPC status of a gRPC request: that of the trailers, else of the headers, else what the HTTP status
// maps to; -1 if it is no number.
func GRPCStatus(i *stream.Info) (code int64, ok bool) {
	if i.RequestHeaders == nil || !isGRPC(i.RequestHeaders.Get(http.ContentType)) {
		return 0, false
	}
	return ResponseGRPCStatus(i)
}

// ResponseGRPCStatus is GRPCStatus for any request.
func ResponseGRPCStatus(i *stream.Info) (code int64, ok bool) {
	for _, m := range [...]*http.HeaderMap{i.ResponseTrailers, i.ResponseHeaders} {
		if m == nil {
			continue
		}
		if v := m.Get(http.GRPCStatus); v != "" {
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				return -1, true
			}
			return int64(n), true
		}
	}
	if i.Code == 0 {
		return 0, false
	}
	return httpToGRPC(i.Code), true
}

// isGRPC tells whether a content type is application/grpc or application/grpc+something.
func isGRPC(contentType string) bool {
	const grpc = "application/grpc"
	return strings.HasPrefix(contentType, grpc) && (len(contentType) == len(grpc) || contentType[len(grpc)] == '+')
}

// httpToGRPC maps an HTTP status as gRPC's documentation says (doc/http-grpc-status-mapping.md).
func httpToGRPC(code int) int64 {
	switch code {
	case 400:
		return 13
	case 401:
		return 16
	case 403:
		return 7
	case 404:
		return 12
	case 429, 502, 503, 504:
		return 14
	}
	return 2
}
