package format_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

func checkJSON(t *testing.T, line []byte) {
	t.Helper()
	if !json.Valid(line) || line[len(line)-1] != '\n' {
		t.Errorf("not a line of JSON: %q", line)
	}
}

func TestJSONShapes(t *testing.T) {
	tree := map[string]any{
		"a": map[string]any{"z": "%PROTOCOL%", "b": []any{"%RESPONSE_CODE%", "x%RESPONSE_CODE%", 1.0, 2.5, true, nil,
			map[string]any{"q": "%REQ(nope)%"}, "%REQ(nope)%", "", []any{}}},
		"n": 1.0, "f": 1.25, "big": 1e20, "t": true, "nul": nil, "s": "lit \" é", "e": "", "B": "%REQ(nope)%x", "two": "%REQ(nope)%%RESPONSE_CODE%",
		"pct": "%%", "k%PROTOCOL%": "v", "o": map[string]any{}, "d": "%DURATION%", "q": "\"\u2028<",
	}
	for omit, want := range map[bool]string{
		false: `{"B":"-x","a":{"b":[200,"x200",1,2.5,true,null,{"q":null},null,"",[]],"z":"HTTP/1.1"},"big":1e+20,"d":12,"e":"","f":1.25,` +
			`"k%PROTOCOL%":"v","n":1,"nul":null,"o":{},"pct":"%","q":"\"` + "\u2028" + `<","s":"lit \" é","t":true,"two":"-200"}` + "\n",
		true: `{"B":"x","a":{"b":[200,"x200",1,2.5,true,"",[]],"z":"HTTP/1.1"},"big":1e+20,"d":12,"e":"","f":1.25,"k%PROTOCOL%":"v","n":1,` +
			`"pct":"%","q":"\"` + "\u2028" + `<","s":"lit \" é","t":true,"two":"200"}` + "\n",
	} {
		o := options()
		o.OmitEmpty = omit
		f, err := format.ParseJSON(tree, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(f.Evaluate(nil, request())); got != want {
			t.Errorf("omit %v:\ngot  %s\nwant %s", omit, got, want)
		}
	}
	f, err := format.ParseJSON(nil, options())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.Evaluate(nil, request())); got != "{}\n" {
		t.Errorf("empty: got %q", got)
	}
	if _, err := format.ParseJSON(map[string]any{"a": map[string]any{"b": []any{"%REQ(%"}}}, options()); err == nil ||
		!strings.HasPrefix(err.Error(), `["a"]["b"][0]: Incorrect configuration: %REQ(%. Couldn't find valid command at position 0; the parenthesis`) {
		t.Errorf("a bad format inside: %v", err)
	}
}

func TestJSONNumbers(t *testing.T) {
	for want, v := range map[string]float64{
		"1e+20": 1e20, "1e+15": 1e15, "123456": 123456, "1234567": 1234567, "1e+05": 100000, "12345678901234": 12345678901234, "1.5e+15": 1.5e15,
		"123456789012345680": 123456789012345678, "1e-04": 1e-4, "1.5e-05": 1.5e-5, "0.00012345": 0.00012345, "0.1": 0.1, "1.23e+10": 1.23e10,
		"100": 100, "1000": 1000, "20": 20, "3e+09": 3e9, "0.001": 0.001, "0.002": 0.002, "1e+300": 1e300, "-1e+06": -1e6, "-1.5": -1.5,
		"9007199254740992": 1 << 53, "9223372036854775808": 1 << 63, "1234567890123456768": 1234567890123456789, "0": 0, "-0": math.Copysign(0, -1),
		"0.3333333333333333": 1.0 / 3, "null": math.NaN(),
	} {
		f, err := format.ParseJSON(map[string]any{"v": v}, options())
		if err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSuffix(strings.TrimPrefix(string(f.Evaluate(nil, request())), `{"v":`), "}\n")
		if got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

func TestJSONEscapes(t *testing.T) {
	all := make([]byte, 128)
	for i := range all {
		all[i] = byte(i)
	}
	for in, want := range map[string]string{
		"plain":            `"plain"`,
		string(all):        `"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_` + "`" + `abcdefghijklmnopqrstuvwxyz{|}~` + "\x7f" + `"`,
		"€😀\u2028":         "\"€😀\u2028\"",
		"\xed\xa0\x80":     `"\u00ed\u00a0\u0080"`,
		"aé\"\xe2":         `"a\u00c3\u00a9\u0022\u00e2"`,
		"\xff\n\x7f\\a":    `"\u00ff\u000a\u007f\u005ca"`,
		"\xc0\x80":         `"\u00c0\u0080"`,
		"\U0010ffff\uffff": "\"\U0010ffff\uffff\"",
	} {
		c := request()
		c.Info.RouteName = in
		if got := evaluateJSON(t, "%ROUTE_NAME%", c); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
		if got := evaluateJSON(t, "x%ROUTE_NAME%", c); in != "" && !strings.HasPrefix(got, `"x`) || got[2:] != want[1:] {
			t.Errorf("%q in text: got %s, want %s", in, got, want)
		}
	}
}

func TestJSONDepth(t *testing.T) {
	nest := func(n int) map[string]any {
		m := map[string]any{}
		for range n {
			m = map[string]any{"a": m}
		}
		return m
	}
	if _, err := format.ParseJSON(nest(64), options()); err != nil {
		t.Errorf("64 deep: %v", err)
	}
	if _, err := format.ParseJSON(nest(65), options()); err == nil {
		t.Error("65 deep is accepted")
	}
}
