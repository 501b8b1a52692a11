package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// listenerRig is a proxy without static listeners, to which a test gives some.
type listenerRig struct {
	*adminRig
	k *handClock
}

const listenerDrain = 10 * time.Second

func newListenerRig(t *testing.T, static string) *listenerRig {
	t.Helper()
	k := &handClock{}
	r := newAdminRig(t, "static_resources: {"+static+"}", withClock(k), func(c *Config) {
		c.Options.DrainTime, c.Options.DrainImmediate = listenerDrain, true
	})
	var failed error
	r.s.main.Post(func() { r.s.Start(func(err error) { failed = err }) })
	r.step()
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() {
		for _, w := range r.s.workers {
			w.Post(func() { listener.CloseAll(w); r.s.closeOn(w) })
		}
		r.step()
	})
	return &listenerRig{r, k}
}

// config makes a listener that answers with a body. fields are more fields of it.
func listenerConfig(t *testing.T, name, address string, fields string, bodies ...string) *listenerv3.Listener {
	t.Helper()
	var chains []string
	for i, b := range bodies {
		chains = append(chains, fmt.Sprintf(`{"name": "c%d", %s "filters": [{"name": "h", "typed_config": {
			"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "h",
			"route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"},
			"direct_response": {"status": 200, "body": {"inline_string": %q}}}]}]},
			"http_filters": [{"name": "r", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}`,
			i, clientMatch(i), b))
	}
	host, port, _ := net.SplitHostPort(address)
	p := &listenerv3.Listener{}
	text := fmt.Sprintf(`{"name": %q, "address": {"socket_address": {"address": %q, "port_value": %s}}, %s "filter_chains": [%s]}`,
		name, host, port, fields, strings.Join(chains, ", "))
	if err := protojson.Unmarshal([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// clientMatch tells chains apart by the client's address: chain i serves 127.0.0.1+i, the first one everybody else.
func clientMatch(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprintf(`"filter_chain_match": {"source_prefix_ranges": [{"address_prefix": "127.0.0.%d", "prefix_len": 32}]},`, 1+i)
}

func (r *listenerRig) update(p *listenerv3.Listener) error {
	r.t.Helper()
	var err error
	r.s.main.Post(func() { err = r.s.AddOrUpdateListener(p) })
	r.step()
	return err
}

func (r *listenerRig) must(p *listenerv3.Listener) {
	r.t.Helper()
	if err := r.update(p); err != nil {
		r.t.Fatal(err)
	}
}

func (r *listenerRig) remove(name string) {
	r.s.main.Post(func() { r.s.RemoveListener(name) })
	r.step()
}

// at returns where a listener listens.
func (r *listenerRig) at(name string, i int) string { return r.s.Addrs()[name][i].String() }

// sockets are the listening sockets of a listener.
func (r *listenerRig) sockets(name string) (list []*listener.Acceptor) {
	r.s.listeners[name].each(func(a *listener.Acceptor) { list = append(list, a) })
	return list
}

// tick lets time pass.
func (r *listenerRig) tick(d time.Duration) {
	r.k.add(d)
	r.step()
	r.k.add(time.Millisecond)
	r.step()
}

// client is an HTTP client's connection.
type client struct {
	r *listenerRig
	c net.Conn
	b *bufio.Reader
}

func (r *listenerRig) dial(addr, from string) *client {
	r.t.Helper()
	d := net.Dialer{}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)} //ban:allow bannedcall the test's own address
	}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return &client{r: r, c: c, b: bufio.NewReader(c)}
}

// get asks and returns the answer's body, and whether the connection is to be closed; "" is no answer.
func (c *client) get() (body string, closing bool) {
	c.r.t.Helper()
	if _, err := c.c.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		return "", true
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.c.SetReadDeadline(time.Now().Add(25 * time.Second))
		resp, err := nethttp.ReadResponse(c.b, nil)
		if err != nil {
			closing = true
			return
		}
		var b strings.Builder
		_, _ = bufio.NewReader(resp.Body).WriteTo(&b)
		body, closing = b.String(), resp.Close
	}()
	for {
		c.r.step()
		select {
		case <-done:
			return body, closing
		case <-time.After(time.Millisecond):
		}
	}
}

