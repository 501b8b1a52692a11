package server

import (
	"errors"
	"fmt"
	"strings"

	codecv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/router"
)

// upstreamFilters are the extensions that Envoy has as upstream HTTP filters. Of those that are not Envoy's, each may be one.
var upstreamFilters = map[string]bool{
	"envoy.filters.http.admission_control": true, "envoy.filters.http.aws_lambda": true, "envoy.filters.http.aws_request_signing": true,
	"envoy.filters.http.body_size_limit": true, "envoy.filters.http.buffer": true, "envoy.filters.http.composite": true,
	"envoy.filters.http.compressor": true, "envoy.filters.http.credential_injector": true, "envoy.filters.http.ext_proc": true,
	"envoy.filters.http.header_mutation": true, "envoy.filters.http.lua": true, "envoy.filters.http.match_delegate": true,
	"envoy.filters.http.wasm": true,
}

const upstreamCodec = "envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec"

// upstreamChain builds the filters between the router and the codec: those of a cluster, or those of a router. It is nil if there is
// only the codec.
func (x *extensions) upstreamChain(list []*hcmv3.HttpFilter, field string, ofRouter bool, scope astats.Scope) (*fm.Chain, error) {
	out := &fm.Chain{}
	for i, f := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		last := i == len(list)-1
		a := f.GetTypedConfig()
		switch {
		case f.GetConfigDiscovery() != nil:
			return nil, &config.Error{Path: at + ".config_discovery", Msg: "is not supported yet"}
		case config.Holds(a, &codecv3.UpstreamCodec{}):
			if !last {
				return nil, upstreamOrder(ofRouter, fmt.Sprintf("Error: terminal filter named %s of type envoy.filters.http.upstream_codec must be the last filter in a router upstream http filter chain.", f.Name))
			}
			if f.Disabled {
				return nil, config.At(at+".disabled", fm.LastDisabled(f.Name))
			}
			out.Entries = append(out.Entries, fm.Entry{Name: f.Name, Factory: router.CodecFilter{}})
			continue
		}
		e, err := x.upstreamFilter(f, a, scope)
		if err != nil {
			if f.IsOptional {
				continue
			}
			return nil, config.At(at, err)
		}
		if last {
			return nil, upstreamOrder(ofRouter, fmt.Sprintf("Error: non-terminal filter named %s of type %s is the last filter in a router upstream http filter chain. "+
				"When upstream_http_filters are specified, they must explicitly end with an UpstreamCodec filter.", f.Name, x.http[shortURL(config.PayloadURL(a))].Name))
		}
		out.Entries = append(out.Entries, e)
	}
	if len(out.Entries) < 2 {
		return nil, nil
	}
	return out, nil
}

// upstreamOrder is the error of a list whose end is not where it should be.
func upstreamOrder(ofRouter bool, text string) error {
	if !ofRouter {
		text = "The codec filter is the only valid terminal upstream HTTP filter, use '" + upstreamCodec + "'"
	}
	return errors.New(text)
}

func (x *extensions) upstreamFilter(f *hcmv3.HttpFilter, a *anypb.Any, scope astats.Scope) (fm.Entry, error) {
	e := x.http[shortURL(config.PayloadURL(a))]
	if e == nil || strings.HasPrefix(e.Name, "envoy.") && !upstreamFilters[e.Name] {
		return fm.Entry{}, x.unknownHTTP(f.Name, a)
	}
	factory, _, err := x.httpFilter(scope, f.Name, a)
	return fm.Entry{Name: f.Name, Factory: factory, Disabled: f.Disabled}, err
}
