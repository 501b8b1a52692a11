package route

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
)

func (c *compiler) direct(t *Table, e *Entry, d *routev3.DirectResponseAction) error {
	e.DirectCode = int(d.Status)
	var errs config.Errors
	var err error
	if d.Body != nil {
		e.DirectBody, err = directBody(d.Body, t.MaxDirectBody)
		errs.Collect("body", err)
	}
	if bf := d.GetBodyFormat(); bf != nil {
		e.DirectFormat, e.DirectType, err = Body(bf, c.Format)
		errs.Collect("body_format", err)
	}
	return errs.Err()
}

// Body compiles a SubstitutionFormatString and returns the content type that goes with it, "" for the one that local replies have.
func Body(f *corev3.SubstitutionFormatString, o *format.Options) (*format.Format, string, error) {
	p, err := format.New(f, o, nil)
	ct := f.GetContentType()
	if ct == "" && f.GetJsonFormat() != nil {
		ct = "application/json"
	}
	return p, ct, err
}

// directBody reads the body of a direct response, of at most limit bytes. A file is looked at before it is read.
func directBody(d *corev3.DataSource, limit int) (string, error) {
	if name := d.GetFilename(); name != "" {
		switch st, err := os.Stat(name); {
		case err != nil:
			return "", config.Lacking("file "+name+" does not exist", err)
		case st.Size() > int64(limit):
			return "", fmt.Errorf("file %s size is %d bytes; maximum is %d", name, st.Size(), limit)
		}
	}
	b, err := secret.ReadSource(d)
	if err == nil && len(b) > limit {
		err = fmt.Errorf("response body size is %d bytes; maximum is %d", len(b), limit)
	}
	return string(b), err
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
