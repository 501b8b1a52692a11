// Package format compiles Envoy's substitution format strings ("%REQ(:PATH)% %RESPONSE_CODE%") and evaluates them, for access
// logs, header values and local replies.
//
// Formats are compiled on the main loop and immutable afterwards; any worker may evaluate one with its own Context. Evaluation
// appends to a byte slice. It allocates nothing, apart from operators that print certificates or random identifiers, and
// reads no clock: times come with the Context.
package format

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// DefaultHTTP is the access log format of Envoy for HTTP and TCP, used where none is configured.
const DefaultHTTP = `[%START_TIME%] "%REQUEST_HEADER(:METHOD)% %REQUEST_HEADER(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" ` +
	`%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ` +
	`%RESPONSE_HEADER(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQUEST_HEADER(X-FORWARDED-FOR)%" "%REQUEST_HEADER(USER-AGENT)%" ` +
	`"%REQUEST_HEADER(X-REQUEST-ID)%" "%REQUEST_HEADER(:AUTHORITY)%" "%UPSTREAM_HOST%"` + "\n"

// Context is what a format is evaluated on. A worker keeps one and sets Info and the times for each evaluation. It must not be
// used by two goroutines.
type Context struct {
	Info *stream.Info
	// Now is the worker's monotonic time in ns, Wall nanoseconds since 1970.
	Now, Wall int64
	Type      accesslog.Type
	// Rand makes the identifiers of %UNIQUE_ID%. Without it there are none.
	Rand *rand.Source

	scratch []byte
	iso     isoCache
}

// Options are what compiling needs to know of the process. The zero value knows nothing of it.
type Options struct {
	// Hostname is what %HOSTNAME% prints.
	Hostname string
	// Env looks environment variables up.
	Env func(name string) (string, bool)
	// Local is the time zone of the _LOCAL operators; nil means UTC.
	Local *time.Location
	// OmitEmpty prints nothing where a value is missing, instead of "-", and drops such members of JSON.
	OmitEmpty bool
	// Extra are operators of configured formatter extensions by name, such as ReqWithoutQuery.
	Extra map[string]Extra
}

// Format is a compiled format. The zero value prints nothing.
type Format struct {
	parts   []part
	missing string
	root    *node // JSON formats
	omit    bool
}

// part is a literal and the operator after it, nil at the end.
type part struct {
	lit string
	op  *operator
}

// operator is one %...% command.
type operator struct {
	// append appends the value as text; without a value it returns dst as it was, and false.
	append func(dst []byte, c *Context) ([]byte, bool)
	// json, if set, appends the value as JSON. Otherwise the text is the JSON of a number, or is quoted.
	json   func(dst []byte, c *Context) ([]byte, bool)
	number bool
	// max cuts the text after so many bytes, unless negative.
	max int
	// constant operators always give the same text.
	constant bool
}

func (o *operator) text(dst []byte, c *Context) ([]byte, bool) {
	start := len(dst)
	dst, ok := o.append(dst, c)
	if o.max >= 0 && ok && len(dst)-start > o.max {
		dst = dst[:start+o.max]
	}
	return dst, ok
}

// ParseText compiles a text format.
func ParseText(s string, o *Options) (*Format, error) {
	tokens, err := parse(s, o)
	if err != nil {
		return nil, err
	}
	return newText(tokens, o), nil
}

// ParseHeader compiles the value of a header that is to be added: missing values print nothing.
func ParseHeader(s string, o *Options) (*Format, error) {
	h := *o
	h.OmitEmpty = true
	return ParseText(s, &h)
}

func newText(tokens []part, o *Options) *Format {
	f := &Format{missing: "-", omit: o.OmitEmpty}
	if o.OmitEmpty {
		f.missing = ""
	}
	lit := ""
	for _, t := range tokens {
		lit += t.lit
		switch {
		case t.op == nil:
		case t.op.constant:
			v, ok := t.op.text(nil, &Context{})
			if !ok {
				v = []byte(f.missing)
			}
			lit += string(v)
		default:
			f.parts = append(f.parts, part{lit, t.op})
			lit = ""
		}
	}
	if lit != "" {
		f.parts = append(f.parts, part{lit: lit})
	}
	return f
}

// Literal returns the text of a format that has no operators.
func (f *Format) Literal() (string, bool) {
	switch {
	case f.root != nil:
		return "", false
	case len(f.parts) == 0:
		return "", true
	case len(f.parts) == 1 && f.parts[0].op == nil:
		return f.parts[0].lit, true
	}
	return "", false
}

// IsJSON tells whether f was compiled by ParseJSON.
func (f *Format) IsJSON() bool { return f.root != nil }

// Evaluate appends what f gives for c to dst. A JSON format gives one object and a line feed.
func (f *Format) Evaluate(dst []byte, c *Context) []byte {
	if f.root != nil {
		return append(f.root.appendObject(dst, c, f.omit), '\n')
	}
	for i := range f.parts {
		p := &f.parts[i]
		dst = append(dst, p.lit...)
		if p.op == nil {
			continue
		}
		var ok bool
		if dst, ok = p.op.text(dst, c); !ok {
			dst = append(dst, f.missing...)
		}
	}
	return dst
}
