package h2_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

// began returns a client with requests under way whose preface was exchanged.
func began(t *testing.T, opts h2.Options, paths ...string) (*client, *wire) {
	c := newClient(t, opts)
	for _, p := range paths {
		if p == "/tunnel" {
			c.request(false, ":method=CONNECT", ":authority=a")
			continue
		}
		method := "GET"
		if strings.HasPrefix(p, "/head") {
			method = "HEAD"
		}
		c.request(!strings.HasPrefix(p, "/open"), ":method="+method, ":scheme=http", ":path="+p, ":authority=a")
	}
	w := newWire()
	w.raw(4, 0, 0, "")
	if err := c.feed(w.bytes()); err != "" {
		t.Fatal(err)
	}
	newWire().read(t, c.out.take())
	c.drain()
	return c, w
}

// TestResponses: what a server may answer to stream 1. Bad ones end the connection, unless it is only the stream's body.
func TestResponses(t *testing.T) {
	const bad = "done false\n1 reset \"protocol error\" "
	for _, tt := range []struct {
		name, path string
		in         func(w *wire)
		events     string
		err        string
	}{
		{"plain", "/", func(w *wire) { w.headers(1, true, ":status=200") }, "1 headers :status=\"200\" END\ndone true", ""},
		{"body", "/", func(w *wire) { w.headers(1, false, ":status=200", "content-length=2").data(1, true, "ab") },
			"1 headers :status=\"200\" content-length=\"2\"\n1 data \"ab\" END\ndone true", ""},
		{"informational", "/", func(w *wire) {
			w.headers(1, false, ":status=100").headers(1, false, ":status=103", "x-a=1").headers(1, true, ":status=200")
		}, "1 1xx :status=\"100\"\n1 1xx :status=\"103\" x-a=\"1\"\n1 headers :status=\"200\" END\ndone true", ""},
		{"head with length", "/head", func(w *wire) { w.headers(1, true, ":status=200", "content-length=20") },
			"1 headers :status=\"200\" content-length=\"20\" END\ndone true", ""},
		{"304 with length", "/", func(w *wire) { w.headers(1, true, ":status=304", "content-length=20") },
			"1 headers :status=\"304\" content-length=\"20\" END\ndone true", ""},
		{"204 with length 0", "/", func(w *wire) { w.headers(1, true, ":status=204", "content-length=0") },
			"1 headers :status=\"204\" END\ndone true", ""},
		{"tunnel with length", "/tunnel", func(w *wire) { w.headers(1, false, ":status=201", "content-length=2").data(1, true, "abc") },
			"1 headers :status=\"201\"\n1 data \"abc\" END", ""},
		{"grpc trailers only", "/", func(w *wire) { w.headers(1, true, ":status=200", "grpc-status=3") },
			"1 headers :status=\"200\" grpc-status=\"3\" END\ndone true", ""},
		{"host is a plain field", "/", func(w *wire) { w.headers(1, true, ":status=200", "host=x") }, "1 headers :status=\"200\" host=\"x\" END\ndone true", ""},

		{"no status", "/", func(w *wire) { w.headers(1, true, "x-a=1") }, bad, "missing pseudo header"},
		{"status of two digits", "/", func(w *wire) { w.headers(1, true, ":status=20") }, bad, "invalid pseudo header"},
		{"status of letters", "/", func(w *wire) { w.headers(1, true, ":status=2x0") }, bad, "invalid pseudo header"},
		{"status 101", "/", func(w *wire) { w.headers(1, false, ":status=101") }, bad, "invalid pseudo header"},
		{"status twice", "/", func(w *wire) { w.headers(1, true, ":status=200", ":status=200") }, bad, "invalid pseudo header"},
		{"path", "/", func(w *wire) { w.headers(1, true, ":status=200", ":path=/") }, bad, "invalid pseudo header"},
		{"connection", "/", func(w *wire) { w.headers(1, true, ":status=200", "connection=close") }, bad, "connection-specific header"},
		{"upper case", "/", func(w *wire) { w.headers(1, true, ":status=200", "X-A=1") }, bad, "invalid header name"},
		{"204 with length", "/", func(w *wire) { w.headers(1, true, ":status=204", "content-length=1") }, bad, "invalid content-length"},
		{"1xx with length", "/", func(w *wire) { w.headers(1, false, ":status=103", "content-length=1") }, bad, "invalid content-length"},
		{"1xx ends", "/", func(w *wire) { w.headers(1, true, ":status=103") }, bad, "informational head ends the stream"},
		{"data first", "/", func(w *wire) { w.data(1, true, "x") }, bad, "DATA before the final head"},
		{"data after 1xx", "/", func(w *wire) { w.headers(1, false, ":status=100").data(1, true, "x") }, "1 1xx :status=\"100\"\n" + bad, "DATA before the final head"},
		{"length without body", "/", func(w *wire) { w.headers(1, true, ":status=200", "content-length=1") }, bad, "content-length does not match the body"},
		{"body of HEAD", "/head", func(w *wire) { w.headers(1, false, ":status=200").data(1, true, "x") },
			"1 headers :status=\"200\"\ndone true\n1 reset \"protocol error\" ", ""},
		{"short body", "/", func(w *wire) { w.headers(1, false, ":status=200", "content-length=2").data(1, true, "x") },
			"1 headers :status=\"200\" content-length=\"2\"\ndone true\n1 reset \"protocol error\" ", ""},
		{"push", "/", func(w *wire) { w.raw(5, 4, 1, "\x00\x00\x00\x02\x88") }, "done false\n1 reset \"protocol error\" ", "PUSH_PROMISE: not allowed"},
		{"headers of a stream that was not opened", "/", func(w *wire) { w.headers(3, true, ":status=200") },
			"done false\n1 reset \"protocol error\" ", "invalid stream_id"},
		{"enable push", "/", func(w *wire) { w.raw(4, 0, 0, "\x00\x02\x00\x00\x00\x01") }, "done false\n1 reset \"protocol error\" ", "SETTINGS: invalid value"},
		{"rst", "/", func(w *wire) { w.raw(3, 0, 1, "\x00\x00\x00\x02") }, "done true\n1 reset \"remote reset\" ", ""},
		{"refused", "/", func(w *wire) { w.raw(3, 0, 1, "\x00\x00\x00\x07") }, "done true\n1 reset \"remote refused stream reset\" ", ""},
		{"response before the request's end", "/open", func(w *wire) { w.headers(1, true, ":status=200").raw(3, 0, 1, "\x00\x00\x00\x00") },
			"1 headers :status=\"200\" END\ndone true\n1 reset \"remote reset\" ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, w := began(t, h2.DefaultOptions(), tt.path)
			tt.in(w)
			if err := c.feed(w.bytes()); err != tt.err {
				t.Errorf("error %q, want %q", err, tt.err)
			}
			want := tt.events
			if tt.err != "" {
				want = strings.Replace(want, "done false", "max 0\ndone false", 1)
			}
			eq(t, "events", c.drain(), want)
		})
	}
}