func (c *client) want(body string, closing bool) {
	c.r.t.Helper()
	if got, gotClosing := c.get(); got != body || gotClosing != closing {
		c.r.t.Errorf("answer %q, closing %v; want %q, %v", got, gotClosing, body, closing)
	}
}

// stat returns some of listener_manager's stats that are not zero.
func (r *listenerRig) managerStats() map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(r.get("/stats?filter=listener_manager.(listener_|total_)").text, "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok && v != "0" {
			out[strings.TrimPrefix(name, "listener_manager.")] = v
		}
	}
	return out
}

func (r *listenerRig) wantStats(want map[string]string) {
	r.t.Helper()
	if d := cmp.Diff(want, r.managerStats()); d != "" {
		r.t.Errorf("stats (-want +got):\n%s", d)
	}
}

func TestListenerComesAndGoes(t *testing.T) {
	r := newListenerRig(t, "")
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "one"))
	addr := r.at("l", 0)
	c := r.dial(addr, "")
	c.want("one", false)
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "one")) // the same again
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_success": "2", "total_listeners_active": "1"})
	r.remove("l")
	if x, err := net.Dial("tcp", addr); err == nil {
		x.Close()
		t.Error("it still listens")
	}
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_success": "2", "listener_removed": "1", "total_listeners_draining": "1"})
	c.want("one", true)
	r.tick(listenerDrain)
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_success": "2", "listener_removed": "1"})
}

// A change of the chains alone leaves the socket, the other chains and their connections alone.
func TestListenerUpdateInPlace(t *testing.T) {
	r := newListenerRig(t, "")
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "zero", "one"))
	addr, sockets := r.at("l", 0), r.sockets("l")
	keep, drop := r.dial(addr, ""), r.dial(addr, "127.0.0.2")
	keep.want("zero", false)
	drop.want("one", false)
	idle := r.dial(addr, "127.0.0.2")
	idle.want("one", false)
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "zero", "two"))
	if d := cmp.Diff(len(sockets), len(r.sockets("l"))); d != "" || sockets[0] != r.sockets("l")[0] {
		t.Error("the sockets did not stay")
	}
	r.dial(addr, "127.0.0.2").want("two", false)
	drop.want("one", true)
	keep.want("zero", false)
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_success": "4", "listener_modified": "1", "listener_in_place_updated": "1",
		"total_listeners_active": "1", "total_filter_chains_draining": "1"})
	r.tick(listenerDrain)
	idle.want("", true)
	keep.want("zero", false)
	if got := r.managerStats()["total_filter_chains_draining"]; got != "" {
		t.Errorf("%s chains still drain", got)
	}
}

// Any other change makes a new listener, which takes the sockets over with what waits in their queues.
func TestListenerReplacedKeepsSockets(t *testing.T) {
	r := newListenerRig(t, "")
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "one"))
	addr, sockets := r.at("l", 0), r.sockets("l")
	old := r.dial(addr, "")
	old.want("one", false)
	waiting := r.dial(addr, "") // in the accept queue: nobody has stepped since
	r.must(listenerConfig(t, "l", "127.0.0.1:0", `"per_connection_buffer_limit_bytes": 100000,`, "two"))
	if got := r.sockets("l"); len(got) != len(sockets) || got[0] != sockets[0] || got[1] != sockets[1] {
		t.Error("the sockets did not stay")
	}
	if got := r.at("l", 0); got != addr {
		t.Errorf("it listens at %s now, at %s before", got, addr)
	}
	if body, _ := waiting.get(); body != "two" && body != "one" {
		t.Errorf("the connection that waited got %q", body)
	}
	r.dial(addr, "").want("two", false)
	old.want("one", true)
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_success": "4", "listener_modified": "1", "total_listeners_active": "1",
		"total_listeners_draining": "1"})
	r.tick(listenerDrain)
	if got := r.managerStats()["total_listeners_draining"]; got != "" {
		t.Errorf("%s listeners still drain", got)
	}
	// The same after an update in place.
	r.must(listenerConfig(t, "l", "127.0.0.1:0", `"per_connection_buffer_limit_bytes": 100000,`, "three"))
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "four"))
	r.dial(addr, "").want("four", false)
	if got := r.sockets("l"); len(got) != len(sockets) || got[0] != sockets[0] {
		t.Error("the sockets did not stay")
	}
}

