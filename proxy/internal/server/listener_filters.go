package server

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
)

const originalDst = "envoy.extensions.filters.listener.original_dst.v3.OriginalDst"

// filters builds the listener filters.
func (b *listenerBuild) filters() error {
	var errs config.Errors
	for i, f := range b.p.GetListenerFilters() {
		x, err := b.listenerFilter(f)
		errs.Collect(fmt.Sprintf("listener_filters[%d]", i), err)
		b.l.Filters = append(b.l.Filters, x)
	}
	if b.l.Redirect != nil {
		x := b.s.ext.listen[originalDst]
		if x == nil {
			return &config.Error{Path: "use_original_dst", Msg: "the original_dst listener filter is not there"}
		}
		mk, err := x.New(nil, &factoryContext{s: b.s, scope: b.s.store.Root()})
		if err != nil {
			return at("use_original_dst", err)
		}
		b.l.Filters = append(b.l.Filters, listener.Filter{New: mk})
	}
	return errs.Err()
}

func (b *listenerBuild) listenerFilter(f *listenerv3.ListenerFilter) (listener.Filter, error) {
	var out listener.Filter
	if f.GetConfigDiscovery() != nil {
		return out, &config.Error{Path: "config_discovery", Msg: "is not supported yet"}
	}
	a := f.GetTypedConfig()
	x := b.s.ext.listen[shortURL(config.PayloadURL(a))]
	if x == nil {
		return out, at("typed_config", b.s.ext.unknownListen(f.GetName(), a))
	}
	m, err := payload(a)
	if err != nil {
		return out, at("typed_config", err)
	}
	if err := b.s.ext.check(m); err != nil {
		return out, err
	}
	if out.New, err = x.New(m, &factoryContext{s: b.s, scope: b.s.store.Root()}); err != nil {
		return out, at("typed_config", err)
	}
	if p := f.GetFilterDisabled(); p != nil {
		if out.Disabled, err = predicate(p); err != nil {
			return out, at("filter_disabled", err)
		}
	}
	return out, nil
}

// predicate compiles a condition on connections.
func predicate(p *listenerv3.ListenerFilterChainMatchPredicate) (func(i *network.ConnInfo) bool, error) {
	switch r := p.GetRule().(type) {
	case *listenerv3.ListenerFilterChainMatchPredicate_OrMatch:
		list, err := predicates(r.OrMatch.GetRules())
		return func(i *network.ConnInfo) bool {
			for _, f := range list {
				if f(i) {
					return true
				}
			}
			return false
		}, err
	case *listenerv3.ListenerFilterChainMatchPredicate_AndMatch:
		list, err := predicates(r.AndMatch.GetRules())
		return func(i *network.ConnInfo) bool {
			for _, f := range list {
				if !f(i) {
					return false
				}
			}
			return true
		}, err
	case *listenerv3.ListenerFilterChainMatchPredicate_NotMatch:
		f, err := predicate(r.NotMatch)
		return func(i *network.ConnInfo) bool { return !f(i) }, err
	case *listenerv3.ListenerFilterChainMatchPredicate_AnyMatch:
		return func(*network.ConnInfo) bool { return true }, nil
	case *listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange:
		from, to := r.DestinationPortRange.GetStart(), r.DestinationPortRange.GetEnd() // the end is not included
		return func(i *network.ConnInfo) bool {
			port := int32(i.Local.IP.Port())
			return i.Local.IP.IsValid() && from <= port && port < to
		}, nil
	}
	return nil, &config.Error{Msg: "a rule is required"}
}

func predicates(list []*listenerv3.ListenerFilterChainMatchPredicate) (out []func(i *network.ConnInfo) bool, err error) {
	for _, p := range list {
		f, err := predicate(p)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
