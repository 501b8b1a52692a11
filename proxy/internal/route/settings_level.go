package route

import (
	"fmt"
	"maps"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// sharedLevel is what all routes below a route configuration or a virtual host share of it. It is compiled once for all of them, and so are
// its mistakes told once, whether there are routes or not.
type sharedLevel struct {
	req, resp []mutation
	filters   []namedConfig
	mirrors   []Mirror
}

// levelMessage is a message with what a level has.
type levelMessage interface {
	headerLevel
	GetTypedPerFilterConfig() map[string]*anypb.Any
	GetRequestMirrorPolicies() []*routev3.RouteAction_RequestMirrorPolicy
}

func (c *compiler) shared(m levelMessage) (l sharedLevel, err error) {
	var errs config.Errors
	l.req, l.resp, err = c.level(m)
	errs.Collect("", err)
	l.filters, err = c.filterConfigs(m.GetTypedPerFilterConfig())
	errs.Collect("typed_per_filter_config", err)
	l.mirrors, err = c.mirrorList(m.GetRequestMirrorPolicies())
	errs.Collect("request_mirror_policies", err)
	return l, errs.Err()
}

// namedConfig is what one level has for a filter.
type namedConfig struct {
	name     string
	disabled bool
	value    any
	has      bool // there is a value
}

// filterConfigs parses typed_per_filter_config of one level.
func (c *compiler) filterConfigs(m map[string]*anypb.Any) ([]namedConfig, error) {
	var out []namedConfig
	var errs config.Errors
	for _, name := range slices.Sorted(maps.Keys(m)) {
		x, err := c.filterConfig(name, m[name])
		if errs.Collect(fmt.Sprintf("[%q]", name), err) {
			out = append(out, x)
		}
	}
	return out, errs.Err()
}

func (c *compiler) filterConfig(name string, a *anypb.Any) (x namedConfig, err error) {
	x.name = name
	optional := false
	if a.MessageIs(&routev3.FilterConfig{}) {
		var fc routev3.FilterConfig
		if err := a.UnmarshalTo(&fc); err != nil {
			return x, err
		}
		x.disabled, optional = fc.Disabled, fc.IsOptional
		switch {
		case fc.Disabled: // and what its configuration says is not looked at
			return x, nil
		case fc.Config == nil:
			return x, fmt.Errorf("Empty route/virtual host per filter configuration for %s filter", name) //nolint:staticcheck // Envoy's text
		case fc.Config.GetTypeUrl() == "": // turns a filter on, and changes nothing else
			return x, nil
		}
		a = fc.Config
	}
	if c.FilterConfig == nil {
		return x, nil
	}
	if optional && c.Optional != nil && c.Optional(a) {
		return x, nil
	}
	x.value, err = c.FilterConfig(name, a)
	x.has = true
	return x, err
}

// use takes over what a level has. A configuration turns a filter on that is off by default.
func (e *Entry) use(list []namedConfig) {
	for _, x := range list {
		e.setDisabled(x.name, x.disabled)
		if !x.has {
			continue
		}
		if e.filters == nil {
			e.filters = map[string]*filterConfig{}
		}
		e.filters[x.name] = &filterConfig{x.value, e.filters[x.name]}
	}
}
