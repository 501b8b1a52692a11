package format_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// A stream sees the filter state of its connection below its own.
func TestFilterStateOfTheConnection(t *testing.T) {
	f, err := format.ParseText("%FILTER_STATE(a:PLAIN)% %FILTER_STATE(b:PLAIN)% %FILTER_STATE(c:PLAIN)%", options())
	if err != nil {
		t.Fatal(err)
	}
	c := &network.ConnInfo{}
	c.FilterState().Set("a", plain("connection"))
	c.FilterState().Set("b", plain("connection"))
	i := &stream.Info{Conn: c}
	i.FilterState().Set("b", plain("stream"))
	if got, want := string(f.Evaluate(nil, &format.Context{Info: i})), "connection stream -"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type plain string

func (p plain) AppendPlain(dst []byte) []byte { return append(dst, p...) }

// Fingerprints are of the client's connection, as far as somebody has asked for them.
func TestFingerprints(t *testing.T) {
	f, err := format.ParseText("%TLS_JA3_FINGERPRINT% %TLS_JA4_FINGERPRINT%", options())
	if err != nil {
		t.Fatal(err)
	}
	c := &network.ConnInfo{}
	want := func(want string) {
		t.Helper()
		if got := string(f.Evaluate(nil, &format.Context{Info: &stream.Info{Conn: c}})); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want("- -")
	c.SetHello().Fingerprints = &network.Fingerprints{JA4: "t13"}
	want("- t13")
	c.SetHello().Fingerprints = &network.Fingerprints{JA3: "e1", JA4: "t13"}
	want("e1 t13")
}
