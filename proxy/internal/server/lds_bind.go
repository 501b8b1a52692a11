package server

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"unicode"
	"unicode/utf8"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// hasAddress refuses a listener whose address another one has, or that cannot be bound. old is the one that b replaces.
func (s *Server) hasAddress(b *listenerBuild, old *activeListener) error {
	if err := s.freeAddress(b, old); err != nil {
		return err
	}
	return s.canBind(b, old)
}

// canBind refuses a listener whose addresses cannot be bound, before it counts as taken: Envoy binds when a listener comes, and listens
// when it serves. Addresses that old has keep their sockets. The workers open the sockets later, when the listener has what it waits
// for: an address that somebody has taken meanwhile ends the new listener then.
func (s *Server) canBind(b *listenerBuild, old *activeListener) error {
	src, ok := s.cfg.Sockets.(socket.Prober)
	if !ok || b.unbound() {
		return nil
	}
	for _, spec := range specs(b.l) {
		if old != nil && !old.unbound && slices.Contains(old.build.wanted, spec.Address) {
			continue
		}
		err := src.Probe(s.main.Driver, &spec)
		if err == nil || s.isLeaving(&spec, err) {
			continue
		}
		err = fmt.Errorf("cannot bind '%s': %s", spec.Address, systemText(err))
		s.countListener(stats.ListenerManagerListenerCreateFailure, 1)
		s.logger("config").Error("listener '" + b.p.GetName() + "' failed to bind or apply socket options: " + err.Error())
		return err
	}
	return nil
}

// isLeaving tells whether err may come of a socket of our own that the workers are about to close. Sockets with SO_REUSEPORT do not
// stand in each other's way.
func (s *Server) isLeaving(spec *event.ListenSpec, err error) bool {
	return !spec.ReusePort && s.retiring.listeners > 0 && errors.Is(err, syscall.EADDRINUSE)
}

// systemText is what the system says, as C libraries write it.
func systemText(err error) string {
	text := err.Error()
	if e := syscall.Errno(0); errors.As(err, &e) {
		text = e.Error()
	}
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:]
}

// failedListener is a listener that the last update of LDS, or the last reload, brought and that was refused. owner: main loop.
type failedListener struct {
	name    string
	ref     config.Ref
	at      int64 // ns since 1970
	details string
}

// forgetFailed begins an update: what the one before could not bring is not shown any more.
func (s *Server) forgetFailed() {
	for _, f := range s.dump.failed {
		s.archive().Drop(f.ref)
	}
	s.dump.failed = nil
}

// keepFailed keeps a listener that was refused, for /config_dump.
func (s *Server) keepFailed(p *listenerv3.Listener, err error) {
	s.dump.failed = append(s.dump.failed, s.failure(p, err))
}

func (s *Server) failure(p *listenerv3.Listener, err error) failedListener {
	return failedListener{name: p.GetName(), ref: s.keep(p), at: s.main.Wall(), details: err.Error()}
}

// setFailedStatic keeps what of the bootstrap a reload could not apply, in the place of what was kept before.
func (s *Server) setFailedStatic(list []failedListener) {
	for _, f := range s.dump.failedStatic {
		s.archive().Drop(f.ref)
	}
	s.dump.failedStatic = list
}

// failures are the states of listeners that the last update, or the last reload, could not bring: by name, and all of them once more, as Envoy shows them.
func (d *dumpPage) failures() (byName map[string]*adminv3.UpdateFailureState, names []string, all []*adminv3.UpdateFailureState) {
	byName = map[string]*adminv3.UpdateFailureState{}
	for _, f := range append(slices.Clone(d.s.dump.failed), d.s.dump.failedStatic...) {
		a := d.get(f.ref, &listenerv3.Listener{})
		all = append(all, &adminv3.UpdateFailureState{FailedConfiguration: a, Details: f.details})
		if byName[f.name] == nil {
			names = append(names, f.name)
		}
		byName[f.name] = &adminv3.UpdateFailureState{FailedConfiguration: a, Details: f.details, LastUpdateAttempt: when(f.at)}
	}
	slices.Sort(names)
	return byName, names, all
}
