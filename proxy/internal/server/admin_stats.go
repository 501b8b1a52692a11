package server

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// inverted shows what a filter does not.
type inverted struct{ f stats.Filter }

func (i inverted) Match(name []byte) bool { return !i.f.Match(name) }

// compileFilter compiles a regular expression of a query.
func compileFilter(text string) (*regexp.Regexp, error) { return route.CompileRegex(text, false) }

// statsQuery reads the parameters that all forms of /stats share.
func statsQuery(r *admin.Request) (q stats.Query, bad *admin.Response) {
	q.UsedOnly = r.Query.Has("usedonly")
	q.Texts = r.Query.Has("text_readouts")
	if f := r.Query.Get("filter"); f != "" {
		re, err := compileFilter(f)
		if err != nil {
			return q, admin.Fail(400, "Invalid re2 regex: "+err.Error())
		}
		q.Filter = re
		if r.Query.Has("invert_filter") {
			q.Filter = inverted{re}
		}
	}
	var ok bool
	if q.Types, ok = stats.ParseTypes(r.Query.Get("type")); !ok {
		return q, admin.Fail(400, "invalid &type= param")
	}
	if q.Buckets, ok = stats.ParseBuckets(r.Query.Get("histogram_buckets")); !ok {
		return q, admin.Fail(400, stats.BucketsUsage)
	}
	return q, nil
}

// serveStats answers /stats.
func (s *Server) serveStats(r *admin.Request, done func(*admin.Response)) {
	form := r.Query.Get("format")
	switch form {
	case "prometheus":
		s.servePrometheus(r, done)
		return
	case "", "text", "json", "html", "active-html":
	default:
		done(admin.Fail(400, "usage: /stats?format=(html|active-html|json|prometheus|text)\n\n"))
		return
	}
	q, bad := statsQuery(r)
	if bad != nil {
		done(bad)
		return
	}
	s.gathered(func() {
		switch form {
		case "json":
			done(&admin.Response{Code: 200, ContentType: admin.JSON, Body: s.store.JSON(q)})
		case "html", "active-html":
			done(&admin.Response{Code: 200, ContentType: admin.HTML, Body: &htmlStats{page: s.store.Text(q), query: r, live: form == "active-html"}})
		default:
			done(&admin.Response{Code: 200, ContentType: admin.PlainText, Body: s.store.Text(q)})
		}
	})
}

func (s *Server) servePrometheus(r *admin.Request, done func(*admin.Response)) {
	q, bad := statsQuery(r)
	if bad != nil {
		done(bad)
		return
	}
	s.gathered(func() {
		page, err := s.store.Prometheus(q, s.tagger)
		if err != nil {
			done(admin.Fail(400, err.Error()))
			return
		}
		done(&admin.Response{Code: 200, ContentType: admin.PlainText, Body: page})
	})
}

func (s *Server) serveResetCounters(_ *admin.Request, done func(*admin.Response)) {
	s.collect.collect(func() {
		s.store.ResetCounters()
		done(admin.OK("OK\n"))
	})
}

// htmlStats is the text page with fields to choose what it shows; the live one loads itself anew.
type htmlStats struct {
	page       stats.Output
	query      *admin.Request
	live       bool
	begun, end bool
}

// Next writes the next piece.
func (h *htmlStats) Next(dst []byte, limit int) ([]byte, bool) {
	if !h.begun {
		h.begun = true
		dst = append(dst, h.head()...)
	}
	piece, more := h.page.Next(nil, limit)
	for _, c := range []struct{ from, to string }{{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}} {
		piece = bytes.ReplaceAll(piece, []byte(c.from), []byte(c.to))
	}
	dst = append(dst, piece...)
	if !more {
		dst = append(dst, "</pre>\n</body>\n</html>\n"...)
	}
	return dst, more
}

func (h *htmlStats) head() string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang='en'>\n<head>\n  <title>Dragoman Stats</title>\n")
	if h.live {
		b.WriteString("  <meta http-equiv='refresh' content='5'>\n")
	}
	get := func(k string) string { return html.EscapeString(h.query.Query.Get(k)) }
	checked := func(k string) string {
		if h.query.Query.Has(k) {
			return " checked"
		}
		return ""
	}
	format := "html"
	if h.live {
		format = "active-html"
	}
	b.WriteString("</head>\n<body>\n<form action='stats' method='get'><input type='hidden' name='format' value='" + format + "'>\n" +
		"<label>filter <input type='text' name='filter' value='" + get("filter") + "'></label>\n" +
		"<label><input type='checkbox' name='usedonly'" + checked("usedonly") + "> used only</label>\n" +
		"<label>type <input type='text' name='type' size='10' value='" + get("type") + "'></label>\n" +
		"<button>show</button></form>\n<pre>\n")
	return b.String()
}
