package server

import (
	"errors"
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// addOrUpdateListener takes a listener of LDS. One that keeps its address keeps its sockets: its chains are replaced, and what is
// in the accept queues goes to the new ones. owner: main loop.
func (s *Server) addOrUpdateListener(p *listenerv3.Listener, version string) error {
	old := s.listeners[p.Name]
	for _, a := range s.order {
		if a.name == p.Name && old == nil {
			return errors.New("a static listener of that name exists")
		}
	}
	l, err := s.listener(p)
	if err != nil {
		return err
	}
	if old != nil && old.l.Address == l.Address {
		old.l.SetChains(l.Chains())
		return nil
	}
	for _, a := range s.order {
		if a.l.Address == l.Address && a.l.Address.IP.Port() != 0 {
			return fmt.Errorf("error adding listener: '%s' has duplicate address '%s' as existing listener", p.Name, l.Address)
		}
	}
	if old != nil {
		s.removeListener(p.Name)
	}
	a := &activeListener{name: p.Name, l: l}
	s.listeners[p.Name] = a
	s.order = append(s.order, a)
	if s.State() == Live {
		s.openAll([]*activeListener{a}, func(err error) {
			if err != nil {
				s.removeListener(p.Name)
			}
		})
	}
	return nil
}

// removeListener stops accepting for a listener of LDS; its connections drain.
func (s *Server) removeListener(name string) {
	a := s.listeners[name]
	if a == nil {
		return
	}
	delete(s.listeners, name)
	for i := range s.order {
		if s.order[i] == a {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			break
		}
	}
	a.l.Drain()
	for i, acc := range a.accs {
		s.workers[i].Post(acc.Close)
	}
}
