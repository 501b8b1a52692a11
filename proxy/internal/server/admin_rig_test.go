package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// adminRig is a proxy whose loops the test steps itself.
type adminRig struct {
	t   testing.TB
	s   *Server
	log *strings.Builder
}

// newAdminRig builds a proxy from a bootstrap, as far as it gets without serving.
func newAdminRig(t testing.TB, boot string, change ...func(*Config)) *adminRig {
	t.Helper()
	r, err := tryAdminRig(t, boot, change...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryAdminRig(t testing.TB, boot string, change ...func(*Config)) (*adminRig, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(path, []byte(boot), 0o644); err != nil {
		t.Fatal(err)
	}
	stream, err := config.Open(path, config.Options{})
	if err != nil {
		return nil, err
	}
	r := &adminRig{t: t, log: &strings.Builder{}}
	c := Config{Boot: stream, Concurrency: 2, Log: log.New(log.Config{Output: r.log, Format: "%l %n %v"})}
	for _, f := range change {
		f(&c)
	}
	if r.s, err = New(c); err != nil {
		return nil, err
	}
	t.Cleanup(r.s.closeDrivers)
	return r, nil
}

// step runs all loops until nothing is left to do.
func (r *adminRig) step() {
	for n := 1; n > 0; {
		n = 0
		for _, w := range append([]*event.Worker{r.s.main}, r.s.workers...) {
			n += w.Step(false)
		}
	}
}

// page asks for a page and returns it with its pieces.
type adminPage struct {
	code   int
	ctype  string
	text   string
	pieces int
}

func (r *adminRig) get(target string) adminPage  { r.t.Helper(); return r.ask("GET", target, "", "") }
func (r *adminRig) post(target string) adminPage { r.t.Helper(); return r.ask("POST", target, "", "") }

func (r *adminRig) ask(method, target, ctype, body string) adminPage {
	r.t.Helper()
	var got *admin.Response
	r.s.admin.Serve(admin.Parse(method, target, ctype, []byte(body)), func(x *admin.Response) { got = x })
	for end := time.Now().Add(25 * time.Second); got == nil; {
		r.step()
		if time.Now().After(end) {
			r.t.Fatalf("%s %s: no answer", method, target)
		}
	}
	p := adminPage{code: got.Code, ctype: got.ContentType}
	var text []byte
	for more := got.Body != nil; more; p.pieces++ {
		text, more = got.Body.Next(text, 64<<10)
	}
	p.text = string(text)
	return p
}
