package format

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
)

// buildServerName builds REQUESTED_SERVER_NAME: the SNI, or with HOST_FIRST or SNI_FIRST the request's host too, which comes from
// the original host header (ORIG), the host header (HOST), or the first of the two (ORIG_OR_HOST).
func buildServerName(b *builder) (*operator, error) {
	which, source, _ := strings.Cut(b.param, ":")
	source, _, _ = strings.Cut(source, ":")
	var hostFirst, useHost bool
	switch which {
	case "", "SNI_ONLY":
	case "SNI_FIRST":
		useHost = true
	case "HOST_FIRST":
		useHost, hostFirst = true, true
	default:
		return nil, refuse("Invalid REQUESTED_SERVER_NAME option: '%s', only 'SNI_ONLY'/'SNI_FIRST'/'HOST_FIRST' are allowed", which)
	}
	var orig, host bool
	switch source {
	case "", "ORIG_OR_HOST":
		orig, host = true, true
	case "ORIG":
		orig = true
	case "HOST":
		host = true
	default:
		return nil, refuse("Invalid REQUESTED_SERVER_NAME option: '%s', only 'ORIG_OR_HOST'/'HOST'/'ORIG' are allowed", source)
	}
	return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
		sni, name := "", ""
		if c.Info.Conn != nil {
			sni = c.Info.Conn.Said().ServerName
		}
		if useHost {
			name = requestHost(c, orig, host)
		}
		if hostFirst && name != "" || sni == "" {
			sni = name
		}
		return append(dst, sni...), sni != ""
	}}, nil
}

// requestHost returns the host of the request, with its port if it has one.
func requestHost(c *Context, orig, host bool) string {
	m := c.Info.RequestHeaders
	if m == nil {
		return ""
	}
	name := ""
	if orig {
		name = m.Get(http.EnvoyOriginalHost)
	}
	if name == "" && host {
		name = m.Get(http.Authority)
	}
	return name
}
