package server

import (
	"errors"
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// lds applies updates of listeners. It is the sub.Callbacks of a wildcard subscription. owner: main loop.
type lds struct {
	s     *Server
	done  func()
	pause func() (resume func())
	names map[string]bool // the listeners that this subscription brought
}

// OnUpdate adds, changes and removes listeners. Good ones are applied even if others are refused.
func (l *lds) OnUpdate(u *sub.Update) error { return sub.Apply(l, u) }

// Begin implements sub.Stepper: a step is one listener.
func (l *lds) Begin(u *sub.Update) (step func() (int, bool), finish func() error) {
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.s.forgetFailed()
	x := &ldsUpdate{l: l, u: u, resume: l.pause()}
	x.seen, x.removed = u.Changes(l.names)
	return x.step, x.finish
}

// ldsUpdate is an update that is being applied: first what is removed, since its addresses may be taken over, then the rest.
type ldsUpdate struct {
	l       *lds
	u       *sub.Update
	at      int
	seen    map[string]bool // of a full update: names, and whether they came already
	removed []string
	bad     string
	resume  func() // lets the requests go that listeners cause
}

func (x *ldsUpdate) step() (refused int, more bool) {
	refused = -1
	l, n := x.l, len(x.removed)
	switch i := x.at - n; {
	case x.at < n:
		if name := x.removed[x.at]; l.names[name] {
			delete(l.names, name)
			l.s.logger("upstream").Info("lds: remove listener '" + name + "'")
			l.s.removeListener(name)
		}
	case i < len(x.u.Resources):
		r := &x.u.Resources[i]
		if err := r.Placed(x.apply(r)); err != nil {
			refused = i
			l.s.logger("upstream").Warn("lds: listener '" + r.Name + "' config rejected: " + err.Error())
			if r.Name != "" {
				x.bad += r.Name + ": "
			}
			x.bad += err.Error() + "\n"
		}
	}
	x.at++
	return refused, x.at < n+len(x.u.Resources)
}

// apply takes one listener.
func (x *ldsUpdate) apply(r *sub.Resource) error {
	if x.seen != nil {
		if x.seen[r.Name] {
			return fmt.Errorf("duplicate listener %s found", r.Name)
		}
		x.seen[r.Name] = true
	}
	switch {
	case r.Unchanged:
		return nil
	case r.Err != nil:
		return r.Err
	}
	p, ok := r.Body.(*listenerv3.Listener)
	if !ok {
		return errors.New("is no Listener")
	}
	if x.l.s.listenersStopped(p) {
		x.l.s.logger("upstream").Debug("lds: add/update listener '" + p.GetName() + "' skipped: the listeners of its traffic direction are stopped")
		return nil
	}
	version := r.Version
	if version == "" {
		version = x.u.Version
	}
	if err := x.l.s.addOrUpdateListener(p, version); err != nil {
		x.l.s.keepFailed(p, err)
		return err
	}
	x.l.names[p.GetName()] = true
	x.l.s.logger("upstream").Info("lds: add/update listener '" + p.GetName() + "'")
	return nil
}

func (x *ldsUpdate) finish() error {
	x.l.done()
	x.resume()
	if x.bad != "" {
		return errors.New("Error adding/updating listener(s) " + x.bad) //nolint:staticcheck // Envoy's text
	}
	return nil
}

// OnFailure goes on without listeners.
func (l *lds) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		l.done()
	}
}
