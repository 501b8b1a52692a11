package buffer_test

import (
	"bytes"
	"runtime"
	"testing"
	"weak"

	"github.com/dragoman-proxy/dragoman/api/buffer"
)

// FuzzOps applies a random sequence of operations to two buffers and to two plain slices; both must agree, and every slab
// must come back.
func FuzzOps(f *testing.F) {
	f.Add([]byte{0, 200, 1, 3, 2, 10, 3, 1, 4, 9, 5, 77})
	f.Add([]byte{0, 255, 0, 255, 6, 255, 7, 1, 3, 255, 2, 255})
	f.Fuzz(func(t *testing.T, ops []byte) {
		p := &buffer.Pool{Poison: true}
		var b [2]buffer.Buffer
		var want [2][]byte
		b[0].Init(p)
		b[1].Init(p)
		src := bytes.Repeat([]byte("0123456789abcdef"), 3000)
		for i := 0; i+1 < len(ops); i += 2 {
			k, n := int(ops[i]&1), int(ops[i+1])
			switch ops[i] >> 1 % 8 {
			case 0:
				b[k].Append(src[n : n+n*97])
				want[k] = append(want[k], src[n:n+n*97]...)
			case 1:
				n *= 50
				b[k].Drain(n)
				want[k] = want[k][min(n, len(want[k])):]
			case 2:
				n *= 90
				b[k].MoveN(&b[1-k], n)
				n = min(n, len(want[1-k]))
				want[k] = append(want[k], want[1-k][:n]...)
				want[1-k] = want[1-k][n:]
			case 3:
				b[k].Move(&b[1-k])
				want[k] = append(want[k], want[1-k]...)
				want[1-k] = nil
			case 4:
				n *= 100
				got := b[k].Linearize(n)
				if !bytes.Equal(got, want[k][:min(n, len(want[k]))]) {
					t.Fatal("linearize differs")
				}
			case 5:
				r := b[k].Reserve(n * 100)
				r = append(r, src[:n*60]...)
				b[k].Commit(r)
				want[k] = append(want[k], src[:n*60]...)
			case 6:
				if b[k].Len() == 0 {
					b[k].Borrow(src[:n])
					b[k].Own()
					want[k] = append(want[k], src[:n]...)
				}
			case 7:
				b[k].Reset()
				want[k] = nil
			}
			for j := range b {
				if b[j].Len() != len(want[j]) || !bytes.Equal(b[j].Bytes(), want[j]) {
					t.Fatalf("op %d: buffer %d: got %d bytes, want %d", i, j, b[j].Len(), len(want[j]))
				}
				want[j] = append([]byte(nil), want[j]...)
			}
		}
		b[0].Reset()
		b[1].Reset()
		if p.Live() != 0 {
			t.Fatalf("%d slabs leaked", p.Live())
		}
	})
}

func TestSlabLimit(t *testing.T) {
	p := &buffer.Pool{}
	var b buffer.Buffer
	b.Init(p)
	chunk := make([]byte, buffer.SlabSize)
	for i := 0; i < buffer.MaxFree+1; i++ {
		b.Append(chunk)
	}
	b.Reset()
	if p.Free() != buffer.MaxFree || p.Live() != 0 {
		t.Fatalf("free %d, live %d", p.Free(), p.Live())
	}
}

func TestAppendDrainAllocatesNothing(t *testing.T) {
	p := &buffer.Pool{}
	var b, c buffer.Buffer
	b.Init(p)
	c.Init(p)
	data := make([]byte, 1500)
	f := func() {
		b.Append(data)
		c.Move(&b)
		c.Drain(c.Len())
	}
	f()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// A buffer that is empty again holds on to no memory, however many slabs it had.
func TestEmptyBuffersHoldNothing(t *testing.T) {
	for slabs := 1; slabs <= 5; slabs++ {
		var p buffer.Pool
		var b buffer.Buffer
		b.Init(&p)
		var held []weak.Pointer[byte]
		for range slabs {
			b.Append(make([]byte, buffer.SlabSize))
		}
		for _, run := range b.Slices(nil, slabs) {
			held = append(held, weak.Make(&run[0]))
		}
		b.Reset()
		for p.Trim(); p.Free() > 0; p.Trim() {
		}
		runtime.GC()
		for i, w := range held {
			if w.Value() != nil {
				t.Errorf("%d slabs: number %d is still there", slabs, i)
			}
		}
		runtime.KeepAlive(&b)
	}
}
