package hcm

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuidv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Tracing decides which requests are traced, and tells the services behind and before us by x-request-id and x-envoy-decorator-operation.
// There is no provider to send spans to yet.
type Tracing struct {
	// Stats is stats.Tracing.
	Stats astats.GroupBase
	route.Sampling
	// Egress: requests leave the network (the listener's traffic_direction is OUTBOUND).
	Egress bool
}

// RequestIDs says what x-request-id carries besides the id.
type RequestIDs struct {
	// Pack: a character of the id says why the request is traced.
	Pack bool
	// Sample: the id decides about random sampling.
	Sample bool
}

// The character of a UUID that says why a request is traced, and its values.
const (
	reasonAt      = 14
	uuidLength    = 36
	notTraced     = '4' // what a UUID of version 4 has there
	sampled       = '9'
	serviceForced = 'a'
	clientForced  = 'b'
)

func (c *Config) tracing(p *hcmv3.HttpConnectionManager, d Deps, group astats.GroupBase) error {
	c.RequestIDs = RequestIDs{Pack: true, Sample: true}
	if a := p.RequestIdExtension.GetTypedConfig(); a != nil {
		var u uuidv3.UuidRequestIdConfig
		if err := a.UnmarshalTo(&u); err != nil {
			return err
		}
		if u.PackTraceReason != nil {
			c.RequestIDs.Pack = u.PackTraceReason.Value
		}
		if u.UseRequestIdForTraceSampling != nil {
			c.RequestIDs.Sample = u.UseRequestIdForTraceSampling.Value
		}
	}
	t := p.Tracing
	if t == nil {
		return nil
	}
	percent := func(p *typev3.Percent, whole uint64) route.Fraction {
		if p == nil {
			return route.Fraction{N: whole, D: whole}
		}
		return route.Fraction{N: uint64(p.Value * float64(whole) / 100), D: whole}
	}
	c.Tracing = &Tracing{Stats: group, Egress: d.Direction == corev3.TrafficDirection_OUTBOUND, Sampling: route.Sampling{
		Client: percent(t.ClientSampling, 100), Random: percent(t.RandomSampling, 10000), Overall: percent(t.OverallSampling, 100)}}
	return nil
}

// trace decides whether the request is traced, and notes it.
func (s *Stream) trace(head *http.HeaderMap) {
	t := s.h.cfg.Tracing
	counter := stats.TracingNotTraceable
	switch s.traceReason(head) {
	case sampled:
		counter = stats.TracingRandomSampling
	case serviceForced:
		counter = stats.TracingServiceForced
	case clientForced:
		counter = stats.TracingClientEnabled
	}
	s.h.w.Stats.Inc(t.Stats.Counter(counter))
	if s.route != nil && s.route.Decorator != "" && s.route.DecoratorPropagate {
		s.operation = s.route.Decorator
	}
	if t.Egress {
		if s.operation != "" {
			head.SetConst(http.EnvoyDecoratorOperation, s.operation)
		}
		return
	}
	if f := head.Find(http.EnvoyDecoratorOperation); f != nil {
		if f.Value != "" {
			s.operation = "" // the client's word counts
		}
		head.Remove(http.EnvoyDecoratorOperation)
	}
}

// traceResponse tells the client what the operation is called, or takes away what an upstream says of it.
func (s *Stream) traceResponse(h *http.HeaderMap) {
	switch {
	case s.h.cfg.Tracing.Egress:
		h.Remove(http.EnvoyDecoratorOperation)
	case s.operation != "":
		h.SetConst(http.EnvoyDecoratorOperation, s.operation)
	}
}

// traceReason finds out why a request is traced, if it is: it may say so itself, or the client asks for it, or it is its turn.
func (s *Stream) traceReason(head *http.HeaderMap) byte {
	cfg := s.h.cfg
	t := &cfg.Tracing.Sampling
	if s.route != nil && s.route.Sampling != nil {
		t = s.route.Sampling
	}
	if !cfg.RequestIDs.Sample {
		return sampled
	}
	id := head.Get(http.XRequestID)
	n, ok := idNumber(id)
	if !ok {
		return notTraced
	}
	reason := byte(notTraced)
	if cfg.RequestIDs.Pack {
		switch c := id[reasonAt]; c {
		case sampled, serviceForced, clientForced:
			reason = c
		}
	}
	if reason == notTraced {
		switch {
		case head.Has(http.XClientTraceID) && s.enabled("tracing.client_enabled", t.Client, s.h.w.Rand.Uint64()):
			reason = clientForced
		case head.Has(http.EnvoyForceTrace):
			reason = serviceForced
		case s.enabled("tracing.random_sampling", t.Random, n):
			reason = sampled
		}
		s.setReason(head, reason)
	}
	if reason != notTraced && !s.enabled("tracing.global_enabled", t.Overall, n) {
		reason = notTraced
		s.setReason(head, reason)
	}
	return reason
}

func (s *Stream) enabled(key string, f route.Fraction, random uint64) bool {
	if r := s.h.cfg.Runtime; r != nil {
		f.N, f.D = r.Fraction(key, f.N, f.D)
	}
	return f.D > 0 && random%f.D < f.N
}

// setReason writes why the request is traced into its id.
func (s *Stream) setReason(head *http.HeaderMap, reason byte) {
	f := head.Find(http.XRequestID)
	if f == nil || len(f.Value) != uuidLength || f.Value[reasonAt] == reason || !s.h.cfg.RequestIDs.Pack {
		return
	}
	b := s.arena.Bytes(uuidLength)
	copy(b, f.Value)
	b[reasonAt] = reason
	head.Replace(f, http.View(b))
}

// idNumber is the number that a UUID begins with.
func idNumber(id string) (n uint64, ok bool) {
	if len(id) != uuidLength {
		return 0, false
	}
	for i := range 8 {
		d := unhex(id[i])
		if d < 0 {
			return 0, false
		}
		n = n<<4 | uint64(d)
	}
	return n, true
}
