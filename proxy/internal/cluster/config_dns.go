package cluster

import (
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	getaddrinfov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/getaddrinfo/v3"
)

// dnsCluster returns what the extension envoy.cluster.dns is configured with; nil if cfg is no cluster of it. Its fields are asked instead
// of those of the same names in cfg, which Envoy ignores then.
func dnsCluster(cfg *clusterv3.Cluster) (*dnsv3.DnsCluster, error) {
	ct := cfg.GetClusterType()
	x := new(dnsv3.DnsCluster)
	if any := ct.GetTypedConfig(); any != nil {
		if !any.MessageIs(x) {
			return nil, nil
		}
		return x, any.UnmarshalTo(x)
	}
	if ct.GetName() == "envoy.cluster.dns" {
		return x, nil
	}
	return nil, nil
}

// buildDNS reads how a cluster's names are resolved again and again.
func buildDNS(cfg *clusterv3.Cluster, o *DNSOptions) error {
	x, err := dnsCluster(cfg)
	if err != nil {
		return config.At("cluster_type.typed_config", err)
	}
	if x != nil {
		o.Family = families[clusterv3.Cluster_DnsLookupFamily(max(x.GetDnsLookupFamily()-1, 0))] // the same order behind UNSPECIFIED
		o.MinRefresh = duration(x.GetDnsMinRefreshRate(), 0)
		return config.At("cluster_type.typed_config", refreshRates(x, x.GetDnsFailureRefreshRate(), o))
	}
	o.Family = families[cfg.GetDnsLookupFamily()]
	return refreshRates(cfg, cfg.GetDnsFailureRefreshRate(), o)
}

var families = map[clusterv3.Cluster_DnsLookupFamily]dns.Family{
	clusterv3.Cluster_V4_ONLY: dns.V4Only, clusterv3.Cluster_V6_ONLY: dns.V6Only, clusterv3.Cluster_V4_PREFERRED: dns.V4Preferred,
	clusterv3.Cluster_ALL: dns.All,
}

// refreshRates reads the fields that clusters and the extension have in common; failure is a nil pointer if it is not set.
func refreshRates(cfg interface {
	GetDnsRefreshRate() *durationpb.Duration
	GetDnsJitter() *durationpb.Duration
	GetRespectDnsTtl() bool
}, failure interface {
	GetBaseInterval() *durationpb.Duration
	GetMaxInterval() *durationpb.Duration
}, o *DNSOptions,
) error {
	o.Refresh = duration(cfg.GetDnsRefreshRate(), DefaultDNSRefresh)
	o.Jitter = duration(cfg.GetDnsJitter(), 0)
	o.RespectTTL = cfg.GetRespectDnsTtl()
	o.FailureBase, o.FailureMax = o.Refresh, o.Refresh
	if failure.GetBaseInterval() == nil { // a field that must be set
		return nil
	}
	o.FailureBase = failure.GetBaseInterval().AsDuration()
	o.FailureMax = duration(failure.GetMaxInterval(), 10*o.FailureBase)
	if o.FailureMax < o.FailureBase {
		return rejected("dns_failure_refresh_rate", "dns_failure_refresh_rate must have max_interval greater than or equal to the base_interval")
	}
	return nil
}

// buildResolver returns who answers for a cluster: the resolver of all, or one of its own.
func buildResolver(cfg *clusterv3.Cluster, d *Deps) (dns.Resolver, error) {
	o, err := resolverOptions(cfg)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(o)
	switch {
	case key == fmt.Sprint(dns.Options{}):
		if d.Resolver == nil {
			return nil, rejected("type", "there is no DNS resolver")
		}
		return d.Resolver, nil
	case d.resolvers[key] != nil:
		return d.resolvers[key], nil
	case d.NewResolver == nil:
		return nil, notYet("typed_dns_resolver_config")
	}
	if d.resolvers == nil {
		d.resolvers = make(map[string]dns.Resolver)
	}
	d.resolvers[key] = d.NewResolver(o)
	return d.resolvers[key], nil
}

// resolverOptions reads typed_dns_resolver_config, or the fields that it has taken the place of.
func resolverOptions(cfg *clusterv3.Cluster) (o dns.Options, err error) {
	if x, _ := dnsCluster(cfg); x.GetTypedDnsResolverConfig() != nil {
		o, err = typedResolver(x.GetTypedDnsResolverConfig())
		return o, config.At("cluster_type.typed_config", err)
	}
	if ec := cfg.GetTypedDnsResolverConfig(); ec != nil {
		return typedResolver(ec)
	}
	if c := cfg.GetDnsResolutionConfig(); c != nil { //nolint:staticcheck // deprecated, still read by Envoy
		o.TCP, o.NoSearch = c.GetDnsResolverOptions().GetUseTcpForDnsLookups(), c.GetDnsResolverOptions().GetNoDefaultSearchDomain()
		o.Servers, err = servers(c.GetResolvers(), "dns_resolution_config.resolvers")
		return o, err
	}
	o.TCP = cfg.GetUseTcpForDnsLookups()                             //nolint:staticcheck // deprecated, still read by Envoy
	o.Servers, err = servers(cfg.GetDnsResolvers(), "dns_resolvers") //nolint:staticcheck // deprecated, still read by Envoy
	return o, err
}

func typedResolver(ec *corev3.TypedExtensionConfig) (o dns.Options, err error) {
	const path = "typed_dns_resolver_config.typed_config."
	var (
		cares caresv3.CaresDnsResolverConfig
		addr  getaddrinfov3.GetAddrInfoDnsResolverConfig
	)
	any := ec.GetTypedConfig()
	is := func(m proto.Message) bool {
		if !any.MessageIs(m) {
			return false
		}
		err = any.UnmarshalTo(m)
		return true
	}
	switch {
	case is(&addr):
		return o, err // as the system does it
	case !is(&cares):
		return o, notYet("typed_dns_resolver_config " + any.GetTypeUrl())
	case err != nil:
		return o, err
	}
	if cares.GetUseResolversAsFallback() && len(cares.GetResolvers()) > 0 {
		return o, notYet(path + "use_resolvers_as_fallback")
	}
	if err := config.Refuse(caresGaps, &cares, path); err != nil {
		return o, err
	}
	// udp_max_queries, max_udp_channel_duration and reinit_channel_on_timeout say when to make new sockets: we make one for each
	// question.
	o.TCP, o.NoSearch = cares.GetDnsResolverOptions().GetUseTcpForDnsLookups(), cares.GetDnsResolverOptions().GetNoDefaultSearchDomain()
	o.Timeout = time.Duration(cares.GetQueryTimeoutSeconds().GetValue()) * time.Second
	o.Tries = int(cares.GetQueryTries().GetValue())
	o.Servers, err = servers(cares.GetResolvers(), path+"resolvers")
	return o, err
}

func servers(list []*corev3.Address, path string) (out []netip.AddrPort, err error) {
	for i, a := range list {
		s := a.GetSocketAddress()
		ip, e := netip.ParseAddr(s.GetAddress())
		if e != nil {
			return nil, config.At(fmt.Sprintf("%s[%d].socket_address.address", path, i), config.BadAddress(s.GetAddress()))
		}
		port := uint16(s.GetPortValue())
		if port == 0 {
			port = 53
		}
		out = append(out, netip.AddrPortFrom(ip, port))
	}
	return out, nil
}
