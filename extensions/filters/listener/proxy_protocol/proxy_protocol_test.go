package proxy_protocol_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/proxy_protocol"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func addr(s string) network.Address { return network.AddrFrom(netip.MustParseAddrPort(s)) }

var socket = network.ConnInfo{Local: addr("127.0.0.1:80"), Remote: addr("127.0.0.1:40000")}

const signature = "\r\n\r\n\x00\r\nQUIT\n"

// v2 makes a header of version 2.
func v2(command, family byte, body string) string {
	b := append([]byte(signature), command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	return string(b) + body
}

const (
	v4Body = "\x01\x02\x03\x04\x05\x06\x07\x08\x04\x57\x08\xae" // 1.2.3.4:1111 to 5.6.7.8:2222
	rest   = "GET / HTTP/1.1\r\n\r\n"
)

func v6Body() string {
	a, b := netip.MustParseAddr("1::2").As16(), netip.MustParseAddr("3::4").As16()
	return string(a[:]) + string(b[:]) + "\x04\x57\x08\xae"
}

func tlv(kind byte, value string) string {
	return string(append([]byte{kind}, byte(len(value)>>8), byte(len(value)))) + value
}

type result struct {
	Outcome       filtertest.Outcome
	Remote, Local string
	Stats         map[string]uint64
}

func ok(remote, local, stat string) result {
	return result{filtertest.Passed, remote, local, map[string]uint64{"proxy_proto." + stat: 1}}
}

func bad(stat string) result {
	return result{filtertest.Closed, "127.0.0.1:40000", "127.0.0.1:80", map[string]uint64{"proxy_proto." + stat: 1,
		"downstream_cx_proxy_proto_error": 1}}
}

func TestHeaders(t *testing.T) {
	same := func(stat string) result { return ok("127.0.0.1:40000", "127.0.0.1:80", stat) }
	line := "PROXY TCP4 1.2.3.4 5.6.7.8 1111 "
	longest := "PROXY UNKNOWN " + strings.Repeat("f", 107-16) + "\r\n"
	for _, tc := range []struct {
		name, in string
		want     result
	}{
		{"TCP4", "PROXY TCP4 1.2.3.4 5.6.7.8 1111 2222\r\n", ok("1.2.3.4:1111", "5.6.7.8:2222", "versions.v1.found")},
		{"TCP6", "PROXY TCP6 1::2 3::4 1111 2222\r\n", ok("[1::2]:1111", "[3::4]:2222", "versions.v1.found")},
		{"UNKNOWN", "PROXY UNKNOWN\r\n", same("versions.v1.found")},
		{"UNKNOWN with addresses", "PROXY UNKNOWN ff::1 ff::2 1 2\r\n", same("versions.v1.found")},
		{"the longest line", longest, same("versions.v1.found")},
		{"one byte more", longest[:len(longest)-2] + "f\r\n", bad("not_found_disallowed")},
		{"no line end", line + strings.Repeat("2", 107), bad("not_found_disallowed")},
		{"five fields", "PROXY TCP4 1.2.3.4 5.6.7.8 1111\r\n", bad("versions.v1.error")},
		{"seven fields", "PROXY TCP4 1.2.3.4 5.6.7.8 1111 2222 3333\r\n", bad("versions.v1.error")},
		{"two blanks", "PROXY  TCP4 1.2.3.4 5.6.7.8 1111 2222\r\n", bad("versions.v1.error")},
		{"a port too high", line + "65536\r\n", bad("versions.v1.error")},
		{"the highest port", line + "65535\r\n", ok("1.2.3.4:1111", "5.6.7.8:65535", "versions.v1.found")},
		{"mixed families", "PROXY TCP4 1.2.3.4 5::7 11 2222\r\n", bad("versions.v1.error")},
		{"the wrong family", "PROXY TCP6 1.2.3.4 5.6.7.8 11 2222\r\n", bad("versions.v1.error")},
		{"UDP4", "PROXY UDP4 1.2.3.4 5.6.7.8 11 2222\r\n", bad("versions.v1.error")},
		{"no blank after PROXY", "PROXYTCP4 1.2.3.4 5.6.7.8 1111 2222\r\n", bad("versions.v1.error")},
		{"another protocol", rest, bad("not_found_disallowed")},
		{"v2 TCP4", v2(0x21, 0x11, v4Body), ok("1.2.3.4:1111", "5.6.7.8:2222", "versions.v2.found")},
		{"v2 UDP4", v2(0x21, 0x12, v4Body), ok("1.2.3.4:1111", "5.6.7.8:2222", "versions.v2.found")},
		{"v2 TCP6", v2(0x21, 0x21, v6Body()), ok("[1::2]:1111", "[3::4]:2222", "versions.v2.found")},
		{"v2 with TLVs", v2(0x21, 0x11, v4Body+tlv(2, "abc")+tlv(3, "")), ok("1.2.3.4:1111", "5.6.7.8:2222", "versions.v2.found")},
		{"v2 LOCAL", v2(0x20, 0, ""), same("versions.v2.found")},
		{"v2 LOCAL with addresses", v2(0x20, 0x11, v4Body), same("versions.v2.found")},
		{"v2 unspecified", v2(0x21, 0, ""), bad("versions.v2.error")},
		{"v2 Unix", v2(0x21, 0x31, strings.Repeat("x", 216)), bad("versions.v2.error")},
		{"v2 other command", v2(0x22, 0x11, v4Body), bad("versions.v2.error")},
		{"v2 other version", v2(0x31, 0x11, v4Body), bad("versions.v2.error")},
		{"v2 too short", v2(0x21, 0x11, v4Body[:11]), bad("versions.v2.error")},
		{"v2 half a TLV", v2(0x21, 0x11, v4Body+"\x02\x00"), bad("versions.v2.error")},
		{"v2 a TLV that is longer than the header", v2(0x21, 0x11, v4Body+"\x02\x00\x02a"), bad("versions.v2.error")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, step := range []int{1, 5, 1 << 20} {
				ctx := filtertest.NewContext()
				c := ctx.Accept(t, &proxy_protocol.Extension, &proxyv3.ProxyProtocol{}, socket)
				in := tc.in + rest
				for len(in) > 0 {
					k := min(step, len(in))
					c.Receive([]byte(in[:k]))
					in = in[k:]
				}
				got := result{c.Outcome, c.Info().Remote.String(), c.Info().Local.String(), ctx.Stats()}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", step, d)
				}
				if c.Outcome == filtertest.Passed && string(c.Unread) != rest {
					t.Errorf("left in the connection: %q", c.Unread)
				}
				if d := c.Info().DirectRemote(); d != socket.Remote {
					t.Errorf("the socket's peer is %v", d)
				}
			}
		})
	}
}

