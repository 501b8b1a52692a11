package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// buildStats reads stats_config and --stats-tag. It comes before all that registers stats.
func (s *Server) buildStats() error {
	p := s.boot.GetStatsConfig()
	var errs config.Errors
	cfg := stats.TagConfig{NoDefaults: p.GetUseAllDefaultTags() != nil && !p.GetUseAllDefaultTags().GetValue()}
	for _, t := range s.cfg.Options.StatsTags {
		name, value, _ := strings.Cut(t, ":")
		cfg.Fixed = append(cfg.Fixed, stats.Tag{Name: name, Value: value})
	}
	for i, t := range p.GetStatsTags() {
		r := stats.TagRule{Name: t.GetTagName(), Fixed: t.GetFixedValue()}
		_, r.HasFixed = t.GetTagValue().(*metricsv3.TagSpecifier_FixedValue)
		if text := t.GetRegex(); text != "" {
			re, err := stats.CompileTagRegex(text)
			if err != nil {
				errs.Collect(fmt.Sprintf("stats_config.stats_tags[%d].regex", i), fmt.Errorf("Invalid regex '%s': %w", text, err)) //nolint:staticcheck // Envoy's text
				continue
			}
			r.Regex = re
		}
		cfg.Rules = append(cfg.Rules, r)
	}
	var err error
	if s.tagger, err = stats.NewTagger(cfg); err != nil {
		path := "stats_config.stats_tags"
		if one := (*stats.RuleError)(nil); errors.As(err, &one) && len(cfg.Rules) == len(p.GetStatsTags()) {
			path, err = fmt.Sprintf("%s[%d]", path, one.Rule), one.Err
		}
		errs.Collect(path, err)
	}
	reject, err := statsMatcher(p.GetStatsMatcher())
	errs.Collect("stats_config.stats_matcher", err)
	if reject != nil {
		s.store.SetMatcher(reject)
	}
	buckets, err := histogramBuckets(p.GetHistogramBucketSettings())
	errs.Collect("stats_config.histogram_bucket_settings", err)
	if buckets != nil {
		s.store.SetBuckets(buckets)
	}
	return s.located("", errs.Err())
}

// statsMatcher returns what tells the names that are not shown; nil: all are.
func statsMatcher(p *metricsv3.StatsMatcher) (reject func(name []byte) bool, err error) {
	switch x := p.GetStatsMatcher().(type) {
	case *metricsv3.StatsMatcher_RejectAll:
		if x.RejectAll {
			return func([]byte) bool { return true }, nil
		}
		return nil, nil
	case *metricsv3.StatsMatcher_ExclusionList:
		any, err := anyOf(x.ExclusionList)
		return any, at("exclusion_list.patterns", err)
	case *metricsv3.StatsMatcher_InclusionList:
		any, err := anyOf(x.InclusionList)
		if err != nil {
			return nil, at("inclusion_list.patterns", err)
		}
		return func(name []byte) bool { return !any(name) }, nil
	}
	return nil, nil
}

func anyOf(p *matcherv3.ListStringMatcher) (func(name []byte) bool, error) {
	var list []interface{ Match(string) bool }
	for i, m := range p.GetPatterns() {
		f, err := route.StringMatcher(m)
		if err != nil {
			return nil, at(fmt.Sprintf("[%d]", i), err)
		}
		list = append(list, f)
	}
	return func(name []byte) bool {
		text := string(name)
		for _, f := range list {
			if f.Match(text) {
				return true
			}
		}
		return false
	}, nil
}

// histogramBuckets returns what knows the buckets of a histogram by its name; nil: all have the usual ones.
func histogramBuckets(list []*metricsv3.HistogramBucketSettings) (func(name string) []float64, error) {
	type setting struct {
		match   interface{ Match(string) bool }
		buckets []float64
	}
	var all []setting
	for n, p := range list {
		m, err := route.StringMatcher(p.GetMatch())
		if err != nil {
			return nil, at(fmt.Sprintf("[%d].match", n), err)
		}
		all = append(all, setting{m, slices.Sorted(slices.Values(p.GetBuckets()))})
	}
	if all == nil {
		return nil, nil
	}
	return func(name string) []float64 {
		for _, x := range all {
			if x.match.Match(name) {
				return x.buckets
			}
		}
		return nil
	}, nil
}

// dynamicOptions says how resources that come later are read: unknown and deprecated fields are counted, unless the command line says
// otherwise. It is told of them on the main loop.
func (s *Server) dynamicOptions() config.Options {
	c := &s.cfg.Options.CommandLine
	o := config.Options{AllowUnknownFields: !c.RejectUnknownDynamicFields}
	if o.AllowUnknownFields && c.IgnoreUnknownDynamicFields {
		return o
	}
	o.OnDeprecated = func(e *config.Error, _ string) {
		s.runtime.CountDeprecated()
		if !c.SkipDeprecatedLogs {
			s.logger("misc").Warn(e.Error())
		}
	}
	if o.AllowUnknownFields {
		o.OnUnknownField = func(e *config.Error) {
			s.count(stats.ServerDynamicUnknownFields, 1)
			s.logger("config").Warn("Unknown field: " + e.Error())
		}
	}
	return o
}

// countUnknown counts the unknown fields of the bootstrap.
func (s *Server) countUnknown(n int) {
	s.count(stats.ServerStaticUnknownFields, uint64(n))
	if n > 0 {
		s.logger("misc").Warn("the static configuration has unknown fields", "count", n)
	}
}
