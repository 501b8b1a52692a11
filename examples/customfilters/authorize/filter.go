// Package authorize is an HTTP filter written as straight-line code: it asks a service of another cluster whether a request may
// pass, and waits for the answer.
package authorize

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// Extension makes the filter known.
var Extension = ext.HTTPFilter{
	Info:    ext.Info{Name: "dragoman.examples.authorize", TypeURLs: []string{"dragoman.examples.Authorize"}, Posture: ext.RobustToUntrustedDownstream},
	NewSync: newSync,
}

// authorizer is the configured filter. It has no state of a stream, so one value serves all of them.
type authorizer struct {
	cluster, prefix    string
	timeout            time.Duration
	failOpen           bool
	ok, denied, failed stats.CounterID
}

func newSync(m proto.Message, ctx ext.FactoryContext) (func(network.Dispatcher) filter.Sync, error) {
	a := &authorizer{timeout: time.Second}
	for name, v := range m.(*structpb.Struct).GetFields() {
		var err error
		switch name {
		case "cluster":
			a.cluster = v.GetStringValue()
		case "path_prefix":
			a.prefix = v.GetStringValue()
		case "timeout":
			a.timeout, err = time.ParseDuration(v.GetStringValue())
		case "fail_open":
			a.failOpen = v.GetBoolValue()
		default:
			err = errors.New("no such field")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if a.cluster == "" || a.timeout <= 0 {
		return nil, errors.New("a cluster and a timeout are required")
	}
	scope := ctx.Scope().Scope("authorize")
	a.ok, a.denied, a.failed = scope.Counter("ok"), scope.Counter("denied"), scope.Counter("error")
	return func(network.Dispatcher) filter.Sync { return a }, nil
}

// Decode is run for each request.
func (a *authorizer) Decode(s filter.SyncStream, h *http.HeaderMap) *filter.LocalReply {
	cb := s.Callbacks()
	q := &filter.Call{Cluster: a.cluster, Timeout: a.timeout, Method: h.Get(http.Method), Path: a.prefix + h.Get(http.Path),
		Authority: h.Get(http.Authority)}
	if v := h.Get(http.Authorization); v != "" {
		q.Headers = append(q.Headers, http.Header{ID: http.Authorization, Value: v})
	}
	answer, err := s.Call(q)
	switch {
	case errors.Is(err, filter.ErrStreamReset):
		return nil // nobody waits for us any more
	case err != nil || answer.Status >= 500:
		cb.Stats().Inc(a.failed)
		if a.failOpen {
			return nil
		}
		cb.Info().Flags.Set(stream.UnauthorizedExternalService)
		return &filter.LocalReply{Code: 503, Details: "authorize_error", GRPCStatus: -1}
	case answer.Status != 200:
		cb.Stats().Inc(a.denied)
		cb.Info().Flags.Set(stream.UnauthorizedExternalService)
		return &filter.LocalReply{Code: answer.Status, Body: string(answer.Body), Details: "authorize_denied", GRPCStatus: -1}
	}
	cb.Stats().Inc(a.ok)
	h.RemoveName("x-user")
	for _, x := range answer.Headers {
		if x.Name == "x-user" {
			h.SetName("x-user", x.Value)
		}
	}
	return nil
}