func TestOptions(t *testing.T) {
	v1, two := "PROXY TCP4 1.2.3.4 5.6.7.8 1111 2222\r\n", v2(0x21, 0x11, v4Body)
	no1 := []corev3.ProxyProtocolConfig_Version{corev3.ProxyProtocolConfig_V1}
	for _, tc := range []struct {
		name string
		cfg  *proxyv3.ProxyProtocol
		in   string
		want result
		left string
	}{
		{"none, allowed", &proxyv3.ProxyProtocol{AllowRequestsWithoutProxyProtocol: true}, rest,
			ok("127.0.0.1:40000", "127.0.0.1:80", "not_found_allowed"), rest},
		{"v1 is not allowed", &proxyv3.ProxyProtocol{DisallowedVersions: no1}, v1, bad("versions.v1.disallowed"), v1},
		{"v2 still is", &proxyv3.ProxyProtocol{DisallowedVersions: no1}, two, ok("1.2.3.4:1111", "5.6.7.8:2222", "versions.v2.found"), ""},
		{"v1 is not allowed and counts as none", &proxyv3.ProxyProtocol{DisallowedVersions: no1, AllowRequestsWithoutProxyProtocol: true}, v1,
			ok("127.0.0.1:40000", "127.0.0.1:80", "not_found_allowed"), v1},
		{"a prefix of the stats", &proxyv3.ProxyProtocol{StatPrefix: "p"}, v1, ok("1.2.3.4:1111", "5.6.7.8:2222", "p.versions.v1.found"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := filtertest.NewContext()
			c := ctx.Accept(t, &proxy_protocol.Extension, tc.cfg, socket)
			c.Receive([]byte(tc.in))
			got := result{c.Outcome, c.Info().Remote.String(), c.Info().Local.String(), ctx.Stats()}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if string(c.Unread) != tc.left {
				t.Errorf("left in the connection: %q", c.Unread)
			}
		})
	}
}

