package header_to_metadata //nolint:revive // Envoy's name

import (
	"errors"
	"fmt"
	"strings"

	metav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// settings are what one configuration says. They are immutable.
type settings struct {
	request, response []rule
	counts            bool // stats is in use
	stats             stats.GroupBase
}

// rule says what becomes of one header or cookie. One of header and cookie is set.
type rule struct {
	header, cookie   string
	present, missing *pair // nil: nothing
	remove           bool
}

// pair is an entry of metadata that is made.
type pair struct {
	space, key, value string
	kind              valueType
	base64            bool
	rewrite           ext.Rewriter // nil: none
}

func newSettings(c *metav3.Config, ctx ext.FactoryContext) (*settings, error) {
	s := &settings{}
	var err error
	if s.request, err = newRules(c.GetRequestRules(), ctx); err != nil {
		return nil, fmt.Errorf("request_rules%w", err)
	}
	if s.response, err = newRules(c.GetResponseRules(), ctx); err != nil {
		return nil, fmt.Errorf("response_rules%w", err)
	}
	if p := c.GetStatPrefix(); p != "" {
		s.counts, s.stats = true, ctx.RootScope().Scope("http_filter_name").Scope(strings.TrimSuffix(p, ".")).Group(template)
	}
	return s, nil
}

func newRules(list []*metav3.Config_Rule, ctx ext.FactoryContext) ([]rule, error) {
	var out []rule
	for i, p := range list {
		r, err := newRule(p, ctx)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// newRule compiles a rule. The errors are Envoy's.
func newRule(p *metav3.Config_Rule, ctx ext.FactoryContext) (r rule, err error) {
	present, missing := p.GetOnHeaderPresent(), p.GetOnHeaderMissing()
	switch {
	case p.GetHeader() != "" && p.GetCookie() != "":
		return r, errors.New("Cannot specify both header and cookie in the same rule") //nolint:staticcheck // Envoy's text
	case p.GetHeader() == "" && p.GetCookie() == "":
		return r, errors.New("One of Cookie or Header option needs to be specified") //nolint:staticcheck // Envoy's text
	case present.GetValue() != "" && present.GetRegexValueRewrite() != nil:
		return r, errors.New("Cannot specify both value and regex_value_rewrite") //nolint:staticcheck // Envoy's text
	case p.GetCookie() != "" && p.GetRemove():
		return r, errors.New("Cannot specify remove for cookie") //nolint:staticcheck // Envoy's text
	case missing != nil && missing.GetValue() == "":
		return r, errors.New("Cannot specify on_header_missing rule with an empty value") //nolint:staticcheck // Envoy's text
	case present == nil && missing == nil:
		return r, fmt.Errorf("header to metadata filter: rule for header '%s' has neither `on_header_present` nor `on_header_missing` set", p.GetHeader())
	}
	r = rule{header: strings.ToLower(p.GetHeader()), cookie: p.GetCookie(), remove: p.GetRemove()}
	if r.header == "host" {
		r.header = ":authority"
	}
	if r.present, err = newPair(present, ctx); err != nil {
		return r, fmt.Errorf("on_header_present: %w", err)
	}
	r.missing, err = newPair(missing, ctx)
	return r, err
}

func newPair(p *metav3.Config_KeyValuePair, ctx ext.FactoryContext) (*pair, error) {
	if p == nil {
		return nil, nil
	}
	out := &pair{space: p.GetMetadataNamespace(), key: p.GetKey(), value: p.GetValue(), kind: valueType(p.GetType()), base64: p.GetEncode() == metav3.Config_BASE64}
	if out.space == "" {
		out.space = name
	}
	if x := p.GetRegexValueRewrite(); x != nil {
		r, err := ctx.Rewriter(x)
		if err != nil {
			return nil, fmt.Errorf("regex_value_rewrite: %w", err)
		}
		out.rewrite = r
	}
	return out, nil
}
