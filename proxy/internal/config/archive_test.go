package config_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

func TestArchive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	a := config.NewArchive()
	want := map[config.Ref][]byte{}
	var refs []config.Ref
	for i := range 20000 {
		if len(refs) > 100 && rng.IntN(10) < 4 {
			k := rng.IntN(len(refs))
			a.Drop(refs[k])
			delete(want, refs[k])
			refs[k] = refs[len(refs)-1]
			refs = refs[:len(refs)-1]
			continue
		}
		size := rng.IntN(200)
		if rng.IntN(500) == 0 {
			size = 40 << 10 // more than a block
		}
		raw := bytes.Repeat([]byte(fmt.Sprintf("resource %d;", i)), 1+size/10)[:size]
		r := a.Put(raw)
		if _, dup := want[r]; dup {
			t.Fatalf("ref %d is in use", r)
		}
		want[r] = raw
		refs = append(refs, r)
	}
	if a.Len() != len(want) {
		t.Errorf("Len = %d, want %d", a.Len(), len(want))
	}
	total := 0
	for r, raw := range want {
		total += len(raw)
		if got, err := a.Get(r); err != nil || !bytes.Equal(got, raw) {
			t.Fatalf("Get(%d) = %q, %v, want %q", r, got, err, raw)
		}
	}
	if a.Size() > total {
		t.Errorf("%d bytes take %d", total, a.Size())
	}
	for r := range want {
		a.Drop(r)
		a.Drop(r) // twice is harmless
	}
	a.Release()
	if got, err := a.Get(refs[0]); got != nil || err != nil || a.Len() != 0 {
		t.Errorf("after all are dropped: %q, %v, %d left", got, err, a.Len())
	}
	if a.Size() > 12*20000 {
		t.Errorf("an empty archive takes %d bytes", a.Size())
	}
}

// A small static cluster may cost 32 bytes here, its entry included.
func TestArchiveSize(t *testing.T) {
	const n = 5000
	s, err := config.Open(write(t, "b.json", scaled(n)), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := config.NewArchive()
	if err := s.Clusters(func(it config.Item[*clusterv3.Cluster]) error { a.Put(it.Raw); return nil }); err != nil {
		t.Fatal(err)
	}
	if per := a.Size() / n; per > 36 {
		t.Errorf("%d bytes a cluster", per)
	}
	t.Logf("%d bytes a cluster", a.Size()/n)
}

func TestCompress(t *testing.T) {
	src := scaled(100)
	packed := config.Compress(src)
	if len(packed)*5 > len(src) {
		t.Errorf("%d bytes of %d", len(packed), len(src))
	}
	got, err := config.Decompress(nil, packed)
	if err != nil || !bytes.Equal(got, src) {
		t.Errorf("err = %v", err)
	}
	if _, err := config.Decompress(nil, []byte("\xff\xff\xff\xff\xff\xff")); err == nil {
		t.Error("garbage is taken")
	}
}
