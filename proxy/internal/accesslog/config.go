package accesslog

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// Runtime answers runtime keys. It is asked on workers.
type Runtime interface {
	// Integer returns the value of key, or def.
	Integer(key string, def uint64) uint64
	// Enabled tells whether a feature that is on for numerator of denominator (or what key says) is on for this random number.
	Enabled(key string, numerator, random, denominator uint64) bool
}

// Deps is what building loggers needs.
type Deps struct {
	Manager *Manager
	Format  *format.Options
	// Resolver finds message types; nil means all that are linked in.
	Resolver config.Resolver
	// Runtime is nil where there is none: defaults hold.
	Runtime Runtime
	// Header and String compile matchers of headers and strings.
	Header func(*routev3.HeaderMatcher) (func(h *http.HeaderMap) bool, error)
	String func(*matcherv3.StringMatcher) (func(s string) bool, error)
	// Logger makes the loggers of extensions from their configuration; ok is false for types that it does not know.
	Logger func(name string, msg proto.Message) (l accesslog.Logger, ok bool, err error)
}

// NewAll builds the loggers of a list. If one fails, those that were built are released.
func NewAll(list []*accesslogv3.AccessLog, d *Deps) (accesslog.Loggers, error) {
	var out accesslog.Loggers
	var errs config.Errors
	for i, a := range list {
		l, err := New(a, d)
		if errs.Collect(fmt.Sprintf("[%d]", i), err) {
			out = append(out, l)
		}
	}
	if err := errs.Err(); err != nil {
		ReleaseAll(out)
		return nil, err
	}
	return out, nil
}

// New builds one logger with its filter. Give it up with Release.
func New(a *accesslogv3.AccessLog, d *Deps) (accesslog.Logger, error) {
	var filter accesslog.Filter
	var errs config.Errors
	if a.GetFilter() != nil {
		var err error
		filter, err = NewFilter(a.GetFilter(), d)
		errs.Collect("filter", err)
	}
	msg, _, err := config.Unpack(a.GetTypedConfig(), d.Resolver)
	if !errs.Collect("typed_config", err) {
		return nil, errs.Err()
	}
	l, err := newLogger(a, msg, d)
	if errs.Collect("typed_config", err); errs.Len() > 0 {
		if err == nil {
			ReleaseAll(accesslog.Loggers{l})
		}
		return nil, errs.Err()
	}
	if filter != nil {
		l = Filtered(filter, l)
	}
	return l, nil
}

func newLogger(a *accesslogv3.AccessLog, msg proto.Message, d *Deps) (accesslog.Logger, error) {
	switch c := msg.(type) {
	case *filev3.FileAccessLog:
		f, err := fileFormat(c, d)
		if err != nil {
			return nil, err
		}
		l, err := d.Manager.NewFileLogger(c.GetPath(), f)
		return l, config.At("path", err)
	case *streamv3.StdoutAccessLog:
		f, err := formatOrDefault(c.GetLogFormat(), d)
		if err != nil {
			return nil, err
		}
		return d.Manager.NewStdoutLogger(f)
	case *streamv3.StderrAccessLog:
		f, err := formatOrDefault(c.GetLogFormat(), d)
		if err != nil {
			return nil, err
		}
		return d.Manager.NewStderrLogger(f)
	}
	if msg != nil && d.Logger != nil {
		if l, ok, err := d.Logger(a.GetName(), msg); ok || err != nil {
			return l, err
		}
	}
	return nil, unregistered(a)
}

func formatOrDefault(f *corev3.SubstitutionFormatString, d *Deps) (*format.Format, error) {
	if f == nil {
		return format.ParseText(format.DefaultHTTP, d.Format)
	}
	x, err := format.New(f, d.Format, d.Resolver)
	return x, config.At("log_format", err)
}

// fileFormat reads the four ways to say a file's format, three of them deprecated.
func fileFormat(c *filev3.FileAccessLog, d *Deps) (*format.Format, error) {
	switch f := c.GetAccessLogFormat().(type) {
	case *filev3.FileAccessLog_LogFormat:
		x, err := format.New(f.LogFormat, d.Format, d.Resolver)
		return x, config.At("log_format", err)
	case *filev3.FileAccessLog_Format: //nolint:staticcheck // deprecated, and used
		if f.Format == "" {
			break
		}
		x, err := format.ParseText(f.Format, d.Format)
		return x, config.At("format", err)
	case *filev3.FileAccessLog_JsonFormat: //nolint:staticcheck // deprecated, and used
		x, err := format.ParseJSON(f.JsonFormat.AsMap(), d.Format)
		return x, config.At("json_format", err)
	case *filev3.FileAccessLog_TypedJsonFormat: //nolint:staticcheck // deprecated, and used
		x, err := format.ParseJSON(f.TypedJsonFormat.AsMap(), d.Format)
		return x, config.At("typed_json_format", err)
	}
	return formatOrDefault(nil, d)
}

// unregistered is the error about an access log that there is not.
func unregistered(a *accesslogv3.AccessLog) error {
	e := config.Unregistered(a.GetName(), a.GetTypedConfig())
	if n := a.GetName(); a.GetTypedConfig().GetTypeUrl() == "" && (config.SameExtension(n, "envoy.access_loggers.file") || n == "envoy.file_access_log") {
		e.Typed("envoy.extensions.access_loggers.file.v3.FileAccessLog")
	}
	return e
}
