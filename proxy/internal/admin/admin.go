// Package admin is the administration interface: what it answers is written once, as handlers on the main loop, with two adapters:
// an HTTP filter for the admin listener (filter.go), and a net/http handler for programs that embed the proxy (nethttp.go).
//
// Handlers run on the main loop and stay short; large pages are written in pieces (Body.Next), with passes of the loop in between.
package admin

import (
	"net/url"
	"sort"
	"strings"
)

// Request is one request to the interface.
type Request struct {
	Method string
	Path   string // without the query
	Query  url.Values
	Body   []byte
}

// Response is the answer.
type Response struct {
	Code        int
	ContentType string
	// Header are further headers.
	Header [][2]string
	// Body is written in pieces; nil is empty.
	Body Body
}

// Body is a page that is written in pieces.
type Body interface {
	// Next appends the next piece, of about limit bytes, to dst and tells whether there is more. owner: main loop.
	Next(dst []byte, limit int) (out []byte, more bool)
}

// Text is a Body that is there already.
type Text string

// Next appends all of it.
func (t Text) Next(dst []byte, _ int) ([]byte, bool) { return append(dst, t...), false }

// Content types of answers.
const (
	PlainText = "text/plain; charset=UTF-8"
	JSON      = "application/json"
	HTML      = "text/html; charset=UTF-8"
)

// Handler answers one path. It may answer later, by calling done on the main loop, once.
type Handler struct {
	Path, Help string
	// Mutates: only by POST.
	Mutates bool
	// Hidden handlers are not listed.
	Hidden bool
	// Params are documented in the help.
	Params []Param
	Serve  func(r *Request, done func(*Response))
}

// Param is a query parameter of a handler, for the help and home pages.
type Param struct {
	Name, Help string
	// Choices are the possible values; nil: any text. Switch: it is there or not.
	Choices []string
	Switch  bool
}

// Admin is the set of handlers. owner: main loop.
type Admin struct {
	handlers map[string]*Handler
	order    []*Handler
	// OnRefused is called for requests of mutating paths that are no POST, to log them.
	OnRefused func(path, method string)
	// Allow, if set, tells which paths may be used (allow_paths).
	Allow func(path string) bool
}

// New returns an interface with the given handlers, and "/" and "/help".
func New(handlers ...*Handler) *Admin {
	a := &Admin{handlers: map[string]*Handler{}}
	for _, h := range handlers {
		a.Add(h)
	}
	a.Add(&Handler{Path: "/help", Help: "print out list of admin commands", Serve: func(_ *Request, done func(*Response)) {
		done(OK(a.help()))
	}})
	a.Add(&Handler{Path: "/", Help: "Admin home page", Serve: func(_ *Request, done func(*Response)) {
		done(&Response{Code: 200, ContentType: HTML, Body: Text(a.home())})
	}})
	return a
}

// Add adds a handler.
func (a *Admin) Add(h *Handler) {
	a.handlers[h.Path] = h
	a.order = append(a.order, h)
	sort.Slice(a.order, func(i, j int) bool { return a.order[i].Path < a.order[j].Path })
}

// OK is a plain text answer.
func OK(text string) *Response { return &Response{Code: 200, ContentType: PlainText, Body: Text(text)} }

// Fail is a plain text error.
func Fail(code int, text string) *Response {
	return &Response{Code: code, ContentType: PlainText, Body: Text(text)}
}

// Serve answers r. done is called once, on the main loop, at once or later.
func (a *Admin) Serve(r *Request, done func(*Response)) {
	if a.Allow != nil && !a.Allow(r.Path) {
		done(Fail(403, "request to path "+r.Path+" not allowed"))
		return
	}
	h := a.handlers[r.Path]
	if h == nil {
		done(Fail(404, "invalid path. "+a.help()))
		return
	}
	if h.Mutates && r.Method != "POST" {
		if a.OnRefused != nil {
			a.OnRefused(r.Path, r.Method)
		}
		done(Fail(405, "Method "+r.Method+" not allowed, POST required."))
		return
	}
	h.Serve(r, done)
}

// help lists the commands as Envoy does.
func (a *Admin) help() string {
	var b strings.Builder
	b.WriteString("admin commands are:\n")
	for _, h := range a.order {
		if h.Hidden {
			continue
		}
		b.WriteString("  " + h.Path)
		if h.Mutates {
			b.WriteString(" (POST)")
		}
		b.WriteString(": " + h.Help + "\n")
		for _, p := range h.Params {
			b.WriteString("      " + p.Name + ": " + p.Help)
			if len(p.Choices) > 0 {
				b.WriteString("; One of (" + strings.Join(p.Choices, ", ") + ")")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Parse splits a request target into a path and its query. The parameters of a POST may come as a form.
func Parse(method, target, contentType string, body []byte) *Request {
	path, query, _ := strings.Cut(target, "?")
	if method == "POST" && strings.HasPrefix(contentType, "application/x-www-form-urlencoded") && len(body) > 0 {
		query = string(body)
	}
	return &Request{Method: method, Path: path, Query: parseQuery(query), Body: body}
}

// parseQuery reads parameters as Envoy does: a plus sign is one, which regular expressions need.
func parseQuery(s string) url.Values {
	out := url.Values{}
	for _, kv := range strings.Split(s, "&") {
		if kv == "" {
			continue
		}
		k, v, _ := strings.Cut(kv, "=")
		out.Add(unescape(k), unescape(v))
	}
	return out
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
