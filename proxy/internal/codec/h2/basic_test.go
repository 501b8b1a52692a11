package h2_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

func eq(t *testing.T, what, got, want string) {
	t.Helper()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if d := cmp.Diff(want, strings.TrimSpace(got)); d != "" {
		t.Errorf("%s: (-want +got)\n%s", what, d)
	}
}

func TestServerRequest(t *testing.T) {
	s := newServer(t, h2.DefaultOptions())
	w := newWire()
	s.on = func(x *serverStream, e string) {
		if strings.HasSuffix(e, "END") {
			x.respond("200", "hello")
		}
	}
	if err := s.feed(w.hello().get(1, "x-a=1", "cookie=a=1", "cookie=b=2").post(3).data(3, true, "body").bytes()); err != "" {
		t.Fatal(err)
	}
	eq(t, "events", s.drain(), `
		1 headers :method="GET" :scheme="http" :path="/" :authority="a" x-a="1" cookie="a=1; b=2" END
		1 complete
		3 headers :method="POST" :scheme="http" :path="/" :authority="a"
		3 data "body" END
		3 complete`)
	eq(t, "frames", w.read(t, s.out.take()), `
		SETTINGS 1=4096 8=0 3=1024 4=16777216
		0 WINDOW_UPDATE 25100289
		SETTINGS ACK
		1 HEADERS :status="200"
		1 DATA "hello" END
		3 HEADERS :status="200"
		3 DATA "hello" END`)
	if s.c.Active() != 0 {
		t.Errorf("%d streams active", s.c.Active())
	}
}

func TestClientResponse(t *testing.T) {
	c := newClient(t, h2.DefaultOptions())
	w := newWire()
	c.get("/a")
	x := c.request(false, ":method=POST", ":scheme=http", ":path=/b", ":authority=a", "connection=close", "te=trailers")
	x.body("hello", true)
	eq(t, "frames", w.read(t, c.out.take()), `
		SETTINGS 2=0 1=4096 8=0 3=1024 4=16777216
		0 WINDOW_UPDATE 25100289
		1 HEADERS :method="GET" :scheme="http" :path="/a" :authority="a" END
		3 HEADERS :method="POST" :scheme="http" :path="/b" :authority="a" te="trailers"
		3 DATA "hello" END`)
	w.fr.WriteSettings()
	w.headers(3, false, ":status=103", "link=x").headers(3, false, ":status=200", "x-a=b").data(3, false, "hi").headers(3, true, "x-t=1")
	w.headers(1, true, ":status=204")
	if err := c.feed(w.bytes()); err != "" {
		t.Fatal(err)
	}
	eq(t, "events", c.drain(), `
		max 1024
		3 1xx :status="103" link="x"
		3 headers :status="200" x-a="b"
		3 data "hi"
		3 trailers x-t="1"
		done true
		1 headers :status="204" END
		done true`)
	eq(t, "frames", w.read(t, c.out.take()), `SETTINGS ACK`)
	if c.c.Active() != 0 {
		t.Errorf("%d streams active", c.c.Active())
	}
}