// TestInformationalLimit: at the limit and one past it.
func TestInformationalLimit(t *testing.T) {
	for n, want := range map[int]string{100: "", 101: "too many informational heads"} {
		c, w := began(t, h2.DefaultOptions(), "/")
		for range n {
			w.headers(1, false, ":status=103")
		}
		if err := c.feed(w.bytes()); err != want {
			t.Errorf("%d: %q", n, err)
		}
	}
}

func TestServerGoesAway(t *testing.T) {
	c, w := began(t, h2.DefaultOptions(), "/1", "/2", "/3")
	fresh := c.stream() // has no id yet
	w.raw(7, 0, 0, "\x7f\xff\xff\xff\x00\x00\x00\x00")
	c.feed(w.bytes())
	eq(t, "notice", c.drain(), `goaway
		done false
		0 reset "remote refused stream reset" `)
	_ = fresh
	c.feed(w.raw(7, 0, 0, "\x00\x00\x00\x03\x00\x00\x00\x00").bytes())
	eq(t, "goaway", c.drain(), "done false\n5 reset \"remote refused stream reset\" ")
	c.feed(w.headers(1, true, ":status=200").headers(3, true, ":status=200").bytes())
	eq(t, "answers", c.drain(), "1 headers :status=\"200\" END\ndone false\n3 headers :status=\"200\" END\ndone false")
	if c.c.MaxStreams() != 0 || c.c.Active() != 0 {
		t.Errorf("%d may be opened, %d are", c.c.MaxStreams(), c.c.Active())
	}
}

