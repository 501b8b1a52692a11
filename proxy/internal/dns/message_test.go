package dns_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mdns "github.com/miekg/dns"

	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
)

// pack makes an answer with an independent library.
func pack(t testing.TB, id uint16, name string, typ uint16, edit func(m *mdns.Msg), records ...string) []byte {
	q := new(mdns.Msg)
	q.SetQuestion(name, typ)
	q.Id = id
	m := new(mdns.Msg)
	m.SetReply(q)
	m.Compress = true
	for _, r := range records {
		rr, err := mdns.NewRR(r)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	if edit != nil {
		edit(m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestQuestion(t *testing.T) {
	b, err := dns.Question(7, "www.example.test", mdns.TypeAAAA)
	if err != nil {
		t.Fatal(err)
	}
	var m mdns.Msg
	if err := m.Unpack(b); err != nil {
		t.Fatal(err)
	}
	if m.Id != 7 || !m.RecursionDesired || m.Question[0] != (mdns.Question{Name: "www.example.test.", Qtype: mdns.TypeAAAA, Qclass: mdns.ClassINET}) || m.IsEdns0().UDPSize() != 1232 {
		t.Errorf("got %v", &m)
	}
	for _, name := range []string{"", "a..b", strings.Repeat("x", 64), strings.Repeat("abcdefg.", 40)} {
		if _, err := dns.Question(7, name, 1); err == nil {
			t.Errorf("%q can be asked for", name)
		}
	}
	if _, err := dns.Question(7, strings.Repeat("x", 63), 1); err != nil {
		t.Error(err)
	}
}

func TestParseAnswer(t *testing.T) {
	addr := func(ttl time.Duration, ips ...string) (out []dns.Address) {
		for _, ip := range ips {
			out = append(out, dns.Address{IP: netip.MustParseAddr(ip), TTL: ttl})
		}
		return out
	}
	for _, c := range []struct {
		name string
		b    []byte
		want []dns.Address
		err  bool
	}{
		{"two addresses", pack(t, 7, "a.test.", 1, nil, "a.test. 60 IN A 10.0.0.1", "a.test. 60 IN A 10.0.0.2"), addr(time.Minute, "10.0.0.1", "10.0.0.2"), false},
		{"case", pack(t, 7, "A.tEst.", 1, nil, "a.TEST. 60 IN A 10.0.0.1"), addr(time.Minute, "10.0.0.1"), false},
		{"chain: the shortest life counts", pack(t, 7, "a.test.", 1, nil, "a.test. 30 IN CNAME b.test.", "b.test. 90 IN CNAME c.test.", "c.test. 60 IN A 10.0.0.1"),
			addr(30*time.Second, "10.0.0.1"), false},
		{"others' records", pack(t, 7, "a.test.", 1, nil, "x.test. 60 IN A 10.0.0.9", "a.test. 60 IN TXT \"x\"", "a.test. 60 IN AAAA fd00::1"), nil, false},
		{"empty", pack(t, 7, "a.test.", 1, nil), nil, false},
		{"another id", pack(t, 8, "a.test.", 1, nil, "a.test. 60 IN A 10.0.0.1"), nil, true},
		{"another name", pack(t, 7, "b.test.", 1, nil, "b.test. 60 IN A 10.0.0.1"), nil, true},
		{"another type", pack(t, 7, "a.test.", 28, nil), nil, true},
		{"no answer at all", pack(t, 7, "a.test.", 1, func(m *mdns.Msg) { m.Response = false }), nil, true},
		{"a loop", pack(t, 7, "a.test.", 1, nil, slices.Repeat([]string{"a.test. 1 IN CNAME a.test."}, 17)...), nil, true},
		{"a pointer to itself", append(pack(t, 7, "a.test.", 1, func(m *mdns.Msg) { m.Answer = nil })[:12], 0xc0, 12, 0, 1, 0, 1), nil, true},
		{"short", make([]byte, 11), nil, true},
	} {
		got, err := dns.ParseAnswer(c.b, 7, "a.test", 1)
		if d := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" || c.err != (err != nil) {
			t.Errorf("%s: %v %s", c.name, err, d)
		}
	}
	full := pack(t, 7, "a.test.", 1, nil, "a.test. 60 IN A 10.0.0.1")
	for n := range full {
		if _, err := dns.ParseAnswer(full[:n], 7, "a.test", 1); err == nil {
			t.Errorf("%d of %d bytes are taken for an answer", n, len(full))
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add(pack(f, 7, "a.test.", 1, nil, "a.test. 60 IN A 10.0.0.1"))
	f.Add(pack(f, 7, "a.test.", 1, nil, "a.test. 30 IN CNAME b.test.", "b.test. 60 IN A 10.0.0.1"))
	f.Add(pack(f, 7, "a.test.", 28, nil, "a.test. 60 IN AAAA fd00::1"))
	f.Add(pack(f, 7, "a.test.", 1, func(m *mdns.Msg) { m.Truncated = true }))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, typ := range []uint16{1, 28} {
			got, err := dns.ParseAnswer(b, 7, "a.test", typ)
			if err != nil && got != nil && len(got) > len(b) {
				t.Error("more addresses than bytes")
			}
			for _, a := range got {
				if a.IP.Is4() != (typ == 1) || a.TTL < 0 {
					t.Errorf("%v", a)
				}
			}
		}
	})
}

func TestResolvConf(t *testing.T) {
	const text = "# comment\nnameserver 10.0.0.1\nnameserver fd00::1 ; two\nnameserver bad\nnameserver 1.1.1.1\nnameserver 2.2.2.2\n" +
		"domain gone\nsearch one.test two.test.\noptions ndots:2 timeout:99 attempts:0 rotate foo:x\n"
	want := dns.Conf{Search: []string{"one.test", "two.test"}, Ndots: 2, Timeout: 30 * time.Second, Tries: 1}
	for _, s := range []string{"10.0.0.1:53", "[fd00::1]:53", "1.1.1.1:53"} {
		want.Servers = append(want.Servers, netip.MustParseAddrPort(s))
	}
	if d := cmp.Diff(want, dns.ParseResolvConf(text), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Error(d)
	}
	for name, names := range map[string][]string{
		"a":      {"a.one.test", "a.two.test", "a"},
		"a.b":    {"a.b.one.test", "a.b.two.test", "a.b"},
		"a.b.c":  {"a.b.c", "a.b.c.one.test", "a.b.c.two.test"},
		"a.b.c.": {"a.b.c."},
	} {
		if d := cmp.Diff(names, dns.Names(text, name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestHosts(t *testing.T) {
	const text = "127.0.0.1 localhost loop # x other\n::1 localhost\nbad localhost\n10.0.0.1\n::ffff:10.0.0.2 LOOP.\n"
	for name, want := range map[string]string{"localhost": "127.0.0.1 ::1", "loop": "127.0.0.1 10.0.0.2", "other": "", "10.0.0.1": ""} {
		var got []string
		for _, a := range dns.ParseHosts(text, name) {
			got = append(got, a.IP.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
