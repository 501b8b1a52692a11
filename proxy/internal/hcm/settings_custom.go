package hcm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// The identifiers of settings (RFC 9113, section 6.5.2, and RFC 8441, section 3) that have rules of their own among the custom ones.
const (
	settingHeaderTableSize      = 1
	settingEnablePush           = 2
	settingMaxConcurrentStreams = 3
	settingInitialWindowSize    = 4
	settingEnableConnect        = 8
)

// checkCustomSettings refuses custom settings that contradict each other or an option with a name, in Envoy's words.
func checkCustomSettings(p *corev3.Http2ProtocolOptions) error {
	values, twice := map[uint32]uint32{}, []string(nil)
	for i, s := range p.GetCustomSettingsParameters() {
		id, v := s.GetIdentifier().GetValue(), s.GetValue().GetValue()
		path := fmt.Sprintf("custom_settings_parameters[%d]", i)
		switch was, dup := values[id]; {
		case id == settingEnablePush && v == 1:
			return config.At(path, errors.New("server push is not supported by Envoy and can not be enabled via a SETTINGS parameter."))
		case id == settingEnableConnect:
			return config.At(path, errors.New(`the "allow_connect" SETTINGS parameter must only be configured through the named field`))
		case dup && was != v:
			if name := fmt.Sprintf("0x%x", id); !slices.Contains(twice, name) {
				twice = append(twice, name)
			}
		case !dup:
			values[id] = v
		}
	}
	if len(twice) > 0 {
		return config.At("custom_settings_parameters", fmt.Errorf("inconsistent HTTP/2 custom SETTINGS parameter(s) detected; identifiers = {%s}", strings.Join(twice, ",")))
	}
	var both []string
	for _, named := range []struct {
		id   uint32
		set  bool
		name string
	}{
		{settingHeaderTableSize, p.GetHpackTableSize() != nil, "hpack_table_size"},
		{settingMaxConcurrentStreams, p.GetMaxConcurrentStreams() != nil, "max_concurrent_streams"},
		{settingInitialWindowSize, p.GetInitialStreamWindowSize() != nil, "initial_stream_window_size"},
	} {
		if _, custom := values[named.id]; custom && named.set {
			both = append(both, named.name)
		}
	}
	if len(both) > 0 {
		return config.At("custom_settings_parameters",
			fmt.Errorf("the {%s} HTTP/2 SETTINGS parameter(s) can not be configured through both named and custom parameters", strings.Join(both, ",")))
	}
	return nil
}
