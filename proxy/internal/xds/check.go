package xds

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

const apiSource = "envoy.config.core.v3.ApiConfigSource"

// Sources is all that configuration comes from: resource files, and control planes. It implements sub.Source. owner: main loop.
type Sources struct {
	Files   *Files
	Streams *Streams
	// HasNode tells whether node.id and node.cluster are known, without which Envoy subscribes to nothing; Primary whether there is a
	// static cluster of that name whose hosts do not come over the network; ADS whether the bootstrap has ads_config. nil: yes.
	HasNode func() bool
	Primary func(name string) bool
	ADS     func() bool
	// Meant completes the error about a cluster that does not exist with those that may have been meant; nil: they are not looked for.
	Meant func(e *config.Error, name string)
}

// Subscribe subscribes to what a source says.
func (f *Sources) Subscribe(from *corev3.ConfigSource, typeURL string, names []string, st sub.Stats, cb sub.Callbacks) (sub.Subscription, error) {
	if err := f.Check(from, typeURL); err != nil {
		return nil, err
	}
	if from.GetApiConfigSource() != nil || from.GetAds() != nil {
		return f.Streams.Subscribe(from, typeURL, names, st, cb), nil
	}
	return f.Files.Subscribe(from, typeURL, names, st, cb)
}

// Check tells whether resources of a type can be had from a source, as Envoy does while it builds what needs them. Paths in errors
// are relative to it. owner: main loop.
func (f *Sources) Check(from *corev3.ConfigSource, typeURL string) error {
	var errs config.Errors
	errs.Collect("", f.CheckNode(typeURL)) // whoever lacks a node may lack more
	if errs.Collect("", f.check(from, typeURL)) && errs.Len() == 0 {
		return nil
	}
	return &errs
}

func (f *Sources) check(from *corev3.ConfigSource, typeURL string) error {
	if err := config.Refuse(sourceGaps, from, ""); err != nil {
		return err
	}
	if p := from.GetPathConfigSource(); p != nil && typeURL == xdstype.Runtime {
		return config.At("path_config_source", errors.New("not supported yet for runtime layers"))
	}
	switch x := from.GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Path: //nolint:staticcheck // deprecated, still read by Envoy
		return config.At("path", f.Files.checkPath(x.Path))
	case *corev3.ConfigSource_PathConfigSource:
		return config.At("path_config_source.path", f.Files.checkPath(x.PathConfigSource.GetPath()))
	case *corev3.ConfigSource_ApiConfigSource:
		if err := f.checkAPI(x.ApiConfigSource); err != nil {
			return config.At("api_config_source", err)
		}
		if _, ok := methods[typeURL]; !ok {
			return config.At("api_config_source", fmt.Errorf("not supported yet for %s", typeURL))
		}
		return config.At("api_config_source", refuseAPI(x.ApiConfigSource))
	case *corev3.ConfigSource_Ads:
		if f.ADS != nil && !f.ADS() {
			return config.At("ads", &config.Error{Msg: "ADS must be configured to support an ADS config source", Advice: "ads_config of dynamic_resources is missing"})
		}
		return nil
	}
	return errors.New("Missing config source specifier in envoy::config::core::v3::ConfigSource") //nolint:staticcheck // Envoy's text
}

// CheckNode tells whether the proxy has said who it is, which is asked for before anything is subscribed to.
func (f *Sources) CheckNode(what string) error {
	if f.HasNode == nil || f.HasNode() {
		return nil
	}
	return &config.Error{NoNode: true, Msg: what + ": node 'id' and 'cluster' are required. Set it either in 'node' config or via --service-node and --service-cluster options.",
		Advice: "write node: {id: ..., cluster: ...} at the top of the file"}
}

func (f *Files) checkPath(path string) error {
	if f.Read != nil {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return config.Lacking("paths must refer to an existing path in the system: '"+path+"' does not exist", err)
	}
	return nil
}

// checkAPI checks a source that is asked over the network.
func (f *Sources) checkAPI(a *corev3.ApiConfigSource) error {
	if err := checkNames(a, 1); err != nil {
		return err
	}
	if err := checkVersion(a); err != nil {
		return err
	}
	switch a.GetApiType() {
	case corev3.ApiConfigSource_AGGREGATED_GRPC, corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
		return config.At("api_type", errors.New("Unsupported config source "+a.GetApiType().String()))
	case corev3.ApiConfigSource_REST:
		if err := f.checkPrimary("cluster_names[0]", a.GetClusterNames()[0]); err != nil {
			return err
		}
		if a.GetRefreshDelay() == nil {
			return config.At("refresh_delay", errors.New("refresh_delay is required for REST API configuration sources"))
		}
		return nil
	}
	if g := a.GetGrpcServices()[0].GetEnvoyGrpc(); g != nil {
		return f.checkPrimary("grpc_services[0].envoy_grpc.cluster_name", g.GetClusterName())
	}
	return nil
}

