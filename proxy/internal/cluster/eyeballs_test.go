package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The families take turns (RFC 8305, section 4), as the cluster says.
func TestAddressesOfAnEndpoint(t *testing.T) {
	for _, c := range []struct{ config, have, want string }{
		{"", "4a", ""},
		{"", "4a 4b 6a 6b 4c", "4a 6a 4b 6b 4c"},
		{"", "6a 4a 4b 6b", "6a 4a 6b 4b"},
		{"first_address_family_version: V6", "4a 4b 6a", "6a 4a 4b"},
		{"first_address_family_version: V4, first_address_family_count: 2", "6a 6b 4a 4b 4c 4d", "4a 4b 6a 4c 4d 6b"},
		{"first_address_family_count: 3", "6a 6b 4a", "6a 6b 4a"},
		{"first_address_family_version: V6", "4a 4b", "4a 4b"},
	} {
		r := newRig(t, 1)
		names := strings.NewReplacer("4a", "10.0.0.1:1", "4b", "10.0.0.2:1", "4c", "10.0.0.3:1", "4d", "10.0.0.4:1", "6a", "[fd00::1]:1", "6b", "[fd00::2]:1")
		cl := r.add(fmt.Sprintf("{name: a, upstream_connection_options: {happy_eyeballs_config: {%s}}, load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [%s]}]}}",
			c.config, several(strings.Fields(names.Replace(c.have)))))
		var got []string
		for _, a := range cl.Hosts()[0].Addresses() {
			got = append(got, a.String())
		}
		if d := cmp.Diff(names.Replace(c.want), strings.Join(got, " ")); d != "" {
			t.Errorf("%q %s: %s", c.config, c.have, d)
		}
	}
}

// several is an endpoint of several addresses in YAML.
func several(addrs []string) string {
	one := func(a string) string {
		return strings.TrimSuffix(strings.TrimPrefix(endpoints(a), "{endpoint: {"), "}}")
	}
	var more []string
	for _, a := range addrs[1:] {
		more = append(more, "{"+one(a)+"}")
	}
	return "{endpoint: {" + one(addrs[0]) + ", additional_addresses: [" + strings.Join(more, ", ") + "]}}"
}

// A host whose further addresses change is another one; otherwise it stays.
func TestAddressesChange(t *testing.T) {
	r := newRig(t, 1)
	r.add("{name: a, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: /x}}}}")
	r.m.Start()
	send := func(addrs ...string) {
		t.Helper()
		if err := r.eds.send(t, "a", fmt.Sprintf("{cluster_name: a, endpoints: [{lb_endpoints: [%s]}]}", several(addrs))); err != nil {
			t.Fatal(err)
		}
		r.step()
	}
	send("10.0.0.1:1", "[fd00::1]:1", "10.0.0.2:1")
	c := r.m.Slot("a").Load()
	first := c.Hosts()[0]
	send("10.0.0.1:1", "[fd00::1]:1", "10.0.0.2:1")
	if c.Hosts()[0] != first {
		t.Error("the same addresses make another host")
	}
	send("10.0.0.1:1", "[fd00::1]:1")
	if h := c.Hosts()[0]; h == first || len(h.Addresses()) != 2 {
		t.Errorf("other addresses: %v", h.Addresses())
	}
}

func TestBadAddresses(t *testing.T) {
	r := newRig(t, 1)
	for yaml, want := range map[string]string{
		`{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 1}}, additional_addresses: [{address: {socket_address: {address: foo.bar, port_value: 1}}}]}}`: "malformed IP address: foo.bar",
		`{endpoint: {address: {socket_address: {address: foo.bar, port_value: 1}}, additional_addresses: [{address: {socket_address: {address: 10.0.0.1, port_value: 1}}}]}}`: "additional_addresses: not supported yet",
	} {
		c := parse(t, "{name: b, type: STRICT_DNS, load_assignment: {cluster_name: b, endpoints: [{lb_endpoints: ["+yaml+"]}]}}")
		if err := r.m.AddStatic(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}
