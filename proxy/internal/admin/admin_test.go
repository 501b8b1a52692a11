package admin_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
)

func ask(t *testing.T, a *admin.Admin, method, target string) (code int, text string) {
	t.Helper()
	var got *admin.Response
	a.Serve(admin.Parse(method, target, "", nil), func(r *admin.Response) { got = r })
	if got == nil {
		t.Fatal("no answer")
	}
	return got.Code, read(got.Body)
}

func read(b admin.Body) string {
	var out []byte
	for more := b != nil; more; {
		out, more = b.Next(out, 1<<10)
	}
	return string(out)
}

func some() (*admin.Admin, *[]string) {
	var refused []string
	ok := func(_ *admin.Request, done func(*admin.Response)) { done(admin.OK("OK\n")) }
	a := admin.New(
		&admin.Handler{Path: "/stats", Help: "print server stats", Serve: ok,
			Params: []admin.Param{{Name: "type", Help: "which", Choices: []string{"a", "b"}}, {Name: "usedonly", Help: "used", Switch: true}}},
		&admin.Handler{Path: "/quit", Help: "exit <now>", Mutates: true, Serve: ok},
		&admin.Handler{Path: "/secret", Hidden: true, Serve: ok},
	)
	a.OnRefused = func(path, method string) { refused = append(refused, method+" "+path) }
	return a, &refused
}

const help = "admin commands are:\n  /: Admin home page\n  /help: print out list of admin commands\n  /quit (POST): exit <now>\n" +
	"  /stats: print server stats\n      type: which; One of (a, b)\n      usedonly: used\n"

func TestServe(t *testing.T) {
	a, refused := some()
	for _, c := range []struct {
		method, target string
		code           int
		text           string
	}{
		{"GET", "/stats", 200, "OK\n"},
		{"GET", "/stats?x=y", 200, "OK\n"},
		{"POST", "/stats", 200, "OK\n"},
		{"GET", "/secret", 200, "OK\n"},
		{"POST", "/quit", 200, "OK\n"},
		{"GET", "/quit", 405, "Method GET not allowed, POST required."},
		{"HEAD", "/quit", 405, "Method HEAD not allowed, POST required."},
		{"GET", "/nope", 404, "invalid path. " + help},
		{"GET", "/stats/", 404, "invalid path. " + help},
		{"GET", "/help", 200, help},
	} {
		code, text := ask(t, a, c.method, c.target)
		if code != c.code || text != c.text {
			t.Errorf("%s %s: %d %q", c.method, c.target, code, text)
		}
	}
	if d := cmp.Diff([]string{"GET /quit", "HEAD /quit"}, *refused); d != "" {
		t.Error(d)
	}
	a.Allow = func(path string) bool { return path == "/stats" }
	if code, text := ask(t, a, "GET", "/help"); code != 403 || text != "request to path /help not allowed" {
		t.Errorf("%d %q", code, text)
	}
	if code, _ := ask(t, a, "GET", "/stats?x"); code != 200 {
		t.Errorf("an allowed path: %d", code)
	}
}

func TestHome(t *testing.T) {
	a, _ := some()
	_, text := ask(t, a, "GET", "/")
	for _, want := range []string{"<html", "exit &lt;now&gt;", "<form id='quit' action='quit' method='post'>", "<select name='type' form='stats'><option>a</option>",
		"<input type='checkbox' name='usedonly' form='stats'>", "<a href='help'>help</a>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("a hidden page is listed")
	}
}

