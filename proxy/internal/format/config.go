package format

import (
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/metadata/v3"
	reqv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/req_without_query/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// New compiles an envoy.config.core.v3.SubstitutionFormatString. r decodes the configuration of formatter extensions; nil means
// all types that are linked in.
func New(f *corev3.SubstitutionFormatString, o *Options, r config.Resolver) (*Format, error) {
	if err := config.Refuse(gaps, f, ""); err != nil {
		return nil, err
	}
	opts := *o
	opts.OmitEmpty = f.GetOmitEmptyValues()
	if err := opts.addFormatters(f.GetFormatters(), r); err != nil {
		return nil, err
	}
	switch s := f.GetFormat().(type) {
	case *corev3.SubstitutionFormatString_TextFormat:
		f, err := ParseText(s.TextFormat, &opts)
		return f, config.At("text_format", err)
	case *corev3.SubstitutionFormatString_TextFormatSource:
		text, err := source(s.TextFormatSource, &opts)
		if err != nil {
			return nil, config.At("text_format_source", err)
		}
		f, err := ParseText(text, &opts)
		if s.TextFormatSource.GetSpecifier() != nil && s.TextFormatSource.GetFilename() == "" && s.TextFormatSource.GetEnvironmentVariable() == "" {
			return f, config.At("text_format_source.inline_string", err)
		}
		return f, config.At("text_format_source", err)
	case *corev3.SubstitutionFormatString_JsonFormat:
		f, err := ParseJSON(s.JsonFormat.AsMap(), &opts)
		return f, config.At("json_format", err)
	}
	return nil, fmt.Errorf("a format needs text_format_source or json_format")
}

// WithFormatters returns a copy of o with the operators of configured formatter extensions; r is as in New.
func (o *Options) WithFormatters(list []*corev3.TypedExtensionConfig, r config.Resolver) (*Options, error) {
	opts := *o
	if err := opts.addFormatters(list, r); err != nil {
		return nil, err
	}
	return &opts, nil
}

// addFormatters adds the operators of configured formatter extensions.
func (o *Options) addFormatters(list []*corev3.TypedExtensionConfig, r config.Resolver) error {
	for _, f := range list {
		msg, _, err := config.Unpack(f.GetTypedConfig(), r)
		if err != nil {
			return fmt.Errorf("formatter %s: %w", f.GetName(), err)
		}
		extra := formatter(msg)
		if extra == nil {
			return refuse("Formatter not found: %s", f.GetName())
		}
		all := map[string]Extra{}
		for k, v := range o.Extra {
			all[k] = v
		}
		for k, v := range extra {
			all[k] = v
		}
		o.Extra = all
	}
	return nil
}

// formatter returns the operators of a formatter extension that is built in, nil if it is none.
func formatter(msg proto.Message) map[string]Extra {
	switch msg.(type) {
	case *reqv3.ReqWithoutQuery:
		return map[string]Extra{"REQ_WITHOUT_QUERY": ReqWithoutQuery}
	case *metadatav3.Metadata: // METADATA is always there
		return map[string]Extra{}
	}
	return nil
}

// source reads a DataSource. Errors are Envoy's.
func source(d *corev3.DataSource, o *Options) (string, error) {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineString:
		return s.InlineString, nil
	case *corev3.DataSource_InlineBytes:
		return string(s.InlineBytes), nil
	case *corev3.DataSource_Filename:
		b, err := os.ReadFile(s.Filename)
		if err != nil {
			return "", config.Lacking("Invalid path: "+s.Filename, err)
		}
		return string(b), nil
	case *corev3.DataSource_EnvironmentVariable:
		if o.Env != nil {
			if v, ok := o.Env(s.EnvironmentVariable); ok {
				return v, nil
			}
		}
		return "", config.Lacking("Environment variable doesn't exist: "+s.EnvironmentVariable, nil)
	}
	return "", fmt.Errorf("a data source needs one of filename, inline_bytes, inline_string and environment_variable")
}