func TestMaxStreams(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.MaxConcurrentStreams = 50
	for _, tt := range []struct {
		opts     h2.Options
		settings string
		first    int
		events   string
	}{
		{h2.DefaultOptions(), "", 100, "max 1024"},
		{h2.DefaultOptions(), "\x00\x03\x00\x00\x00\x64", 100, ""},
		{h2.DefaultOptions(), "\x00\x03\x00\x00\x00\x07", 100, "max 7"},
		{h2.DefaultOptions(), "\x00\x03\x00\x00\x00\x00", 100, "max 0"},
		{opts, "\x00\x03\x00\x00\x10\x00", 50, ""},
	} {
		c := newClient(t, tt.opts)
		if n := c.c.MaxStreams(); n != tt.first {
			t.Errorf("%d before SETTINGS", n)
		}
		c.feed(newWire().raw(4, 0, 0, tt.settings).bytes())
		eq(t, "events", c.drain(), tt.events)
	}
}

// TestIDsGoUp: streams get their ids in the order of their heads, not in the order in which they were made.
func TestIDsGoUp(t *testing.T) {
	c := newClient(t, h2.DefaultOptions())
	a, b := c.stream(), c.stream()
	gone := c.stream()
	gone.x.Reset(http.ResetLocal)
	var h http.HeaderMap
	for i, x := range []*clientStream{b, a} {
		h.Init(&x.arena)
		h.Add(http.Method, "GET")
		h.Add(http.Path, "/")
		if err := x.x.EncodeHeaders(&h, true); err != nil || x.x.ID() != uint32(1+2*i) {
			t.Errorf("%v, id %d", err, x.x.ID())
		}
	}
	eq(t, "events", c.drain(), "done true")
	if c.c.Active() != 2 {
		t.Errorf("%d active", c.c.Active())
	}
}

func TestMissingPseudoHeaders(t *testing.T) {
	c := newClient(t, h2.DefaultOptions())
	for want, fields := range map[string][]string{
		"missing required header: :method":    {":path=/"},
		"missing required header: :path":      {":method=GET"},
		"missing required header: :authority": {":method=CONNECT"},
	} {
		x := c.stream()
		var h http.HeaderMap
		h.Init(&x.arena)
		for _, f := range fields {
			n, v, _ := strings.Cut(f, "=")
			h.AddName(n, v)
		}
		if err := x.x.EncodeHeaders(&h, true); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		x.x.Reset(http.ResetLocal)
	}
	if len(c.out.take()) != 0 {
		t.Error("something was sent")
	}
}

// TestUpgrades: an upgrade crosses HTTP/2 as extended CONNECT and looks like HTTP/1.1's on both ends.
func TestUpgrades(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.AllowConnect = true
	c := newClient(t, opts)
	x := c.request(false, ":method=GET", ":scheme=http", ":path=/ws", ":authority=a", "connection=Upgrade, x", "upgrade=websocket",
		"content-length=0", "x-a=1")
	up := c.out.take()
	eq(t, "request", newWire().read(t, up), `SETTINGS 2=0 1=4096 8=1 3=1024 4=16777216
		0 WINDOW_UPDATE 25100289
		1 HEADERS :method="CONNECT" :scheme="http" :path="/ws" :authority="a" :protocol="websocket" x-a="1"`)
	s := newServer(t, opts)
	s.feed(up)
	eq(t, "server", s.drain(), `1 headers :method="GET" :scheme="http" :path="/ws" :authority="a" x-a="1" upgrade="websocket" connection="upgrade"`)
	y := s.byID[1]
	y.resp.Add(http.Status, "101")
	y.resp.Add(http.Connection, "upgrade")
	y.resp.Add(http.Upgrade, "websocket")
	y.x.EncodeHeaders(&y.resp, false)
	y.body("pong", true)
	down := s.out.take()
	eq(t, "response", newWire().read(t, down), `SETTINGS 1=4096 8=1 3=1024 4=16777216
		0 WINDOW_UPDATE 25100289
		SETTINGS ACK
		1 HEADERS :status="200"
		1 DATA "pong" END`)
	c.feed(down)
	eq(t, "client", c.drain(), `max 1024
		1 headers :status="101" upgrade="websocket" connection="upgrade"
		1 data "pong" END`)
	if !c.c.PeerAllowsConnect() {
		t.Error("the server's SETTINGS were not seen")
	}
	x.body("", true)
}

