package dns_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mdns "github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers names of one zone.
func server(t *testing.T, handler mdns.HandlerFunc) netip.AddrPort {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &mdns.Server{PacketConn: pc, Handler: handler}
	done := make(chan struct{})
	started := make(chan struct{})
	s.NotifyStartedFunc = func() { close(started) }
	go func() {
		defer close(done)
		_ = s.ActivateAndServe()
	}()
	<-started
	t.Cleanup(func() { _ = s.Shutdown(); <-done })
	return netip.MustParseAddrPort(pc.LocalAddr().String())
}

func zone(w mdns.ResponseWriter, q *mdns.Msg) {
	m := new(mdns.Msg)
	m.SetReply(q)
	name, typ := q.Question[0].Name, q.Question[0].Qtype
	add := func(rr string) {
		r, err := mdns.NewRR(rr)
		if err == nil && r.Header().Rrtype == typ {
			m.Answer = append(m.Answer, r)
		}
	}
	switch name {
	case "both.test.":
		add("both.test. 60 IN A 10.0.0.1")
		add("both.test. 60 IN A 10.0.0.2")
		add("both.test. 60 IN AAAA fd00::1")
	case "four.test.":
		add("four.test. 60 IN A 10.0.0.4")
	case "fails.test.":
		m.Rcode = mdns.RcodeServerFailure
	default:
		m.Rcode = mdns.RcodeNameError
	}
	_ = w.WriteMsg(m)
}

// loop is a main loop that the test steps.
func loop(t *testing.T) *event.Worker {
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return event.New(event.Config{Index: -1, Driver: d, Clock: clock.System(), Rand: rand.New(), Stats: stats.NewStore().Main()})
}

func until(t *testing.T, w *event.Worker, done func() bool) {
	t.Helper()
	guard := event.Timer{Fn: func() {}}
	for end := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatal("no answer")
		}
		w.Arm(&guard, time.Millisecond)
		w.Step(true)
	}
	w.Remove(&guard)
}

func TestSystem(t *testing.T) {
	w := loop(t)
	s := dns.NewSystem(w, dns.Options{Servers: []netip.AddrPort{server(t, zone)}, NoSearch: true})
	defer s.Close()
	for _, c := range []struct {
		name   string
		family dns.Family
		want   []string
		err    bool
	}{
		{"both.test.", dns.Auto, []string{"fd00::1"}, false},
		{"both.test.", dns.V4Only, []string{"10.0.0.1", "10.0.0.2"}, false},
		{"both.test.", dns.V6Only, []string{"fd00::1"}, false},
		{"both.test.", dns.V4Preferred, []string{"10.0.0.1", "10.0.0.2"}, false},
		{"both.test.", dns.All, []string{"fd00::1", "10.0.0.1", "10.0.0.2"}, false},
		{"four.test.", dns.Auto, []string{"10.0.0.4"}, false},
		{"none.test.", dns.Auto, nil, true},
		{"fails.test.", dns.V4Only, nil, true},
	} {
		var got *dns.Result
		s.Resolve(c.name, c.family, func(r dns.Result) { got = &r })
		if got != nil {
			t.Fatal("answered inline")
		}
		until(t, w, func() bool { return got != nil })
		var ips []string
		for _, a := range got.Addresses {
			ips = append(ips, a.IP.String())
		}
		if d := cmp.Diff(c.want, ips); d != "" || c.err != (got.Err != nil) {
			t.Errorf("%s %d: %v, %s", c.name, c.family, got.Err, d)
		}
		if notFound := errors.Is(got.Err, dns.ErrNotFound); notFound != (c.name == "none.test.") {
			t.Errorf("%s: not found is %v", c.name, notFound)
		}
	}
}

// No answer comes after Cancel, and none after Close; what waits beyond MaxQueries is asked later.
func TestCancelAndLimit(t *testing.T) {
	w := loop(t)
	gate := make(chan struct{})
	s := dns.NewSystem(w, dns.Options{NoSearch: true, Servers: []netip.AddrPort{
		server(t, func(rw mdns.ResponseWriter, q *mdns.Msg) { <-gate; zone(rw, q) })}})
	answers := 0
	count := func(dns.Result) { answers++ }
	cancelled := s.Resolve("four.test.", dns.V4Only, func(dns.Result) { t.Error("a cancelled question was answered") })
	for range dns.MaxQueries + 1 {
		s.Resolve("four.test.", dns.V4Only, count)
	}
	cancelled.Cancel()
	close(gate)
	until(t, w, func() bool { return answers == dns.MaxQueries+1 })
	s.Resolve("four.test.", dns.V4Only, func(dns.Result) { t.Error("answered after Close") })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.Resolve("four.test.", dns.V4Only, func(dns.Result) { t.Error("answered after Close") })
	for range 10 {
		w.Step(false)
	}
}

// Answers come with their lives; too long ones are asked for again over TCP; what strangers send is passed over.
func TestAnswers(t *testing.T) {
	w := loop(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	long := func(rw mdns.ResponseWriter, q *mdns.Msg) {
		m := new(mdns.Msg)
		m.SetReply(q)
		for range 200 {
			rr, _ := mdns.NewRR("long.test. 9 IN A 10.0.0.1")
			m.Answer = append(m.Answer, rr)
		}
		if rw.LocalAddr().Network() == "udp" {
			stranger := m.Copy()
			stranger.Id++
			stranger.Answer = stranger.Answer[:1]
			_ = rw.WriteMsg(stranger)
			m.Truncate(512)
		}
		_ = rw.WriteMsg(m)
	}
	for _, s := range []*mdns.Server{{Listener: l}, {PacketConn: pc}} {
		ch, started := make(chan struct{}), make(chan struct{})
		s.Handler = mdns.HandlerFunc(long)
		s.NotifyStartedFunc = func() { close(started) }
		go func() { defer close(ch); _ = s.ActivateAndServe() }()
		<-started
		defer func() { _ = s.Shutdown(); <-ch }()
	}
	servers := []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())}
	for _, o := range []dns.Options{{Servers: servers}, {Servers: servers, TCP: true}} {
		s := dns.NewSystem(w, o)
		var got *dns.Result
		s.Resolve("long.test.", dns.V4Only, func(r dns.Result) { got = &r })
		until(t, w, func() bool { return got != nil })
		if got.Err != nil || len(got.Addresses) != 200 || got.Addresses[0].TTL != 9*time.Second {
			t.Errorf("%v, %d addresses", got.Err, len(got.Addresses))
		}
		_ = s.Close()
	}
}

// A server that does not answer is followed by the next one.
func TestNextServer(t *testing.T) {
	w := loop(t)
	dead := server(t, func(rw mdns.ResponseWriter, q *mdns.Msg) {
		m := new(mdns.Msg)
		m.SetRcode(q, mdns.RcodeRefused)
		_ = rw.WriteMsg(m)
	})
	s := dns.NewSystem(w, dns.Options{Servers: []netip.AddrPort{dead, server(t, zone)}, NoSearch: true, Tries: 1})
	defer s.Close()
	var got *dns.Result
	s.Resolve("four.test.", dns.Auto, func(r dns.Result) { got = &r })
	until(t, w, func() bool { return got != nil })
	if got.Err != nil || len(got.Addresses) != 1 || got.Addresses[0].TTL != time.Minute {
		t.Errorf("%+v", got)
	}
}
