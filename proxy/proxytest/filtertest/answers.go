package filtertest

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

// The methods below complete Context as an ext.FactoryContext: there are no clusters, no runtime keys and nothing to compile.

var errNotHere = errors.New("filtertest compiles nothing")

// ClusterHosts implements ext.FactoryContext.
func (c *Context) ClusterHosts(string) (usable, all int, ok bool) { return 0, 0, false }

// LocalCluster implements ext.FactoryContext.
func (c *Context) LocalCluster() string { return "" }

// HealthFailed implements ext.FactoryContext.
func (c *Context) HealthFailed() bool { return false }

// Runtime implements ext.FactoryContext.
func (c *Context) Runtime() ext.Runtime { return noRuntime{} }

// HeaderMatcher implements ext.FactoryContext.
func (c *Context) HeaderMatcher(proto.Message) (ext.HeaderMatcher, error) { return nil, errNotHere }

// StringMatcher implements ext.FactoryContext.
func (c *Context) StringMatcher(proto.Message) (ext.StringMatcher, error) { return nil, errNotHere }

// Rewriter implements ext.FactoryContext.
func (c *Context) Rewriter(proto.Message) (ext.Rewriter, error) { return nil, errNotHere }

// HeaderMutations implements ext.FactoryContext.
func (c *Context) HeaderMutations([]proto.Message) (ext.HeaderMutations, error) {
	return nil, errNotHere
}

// WithFormatters implements ext.FactoryContext.
func (c *Context) WithFormatters([]proto.Message) (ext.FactoryContext, error) { return nil, errNotHere }

// noRuntime has no key.
type noRuntime struct{}

func (noRuntime) Uint(_ string, def uint64) uint64 { return def }
func (noRuntime) Bool(_ string, def bool) bool     { return def }
func (noRuntime) Enabled(_ string, numerator, random, denominator uint64) bool {
	return random%denominator < numerator
}
