package route

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

func (c *compiler) direct(t *Table, e *Entry, d *routev3.DirectResponseAction) error {
	e.DirectCode = int(d.Status)
	var errs config.Errors
	var err error
	if d.Body != nil {
		e.DirectBody, err = c.dataSource(d.Body)
		if n := len(e.DirectBody); n > t.MaxDirectBody {
			err = fmt.Errorf("response body size is %d bytes; maximum is %d", n, t.MaxDirectBody)
		}
		errs.Collect("body", err)
	}
	if bf := d.GetBodyFormat(); bf != nil {
		e.DirectFormat, e.DirectType, err = Body(bf, c.Format)
		errs.Collect("body_format", err)
	}
	return errs.Err()
}

// Body compiles a SubstitutionFormatString and returns the content type that goes with it.
func Body(f *corev3.SubstitutionFormatString, o *format.Options) (*format.Format, string, error) {
	opts := *o
	opts.OmitEmpty = f.OmitEmptyValues
	ct := f.ContentType
	var p *format.Format
	var err error
	switch x := f.Format.(type) {
	case *corev3.SubstitutionFormatString_TextFormat:
		p, err = format.ParseText(x.TextFormat, &opts)
	case *corev3.SubstitutionFormatString_TextFormatSource:
		p, err = format.ParseText(x.TextFormatSource.GetInlineString(), &opts)
	case *corev3.SubstitutionFormatString_JsonFormat:
		p, err = format.ParseJSON(x.JsonFormat.AsMap(), &opts)
		if ct == "" {
			ct = "application/json"
		}
	}
	if ct == "" {
		ct = "text/plain"
	}
	return p, ct, err
}

func (c *compiler) dataSource(d *corev3.DataSource) (string, error) {
	switch s := d.Specifier.(type) {
	case *corev3.DataSource_InlineString:
		return s.InlineString, nil
	case *corev3.DataSource_InlineBytes:
		return string(s.InlineBytes), nil
	}
	if c.DataSource != nil {
		return c.DataSource(d)
	}
	return "", errors.New("data source is not supported here")
}

func (c *compiler) redirect(e *Entry, r *routev3.RedirectAction) error {
	d := &RedirectAction{entry: e, Host: r.HostRedirect, StripQuery: r.StripQuery}
	d.Code = map[routev3.RedirectAction_RedirectResponseCode]int{0: 301, 1: 302, 2: 303, 3: 307, 4: 308}[r.ResponseCode]
	switch s := r.SchemeRewriteSpecifier.(type) {
	case *routev3.RedirectAction_HttpsRedirect:
		d.HTTPS = s.HttpsRedirect
	case *routev3.RedirectAction_SchemeRedirect:
		d.Scheme = s.SchemeRedirect
	}
	if r.PortRedirect != 0 {
		d.Port = fmt.Sprint(r.PortRedirect)
	}
	switch p := r.PathRewriteSpecifier.(type) {
	case *routev3.RedirectAction_PathRedirect:
		d.PathText, d.HasPath = p.PathRedirect, p.PathRedirect != ""
	case *routev3.RedirectAction_PrefixRewrite:
		d.Prefix, d.HasPrefix = p.PrefixRewrite, p.PrefixRewrite != ""
	case *routev3.RedirectAction_RegexRewrite:
		var err error
		if d.Regex, err = c.rewriteRegex(p.RegexRewrite); err != nil {
			return config.At("regex_rewrite", err)
		}
	case *routev3.RedirectAction_PathRewrite:
		var err error
		if d.Format, err = format.ParseHeader(p.PathRewrite, c.Format); err != nil {
			return config.At("path_rewrite", err)
		}
	}
	if strings.ContainsAny(d.PathText, " \r\n") {
		if _, err := url.Parse(d.PathText); err != nil {
			return config.At("path_redirect", err)
		}
	}
	e.RedirectTo = d
	return nil
}