// free returns an address that nobody has.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestListenerMoves(t *testing.T) {
	r := newListenerRig(t, "")
	one, two, three := free(t), free(t), free(t)
	more := func(addrs ...string) string {
		var list []string
		for _, a := range addrs {
			host, port, _ := net.SplitHostPort(a)
			list = append(list, fmt.Sprintf(`{"address": {"socket_address": {"address": %q, "port_value": %s}}}`, host, port))
		}
		return `"additional_addresses": [` + strings.Join(list, ", ") + `],`
	}
	r.must(listenerConfig(t, "l", one, more(two), "a"))
	r.dial(one, "").want("a", false)
	r.dial(two, "").want("a", false)
	// The second address becomes the first, the first goes, a third comes.
	r.must(listenerConfig(t, "l", two, more(three), "b"))
	r.dial(two, "").want("b", false)
	r.dial(three, "").want("b", false)
	if x, err := net.Dial("tcp", one); err == nil {
		x.Close()
		t.Error("the address that was given up still listens")
	}
	if got := r.get("/listeners").text; got != "l::"+two+"\nl::"+three+"\n" {
		t.Errorf("listeners: %s", got)
	}
}

func TestListenerRefused(t *testing.T) {
	taken := free(t)
	host, port, _ := net.SplitHostPort(taken)
	r := newListenerRig(t, fmt.Sprintf(`listeners: [{name: static, address: {socket_address: {address: %s, port_value: %s}}, filter_chains: [{filters: [{name: t,
		typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: c}}]}]}]`, host, port))
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "one"))
	addr := r.at("l", 0)
	for _, tc := range []struct {
		name string
		p    *listenerv3.Listener
		want string
	}{
		{"an address that is taken", listenerConfig(t, "other", taken, "", "x"),
			"error adding listener: 'other' has duplicate address '" + taken + "' as existing listener"},
		{"moving to one", listenerConfig(t, "l", taken, "", "x"), "error adding listener: 'l' has duplicate address '" + taken + "'"},
		{"no chains", listenerConfig(t, "l", "127.0.0.1:0", ""), "error adding listener '127.0.0.1:0': no filter chains specified"},
		{"a bad chain", func() *listenerv3.Listener {
			p := listenerConfig(t, "l", "127.0.0.1:0", "", "x")
			p.FilterChains[0].FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"a*.b"}}
			return p
		}(), `error adding listener '127.0.0.1:0': partial wildcards are not supported in "server_names"`},
		{"two alike", func() *listenerv3.Listener {
			p := listenerConfig(t, "l", "127.0.0.1:0", "", "x", "y")
			m := &listenerv3.FilterChainMatch{ServerNames: []string{"a b"}}
			p.FilterChains[0].FilterChainMatch, p.FilterChains[1].FilterChainMatch = m, m
			return p
		}(), `filter chain 'c1' has the same matching rules defined as 'c0'. duplicate matcher is: {"server_names":["a b"]}`},
		{"two that overlap", func() *listenerv3.Listener {
			p := listenerConfig(t, "l", "127.0.0.1:0", "", "x", "y")
			p.FilterChains[0].FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"a", "b"}}
			p.FilterChains[1].FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"b"}}
			return p
		}(), "multiple filter chains with overlapping matching rules are defined"},
		{"a terminal filter in front", func() *listenerv3.Listener {
			p := listenerConfig(t, "l", "127.0.0.1:0", "", "x")
			p.FilterChains[0].Filters = append(p.FilterChains[0].Filters, p.FilterChains[0].Filters[0])
			return p
		}(), "Error: terminal filter named h of type envoy.filters.network.http_connection_manager must be the last filter in a network filter chain."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := r.update(tc.p)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			r.dial(addr, "").want("one", false)
		})
	}
	// What the bootstrap has cannot be changed, and that is no error.
	r.must(listenerConfig(t, "static", "127.0.0.1:0", "", "x"))
	r.remove("static")
	if got := r.at("static", 0); got != taken {
		t.Errorf("the static listener is at %s", got)
	}
}

