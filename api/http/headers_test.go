package http_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
)

func TestLookupKnowsEveryName(t *testing.T) {
	for id := http.Method; id < http.NumIDs; id++ {
		if id.Name() == "" {
			t.Fatalf("ID %d has no name", id)
		}
		if got := http.Lookup(id.Name()); got != id {
			t.Errorf("Lookup(%q) = %d, want %d", id.Name(), got, id)
		}
		if got := http.Lookup([]byte(id.Name() + "x")); got != http.None {
			t.Errorf("Lookup(%q) = %d, want none", id.Name()+"x", got)
		}
	}
	if http.Lookup("") != http.None || http.Lookup("Host") != http.None {
		t.Error("empty or upper-case name found")
	}
}

func list(m *http.HeaderMap) (out []string) {
	size := 0
	for _, h := range m.All() {
		out = append(out, h.Name+"="+h.Value)
		size += len(h.Name) + len(h.Value)
		if h.ID != http.Lookup(h.Name) {
			panic("wrong id for " + h.Name)
		}
	}
	if size != m.Size() {
		panic(fmt.Sprintf("size is %d, should be %d", m.Size(), size))
	}
	return out
}

func TestHeaderMap(t *testing.T) {
	p := &http.ArenaPool{Poison: true}
	var a http.Arena
	a.Init(p)
	var m http.HeaderMap
	m.Init(&a)
	m.Add(http.Method, "GET")
	m.AddName("x-a", "1")
	m.AddName("cookie", "c=1")
	m.AddName("x-a", "2")
	m.Add(http.Cookie, "c=2")
	steps := []struct {
		do   func()
		want []string
	}{
		{func() {}, []string{":method=GET", "x-a=1", "cookie=c=1", "x-a=2", "cookie=c=2"}},
		{func() { m.SetName("x-a", "3") }, []string{":method=GET", "x-a=3", "cookie=c=1", "cookie=c=2"}},
		{func() { m.Set(http.Cookie, "d") }, []string{":method=GET", "x-a=3", "cookie=d"}},
		{func() { m.Remove(http.Cookie) }, []string{":method=GET", "x-a=3"}},
		{func() { m.SetConst(http.Server, "envoy") }, []string{":method=GET", "x-a=3", "server=envoy"}},
		{func() { m.RemoveName("x-a") }, []string{":method=GET", "server=envoy"}},
		{func() { m.SetName("x-new", "n") }, []string{":method=GET", "server=envoy", "x-new=n"}},
		{func() { s := http.MakeSet(http.Method, http.Server); m.RemoveSet(&s) }, []string{"x-new=n"}},
	}
	for i, s := range steps {
		s.do()
		if d := cmp.Diff(s.want, list(&m)); d != "" {
			t.Errorf("step %d: %s", i, d)
		}
	}
	if m.Has(http.Method) || m.Get(http.Server) != "" || m.Find(http.Cookie) != nil {
		t.Error("removed field still found")
	}
	m.Release()
	a.Release()
	if p.Live() != 0 {
		t.Errorf("%d chunks leaked", p.Live())
	}
}

// A view that is kept past Release must not look valid in tests.
func TestArenaPoison(t *testing.T) {
	p := &http.ArenaPool{Poison: true}
	var a http.Arena
	a.Init(p)
	v := a.String("secret")
	a.Release()
	if v == "secret" {
		t.Error("memory was not poisoned")
	}
}

func TestArenaGrowsPastChunk(t *testing.T) {
	p := &http.ArenaPool{}
	var a http.Arena
	a.Init(p)
	var views []string
	for i := 0; i < 300; i++ {
		views = append(views, a.String(fmt.Sprintf("value-%04d-%0100d", i, i)))
	}
	big := a.Copy(make([]byte, 10000))
	for i, v := range views {
		if v != fmt.Sprintf("value-%04d-%0100d", i, i) {
			t.Fatalf("view %d moved", i)
		}
	}
	if len(big) != 10000 {
		t.Fatal("big")
	}
	a.Release()
	if p.Live() != 0 {
		t.Errorf("%d chunks leaked", p.Live())
	}
}

