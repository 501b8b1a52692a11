package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// What is wrong within an extension that this build does not have is told besides, also deeper down; what is not known there is not.
func TestErrorsOfAbsentExtensions(t *testing.T) {
	const in = `bootstrap_extensions:
- name: x
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor
    bogus: 1
    response_direction_config: {uncompressible_response_codes: [99]}
    compressor_library: {name: g, typed_config: {"@type": type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip, window_bits: 8}}
- name: z
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig
    body: {string_value: a}
`
	_, _, err := config.Load(write(t, "envoy.yaml", []byte(in)), config.Options{})
	var errs *config.Errors
	if !errors.As(err, &errs) {
		t.Fatal(err)
	}
	want := []string{
		":4:14: bootstrap_extensions[0].typed_config: could not find @type 'type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor': not supported yet",
		":5:5: bootstrap_extensions[0].typed_config.bogus: no such field: 'bogus'",
		":6:65: bootstrap_extensions[0].typed_config.response_direction_config.uncompressible_response_codes[0]: Proto constraint validation failed (ResponseDirectionConfigValidationError.UncompressibleResponseCodes[0]: value must be inside range [200, 600))",
		": bootstrap_extensions[0].typed_config.compressor_library.typed_config.window_bits: Proto constraint validation failed (GzipValidationError.WindowBits: value must be inside range [9, 15])",
		":10:14: bootstrap_extensions[1].typed_config: could not find @type 'type.googleapis.com/envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig': not supported yet",
	}
	if len(errs.List) != len(want) {
		t.Errorf("%d errors:\n%v", len(errs.List), err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %s in\n%v", w, err)
		}
	}
}