func (f *Sources) checkPrimary(path, name string) error {
	if f.Primary == nil || f.Primary(name) {
		return nil
	}
	return f.noCluster(path, name, fmt.Sprintf("%s must have a statically defined non-EDS cluster: '%s' does not exist, was added via api, or is an EDS cluster", apiSource, name))
}

// noCluster is the error msg about a cluster that does not exist.
func (f *Sources) noCluster(path, name, msg string) error {
	e := &config.Error{Path: path, Msg: msg}
	if f.Meant != nil {
		f.Meant(e, name)
	}
	return e
}

// CheckADS checks the source of the aggregated discovery service. known tells which clusters there are.
func (f *Sources) CheckADS(a *corev3.ApiConfigSource, known func(name string) bool) error {
	if err := checkNames(a, 1); err != nil {
		return err
	}
	if t := a.GetApiType(); t != corev3.ApiConfigSource_GRPC && t != corev3.ApiConfigSource_DELTA_GRPC {
		return config.At("api_type", errors.New(apiSource+" type must be of non-aggregated gRPC"))
	}
	var errs config.Errors
	errs.Collect("", checkVersion(a))
	// Envoy's multiplexer for deltas does not ask; what is subscribed to through it does.
	if a.GetApiType() == corev3.ApiConfigSource_GRPC {
		errs.Collect("", f.CheckNode("ads"))
	}
	if g := a.GetGrpcServices()[0].GetEnvoyGrpc(); g != nil && !known(g.GetClusterName()) {
		errs.Collect("", f.noCluster("grpc_services[0].envoy_grpc.cluster_name", g.GetClusterName(), "Unknown gRPC client cluster '"+g.GetClusterName()+"'"))
	}
	if err := errs.Err(); err != nil {
		return err
	}
	return refuseAPI(a)
}

// checkVersion checks that a source speaks xDS v3, the only one that there is.
func checkVersion(a *corev3.ApiConfigSource) error {
	if a.GetTransportApiVersion() != corev3.ApiVersion_V2 { //nolint:staticcheck // deprecated, that is what is said
		return nil
	}
	const text = "V2 xDS transport protocol version is deprecated. The v2 xDS major version has been removed and is no longer supported."
	return config.At("transport_api_version", &config.Error{Msg: text, Suggestion: "V3"})
}

// refuseAPI refuses what there is not of a source that was checked.
func refuseAPI(a *corev3.ApiConfigSource) error {
	if err := config.Refuse(apiGaps, a, ""); err != nil {
		return err
	}
	g := a.GetGrpcServices()[0]
	const at = "grpc_services[0]"
	if err := config.Refuse(grpcGaps, g, ""); err != nil {
		return config.At(at, err)
	}
	if err := config.Refuse(envoyGaps, g.GetEnvoyGrpc(), ""); err != nil {
		return config.At(at+".envoy_grpc", err)
	}
	for i, h := range g.GetInitialMetadata() {
		if strings.Contains(h.GetValue(), "%") {
			return config.At(fmt.Sprintf("%s.initial_metadata[%d].value", at, i), errors.New("operators are not supported yet"))
		}
	}
	return nil
}

// checkNames checks that a source names what its kind is asked by, and only that.
func checkNames(a *corev3.ApiConfigSource, services int) error {
	names, grpc := a.GetClusterNames(), a.GetGrpcServices()
	isGRPC := slices.Contains([]corev3.ApiConfigSource_ApiType{corev3.ApiConfigSource_GRPC, corev3.ApiConfigSource_DELTA_GRPC,
		corev3.ApiConfigSource_AGGREGATED_GRPC, corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC}, a.GetApiType())
	const kind = apiSource + "::(AGGREGATED_)(DELTA_)GRPC"
	switch {
	case len(names)+len(grpc) == 0:
		return errors.New("API configs must have either a gRPC service or a cluster name defined") //nolint:staticcheck // Envoy's text
	case isGRPC && len(names) > 0:
		return config.At("cluster_names", errors.New(kind+" must not have a cluster name specified"))
	case isGRPC && len(grpc) > services:
		return config.At("grpc_services", fmt.Errorf("%s must have no more than %d gRPC services specified", kind, services))
	case isGRPC:
		return nil
	case len(grpc) > 0:
		return config.At("grpc_services", errors.New(apiSource+", if not a gRPC type, must not have a gRPC service specified"))
	case len(names) != 1:
		return config.At("cluster_names", errors.New(apiSource+" must have a singleton cluster name specified"))
	case strings.HasPrefix(a.GetApiType().String(), "DEPRECATED"):
		return config.At("api_type", errors.New("REST_LEGACY no longer a supported ApiConfigSource. Please specify an explicit supported api_type in the following config")) //nolint:staticcheck // Envoy's text
	}
	return nil
}