func TestConnect(t *testing.T) {
	c := newClient(t, h2.DefaultOptions())
	c.request(false, ":method=CONNECT", ":authority=a:1", ":scheme=http", ":path=/").body("x", false)
	up := c.out.take()
	eq(t, "request", newWire().read(t, up), `SETTINGS 2=0 1=4096 8=0 3=1024 4=16777216
		0 WINDOW_UPDATE 25100289
		1 HEADERS :method="CONNECT" :authority="a:1"
		1 DATA "x"`)
	s := newServer(t, h2.DefaultOptions())
	s.feed(up)
	eq(t, "server", s.drain(), "1 headers :method=\"CONNECT\" :authority=\"a:1\"\n1 data \"x\"")
}

// TestEOF: what is open when the server closes is lost.
func TestEOF(t *testing.T) {
	c, _ := began(t, h2.DefaultOptions(), "/")
	c.c.EOF()
	eq(t, "events", c.drain(), "done false\n1 reset \"connection termination\" ")
}

// TestLongHead: a head that does not fit into a frame.
func TestLongHead(t *testing.T) {
	c := newClient(t, h2.DefaultOptions())
	long := strings.Repeat("v", 40000)
	c.request(true, ":method=GET", ":scheme=http", ":path=/", ":authority=a", "x-long="+long)
	up := c.out.take()
	frames := newWire().read(t, up)
	if !strings.Contains(frames, "1 HEADERS... END\n1 CONTINUATION...\n1 CONTINUATION :method") {
		t.Errorf("frames: %.300s", frames)
	}
	s := newServer(t, h2.DefaultOptions())
	s.feed(up)
	if e := s.drain(); !strings.Contains(e, "x-long=\""+long+"\" END") {
		t.Errorf("server got %.200s", e)
	}
}

// TestEncodeOrder: pseudo headers go first, wherever a filter has put them, and what HTTP/2 does not have is left out.
func TestEncodeOrder(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 65535, true, 1)
	x := s.byID[1]
	for _, f := range []string{"x-a=1", ":status=200", "connection=x", "keep-alive=1", "transfer-encoding=chunked", "te=gzip", "host=h", "proxy-connection=x"} {
		n, v, _ := strings.Cut(f, "=")
		x.resp.AddName(n, v)
	}
	x.x.EncodeHeaders(&x.resp, true)
	eq(t, "frames", w.read(t, s.out.take()), `1 HEADERS :status="200" x-a="1" END`)
}

// TestHpackTableOfPeer: our encoder keeps to what the peer allows and says so.
func TestHpackTableOfPeer(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 65535, true, 1, 3, 5)
	w.dec.SetAllowedMaxDynamicTableSize(100)
	s.feed(w.raw(4, 0, 0, "\x00\x01\x00\x00\x00\x64").bytes())
	for _, id := range []uint32{1, 3, 5} {
		x := s.byID[id]
		x.resp.Add(http.Status, "200")
		x.resp.Add(http.Server, "envoy")
		x.resp.AddName("x-custom", "value")
		x.x.EncodeHeaders(&x.resp, true)
	}
	one := `HEADERS :status="200" server="envoy" x-custom="value" END`
	eq(t, "frames", w.read(t, s.out.take()), "SETTINGS ACK\n1 "+one+"\n3 "+one+"\n5 "+one)
}