func TestParse(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		method, target, ctype, body, want string
	}{
		{"GET", "/a?x=1&y=&z", "", "", "x=1 y= z="},
		{"GET", "/a?filter=a+b%2Bc%20d", "", "", "filter=a+b+c d"},
		{"GET", "/a?x=%zz", "", "", "x=%zz"},
		{"GET", "/a", "", "", ""},
		{"POST", "/a?x=1", form, "y=2", "y=2"},
		{"POST", "/a?x=1", form, "", "x=1"},
		{"POST", "/a?x=1", "text/plain", "y=2", "x=1"},
		{"GET", "/a?x=1", form, "y=2", "x=1"},
	} {
		r := admin.Parse(c.method, c.target, c.ctype, []byte(c.body))
		var got []string
		for _, k := range []string{"filter", "x", "y", "z"} {
			for _, v := range r.Query[k] {
				got = append(got, k+"="+v)
			}
		}
		if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" || r.Path != "/a" {
			t.Errorf("%s %s: %s %s", c.method, c.target, r.Path, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/a?x=%41&y=+", "a=b")
	f.Fuzz(func(t *testing.T, target, body string) {
		r := admin.Parse("POST", target, "application/x-www-form-urlencoded", []byte(body))
		if strings.Contains(r.Path, "?") {
			t.Errorf("%q", r.Path)
		}
	})
}

// A page is cut where a piece is full or has taken long, and what was written before and after the cuts is whole.
func TestStream(t *testing.T) {
	now, ended := int64(0), false
	page := func() admin.Body {
		return admin.Stream(func() int64 { return now }, func(w *admin.Writer) {
			defer func() { ended = true }()
			for i := range 10 {
				w.Text(strings.Repeat(string(rune('0'+i)), 10))
				now += 100e3
				if !w.Item() {
					return
				}
			}
		})
	}
	for _, c := range []struct {
		limit  int
		pieces int
	}{{1, 11}, {25, 4}, {1 << 20, 4}} { // 300 us are three items
		b := page()
		var out []byte
		n := 0
		for more := true; more; n++ {
			out, more = b.Next(out, c.limit)
		}
		if n != c.pieces || len(out) != 100 || out[99] != '9' || !ended {
			t.Errorf("limit %d: %d pieces, %d bytes", c.limit, n, len(out))
		}
		if out, more := b.Next(nil, 1); more || len(out) > 0 {
			t.Error("a page goes on after its end")
		}
	}
	ended = false
	b := page()
	b.Next(nil, 1)
	admin.Drop(b)
	if !ended {
		t.Error("a page that nobody reads on was left hanging")
	}
	if _, more := b.Next(nil, 1); more {
		t.Error("a dropped page goes on")
	}
	admin.Drop(page())
	admin.Drop(admin.Text("x"))
	admin.Drop(nil)
}

// The net/http adapter gives what the filter gives.
func TestHandler(t *testing.T) {
	a, _ := some()
	a.Add(&admin.Handler{Path: "/big", Serve: func(_ *admin.Request, done func(*admin.Response)) {
		done(&admin.Response{Code: 200, ContentType: admin.JSON, Header: [][2]string{{"X-A", "b"}}, Body: admin.Stream(func() int64 { return 0 }, func(w *admin.Writer) {
			for range 40 {
				w.Text(strings.Repeat("x", 10<<10))
				if !w.Item() {
					return
				}
			}
		})})
	}})
	loop := make(chan func(), 16)
	done := make(chan struct{})
	go func() {
		for f := range loop {
			f()
		}
		close(done)
	}()
	srv := httptest.NewServer(a.Handler(func(f func()) { loop <- f }))
	defer func() { srv.Close(); close(loop); <-done }()
	client := srv.Client()
	client.Timeout = 25 * time.Second
	get := func(path string) (int, http.Header, string) {
		t.Helper()
		r, err := client.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, r.Header, string(b)
	}
	code, h, text := get("/big")
	if code != 200 || len(text) != 400<<10 || h.Get("Content-Type") != admin.JSON || h.Get("X-A") != "b" ||
		h.Get("Cache-Control") != "no-cache, max-age=0" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d, %d bytes, %v", code, len(text), h)
	}
	if code, _, _ := get("/quit"); code != 405 {
		t.Errorf("%d", code)
	}
	r, err := client.Post(srv.URL+"/quit", "text/plain", strings.NewReader(strings.Repeat("x", 2<<20)))
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != 413 {
		t.Errorf("a body of 2 MiB: %d", r.StatusCode)
	}
}
