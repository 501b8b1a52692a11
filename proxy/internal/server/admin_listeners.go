package server

import (
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
)

// at is the address that a listener's sockets have, or will have.
func (a *activeListener) at() network.Address {
	if a.bound.Valid() {
		return a.bound
	}
	return a.l.Address
}

// serveListeners answers /listeners.
func (s *Server) serveListeners(r *admin.Request, done func(*admin.Response)) {
	if r.Query.Get("format") == "json" {
		out := &adminv3.Listeners{}
		for _, a := range s.order {
			if a.cold() {
				continue
			}
			st := &adminv3.ListenerStatus{Name: a.shown, LocalAddress: addressOf(a.at())}
			for _, x := range a.alsoAt() {
				st.AdditionalLocalAddresses = append(st.AdditionalLocalAddresses, addressOf(x))
			}
			out.ListenerStatuses = append(out.ListenerStatuses, st)
		}
		answerJSON(done, out, false)
		return
	}
	var b []byte
	for _, a := range s.order {
		if a.cold() {
			continue
		}
		for _, x := range append([]network.Address{a.at()}, a.alsoAt()...) {
			b = append(append(append(append(b, a.shown...), "::"...), x.String()...), '\n')
		}
	}
	done(admin.OK(string(b)))
}

// serveDrainListeners answers /drain_listeners.
func (s *Server) serveDrainListeners(r *admin.Request, done func(*admin.Response)) {
	s.drainListeners(r.Query.Has("graceful"), r.Query.Has("inboundonly"), r.Query.Has("skip_exit"))
	done(admin.OK("OK\n"))
}