func TestRules(t *testing.T) {
	ctx := filtertest.NewContext()
	rule := func(kind uint32, namespace, key string, e proxyv3.ProxyProtocol_KeyValuePair_ValueStringEncoding) *proxyv3.ProxyProtocol_Rule {
		return &proxyv3.ProxyProtocol_Rule{TlvType: kind, OnTlvPresent: &proxyv3.ProxyProtocol_KeyValuePair{MetadataNamespace: namespace, Key: key,
			ValueStringEncoding: e}}
	}
	cfg := &proxyv3.ProxyProtocol{Rules: []*proxyv3.ProxyProtocol_Rule{rule(2, "", "authority", 0), rule(0xEA, "ns", "vpce", 0),
		rule(5, "", "id", proxyv3.ProxyProtocol_KeyValuePair_BASE64), rule(7, "", "absent", 0)}}
	c := ctx.Accept(t, &proxy_protocol.Extension, cfg, socket)
	c.Receive([]byte(v2(0x21, 0x11, v4Body+tlv(2, "a.com")+tlv(0xEA, "x\xffy")+tlv(5, "\x00\x01"))))
	got := map[string]any{}
	for _, p := range [][2]string{{"envoy.filters.listener.proxy_protocol", "authority"}, {"ns", "vpce"},
		{"envoy.filters.listener.proxy_protocol", "id"}, {"envoy.filters.listener.proxy_protocol", "absent"}} {
		if v, ok := c.Info().Metadata().Get(p[0], p[1]); ok {
			got[p[1]] = v
		}
	}
	if d := cmp.Diff(map[string]any{"authority": "a.com", "vpce": "x!y", "id": "AAE="}, got); d != "" {
		t.Error(d)
	}
}

// FuzzHeader checks that the outcome does not depend on how the bytes are cut, and that what is left is what was not the header.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{"PROXY TCP4 1.2.3.4 5.6.7.8 1111 2222\r\n", "PROXY UNKNOWN\r\n", "PROXY TCP6 1::2 3::4 1111 2222\r\nabc",
		v2(0x21, 0x11, v4Body), v2(0x21, 0x21, v6Body()+tlv(2, "abc")), v2(0x20, 0, ""), signature, rest} {
		f.Add([]byte(s))
	}
	ctx := filtertest.NewContext()
	mk, err := proxy_protocol.Extension.New(&proxyv3.ProxyProtocol{}, ctx)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, parts := ctx.AcceptWith(mk, socket), ctx.AcceptWith(mk, socket)
		whole.Receive(in)
		for i := range in {
			parts.Receive(in[i : i+1])
		}
		a := fmt.Sprint(whole.Outcome, whole.Info().Remote, whole.Info().Local)
		b := fmt.Sprint(parts.Outcome, parts.Info().Remote, parts.Info().Local)
		if a != b || !bytes.Equal(whole.Unread, parts.Unread) {
			t.Fatalf("in one piece %s %q, byte by byte %s %q", a, whole.Unread, b, parts.Unread)
		}
		if !bytes.HasSuffix(in, whole.Unread) {
			t.Errorf("left %q of %q", whole.Unread, in)
		}
	})
}