func TestArenaChunks(t *testing.T) {
	p := &http.ArenaPool{Poison: true}
	var a, b http.Arena
	a.Init(p)
	b.Init(p)
	for name, tc := range map[string]struct {
		sizes []int
		live  int
	}{
		"a first chunk":                {[]int{500, 12}, 1},
		"and one byte":                 {[]int{500, 13}, 2},
		"a first and a second":         {[]int{512, 1000, 24}, 2},
		"and one byte more":            {[]int{512, 1000, 25}, 3},
		"one byte too large for it":    {[]int{513, 511}, 1},
		"what a second chunk holds":    {[]int{1000, 24}, 1},
		"one byte more":                {[]int{1000, 25}, 2},
		"a second chunk":               {[]int{1024, 4096}, 2},
		"one byte more than the next":  {[]int{1024, 4097}, 2},
		"too large for a first chunk":  {[]int{1025}, 1},
		"too large for any":            {[]int{4097}, 1},
		"a third chunk":                {[]int{1024, 4096, 1}, 3},
		"what remains of a next chunk": {[]int{1025, 3071}, 1},
	} {
		var views []string
		for i, n := range tc.sizes {
			views = append(views, a.Copy(bytes.Repeat([]byte{byte('a' + i)}, n)))
		}
		// Neighbours of a batch do not share a byte.
		other := b.Copy(bytes.Repeat([]byte{'z'}, 1024))
		if got := p.Live() - 1; got != tc.live {
			t.Errorf("%s: %d chunks, want %d", name, got, tc.live)
		}
		for i, v := range views {
			if v != strings.Repeat(string(rune('a'+i)), tc.sizes[i]) {
				t.Errorf("%s: view %d was overwritten", name, i)
			}
		}
		a.Release()
		if other != strings.Repeat("z", 1024) {
			t.Errorf("%s: the neighbour was overwritten", name)
		}
		b.Release()
	}
	if p.Live() != 0 {
		t.Errorf("%d chunks leaked", p.Live())
	}
	if n := testing.AllocsPerRun(100, func() { a.String("x"); a.Bytes(2000); a.Release() }); n != 0 {
		t.Errorf("%v allocations for chunks that are there", n)
	}
}

func FuzzCookie(f *testing.F) {
	f.Add(`a=b; c="d"`, "c")
	f.Add("a", "a")
	f.Fuzz(func(t *testing.T, line, name string) {
		if name == "" || strings.ContainsAny(name, "=; \t") {
			return
		}
		cookies := func(lines ...string) *http.HeaderMap {
			var a http.Arena
			a.Init(&http.ArenaPool{})
			var m http.HeaderMap
			m.Init(&a)
			for _, l := range lines {
				m.Add(http.Cookie, l)
			}
			return &m
		}
		v, ok := cookies(line).Cookie(name)
		if ok && (!strings.Contains(line, name+"=") || !strings.Contains(line, v)) || strings.Contains(v, ";") {
			t.Fatalf("%q: %s is %q, %v", line, name, v, ok)
		}
		if v, ok := cookies(line, "sure="+name).Cookie("sure"); !ok || !strings.Contains(line, "sure") && v != strings.Trim(name, `"`) && v != name {
			t.Fatalf("%q hides another cookie: %q", line, v)
		}
	})
}

func BenchmarkRequestHeaders(b *testing.B) {
	p := &http.ArenaPool{}
	var a http.Arena
	a.Init(p)
	var m http.HeaderMap
	b.ReportAllocs()
	for b.Loop() {
		m.Init(&a)
		m.AddConst(http.Method, "GET")
		m.Add(http.Path, "/1k")
		m.Add(http.Authority, "127.0.0.1:18080")
		m.Add(http.UserAgent, "Mozilla/5.0 (X11; Linux x86_64)")
		m.Add(http.Accept, "*/*")
		m.Add(http.AcceptEncoding, "gzip, deflate")
		m.Add(http.Cookie, "session=0123456789abcdef")
		m.SetConst(http.XForwardedProto, "http")
		_ = m.Get(http.Authority)
		_ = m.Get(http.EnvoyRetryOn)
		m.Release()
		a.Release()
	}
}
