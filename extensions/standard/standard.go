// Package standard lists the extensions that the dragoman binary has. The list is explicit: nothing registers itself.
package standard

import (
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/extensions/filters/http/buffer"
	"github.com/dragoman-proxy/dragoman/extensions/filters/http/cors"
	"github.com/dragoman-proxy/dragoman/extensions/filters/http/fault"
	"github.com/dragoman-proxy/dragoman/extensions/filters/http/header_mutation"
	"github.com/dragoman-proxy/dragoman/extensions/filters/http/header_to_metadata"
	"github.com/dragoman-proxy/dragoman/extensions/filters/http/health_check"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/http_inspector"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/original_dst"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/proxy_protocol"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/tls_inspector"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/connection_limit"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/direct_response"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/echo"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/local_ratelimit"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/sni_cluster"
)

// All returns the standard extensions.
func All() []ext.Set {
	return []ext.Set{{
		HTTPFilters: []ext.HTTPFilter{
			buffer.Extension,
			cors.Extension,
			fault.Extension,
			header_mutation.Extension,
			header_to_metadata.Extension,
			health_check.Extension,
		},
		ListenerFilters: []ext.ListenerFilter{
			http_inspector.Extension,
			original_dst.Extension,
			proxy_protocol.Extension,
			tls_inspector.Extension,
		},
		NetworkFilters: []ext.NetworkFilter{
			connection_limit.Extension,
			direct_response.Extension,
			echo.Extension,
			local_ratelimit.Extension,
			sni_cluster.Extension,
		},
	}}
}