func TestListenerFieldsRefused(t *testing.T) {
	r := newListenerRig(t, "")
	for name, change := range map[string]func(p *listenerv3.Listener){
		"address.socket_address.protocol": func(p *listenerv3.Listener) {
			p.GetAddress().GetSocketAddress().Protocol = corev3.SocketAddress_UDP
		},
		"internal_listener": func(p *listenerv3.Listener) {
			p.ListenerSpecifier = &listenerv3.Listener_InternalListener{InternalListener: &listenerv3.Listener_InternalListenerConfig{}}
		},
		"api_listener": func(p *listenerv3.Listener) { p.ApiListener = &listenerv3.ApiListener{} },
		"config_discovery": func(p *listenerv3.Listener) {
			p.ListenerFilters = []*listenerv3.ListenerFilter{{Name: "x",
				ConfigType: &listenerv3.ListenerFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{}}}}
		},
	} {
		p := listenerConfig(t, "l", "127.0.0.1:0", "", "x")
		change(p)
		if err := r.update(p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A listener whose address cannot be bound is refused, and the one that it was to replace stays, as in Envoy.
func TestListenerCannotBind(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := newListenerRig(t, "")
	taken := l.Addr().String()
	x := &lds{s: r.s, done: func() {}, pause: func() func() { return func() {} }}
	apply := func(list ...*listenerv3.Listener) (err error) {
		u := &sub.Update{Version: "v"}
		for _, p := range list {
			u.Resources = append(u.Resources, sub.Resource{Name: p.GetName(), Body: p})
		}
		r.s.main.Post(func() { err = x.OnUpdate(u) })
		r.step()
		return err
	}
	failures := func() (out []string) {
		var page struct {
			Configs []struct {
				Name       string
				ErrorState *struct{ Details string } `json:"error_state"`
			}
		}
		if err := json.Unmarshal([]byte(r.get("/config_dump?resource=dynamic_listeners").text), &page); err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Configs {
			if c.ErrorState != nil {
				out = append(out, c.Name+": "+c.ErrorState.Details)
			}
		}
		return out
	}
	fault := "cannot bind '" + taken + "': Address already in use"

	err = apply(listenerConfig(t, "m", taken, "", "one"), listenerConfig(t, "l", "127.0.0.1:0", "", "one"))
	if err == nil || err.Error() != "Error adding/updating listener(s) m: "+fault+"\n" {
		t.Error("new:", err)
	}
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_failure": "1", "listener_create_success": "2", "total_listeners_active": "1"})
	r.dial(r.at("l", 0), "").want("one", false)
	if d := cmp.Diff([]string{"m: " + fault, ": " + fault}, failures()); d != "" {
		t.Errorf("failures (-want +got):\n%s", d)
	}

	if err = apply(listenerConfig(t, "l", taken, "", "two")); err == nil {
		t.Error("a listener moved to a taken address")
	}
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_failure": "2", "listener_create_success": "2", "total_listeners_active": "1"})
	r.dial(r.at("l", 0), "").want("one", false)
	if d := cmp.Diff([]string{"l: " + fault, ": " + fault}, failures()); d != "" {
		t.Errorf("failures (-want +got):\n%s", d)
	}
	if page := r.get("/config_dump?resource=dynamic_listeners&mask=active_state.listener").text; strings.Contains(page, taken[strings.Index(taken, ":")+1:]) {
		t.Error("the active state is the refused one: " + page)
	}

	if err = apply(listenerConfig(t, "l", "127.0.0.1:0", "", "three")); err != nil {
		t.Error(err)
	}
	r.dial(r.at("l", 0), "").want("three", false)
	if list := failures(); len(list) > 0 {
		t.Error("failures stay:", list)
	}
}
