package server

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/runtime"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// rtds gives a runtime layer the values that come from outside. It is the sub.Callbacks of a subscription to one resource.
// owner: main loop.
type rtds struct {
	s     *Server
	layer runtime.Remote
	came  func()
}

// checkRTDS looks at the sources of runtime layers.
func (s *Server) checkRTDS() error {
	var errs config.Errors
	for _, y := range s.runtime.Remotes() {
		errs.Collect(fmt.Sprintf("layers[%d].rtds_layer.rtds_config", y.Index), s.dynamic.sources.Check(y.From, xdstype.Runtime))
	}
	return errs.Err()
}

// startRTDS subscribes to runtime layers. done is called once all have come, or will not for now.
func (s *Server) startRTDS(done func()) {
	waiting := 1
	came := func() {
		if waiting--; waiting == 0 {
			done()
		}
	}
	for _, y := range s.runtime.Remotes() {
		r := &rtds{s: s, layer: y, came: came}
		st, _ := sub.NewStats(s.store.Root().Scope("runtime"))
		waiting++
		if _, err := s.dynamic.sources.Subscribe(y.From, xdstype.Runtime, []string{y.Resource}, st, r); err != nil {
			s.logger("runtime").Error("the layer " + y.Layer + " cannot be subscribed to: " + err.Error())
			r.arrived()
		}
	}
	came()
}

// OnUpdate gives the layer its values.
func (r *rtds) OnUpdate(u *sub.Update) error {
	if len(u.Resources) == 0 && len(u.Removed) > 0 {
		r.s.runtime.Replace(r.layer.Layer, nil)
		r.arrived()
		return nil
	}
	if len(u.Resources) != 1 || len(u.Removed) > 0 {
		return fmt.Errorf("Unexpected RTDS resource length, number of added resources %d, number of removed resources %d", len(u.Resources), len(u.Removed)) //nolint:staticcheck // Envoy's text
	}
	x := &u.Resources[0]
	values, ok := x.Body.(*structpb.Struct)
	switch {
	case x.Err != nil && x.Name == "":
		return x.Placed(x.Err)
	case x.Name != r.layer.Resource:
		return fmt.Errorf("Unexpected RTDS runtime (expecting %s): %s", r.layer.Resource, x.Name) //nolint:staticcheck // Envoy's text
	case x.Err != nil:
		return x.Named(x.Err)
	case x.Unchanged:
	case !ok:
		return fmt.Errorf("RTDS resource %s is no Runtime", x.Name)
	default:
		v, err := runtime.FromStruct(values)
		if err != nil {
			return x.Named(err)
		}
		r.s.runtime.Replace(r.layer.Layer, v)
	}
	r.arrived()
	return nil
}

// OnFailure goes on with what the layer has.
func (r *rtds) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		r.arrived()
	}
}

func (r *rtds) arrived() {
	if f := r.came; f != nil {
		r.came = nil
		f()
	}
}
