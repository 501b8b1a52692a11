package hpack_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	xhpack "golang.org/x/net/http2/hpack"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/hpack"
)

type pair struct{ Name, Value string }

// block decodes a whole header block.
func block(d *hpack.Decoder, b []byte, a *http.Arena) (out []pair, err error) {
	d.Begin()
	for len(b) > 0 {
		var f hpack.Field
		n, err := d.Next(b, a, &f)
		if err != nil {
			return out, err
		}
		b = b[n:]
		if f.Name == "" && f.Bad == 0 {
			continue
		}
		if want := http.Lookup(f.Name); f.ID != want {
			return out, fmt.Errorf("id %d for %q, want %d", f.ID, f.Name, want)
		}
		out = append(out, pair{strings.Clone(f.Name), strings.Clone(f.Value)})
	}
	return out, nil
}

func newArena() *http.Arena {
	a := new(http.Arena)
	a.Init(&http.ArenaPool{Poison: true})
	return a
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// The examples of RFC 7541, appendix C.
func TestRFCExamples(t *testing.T) {
	req := [][]pair{
		{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "www.example.com"}},
		{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "www.example.com"},
			{"cache-control", "no-cache"}},
		{{":method", "GET"}, {":scheme", "https"}, {":path", "/index.html"}, {":authority", "www.example.com"},
			{"custom-key", "custom-value"}},
	}
	tests := []struct {
		name   string
		blocks []string
		want   [][]pair
		size   []int
	}{
		{"C.2.1", []string{"400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572"},
			[][]pair{{{"custom-key", "custom-header"}}}, []int{55}},
		{"C.2.2", []string{"040c 2f73 616d 706c 652f 7061 7468"}, [][]pair{{{":path", "/sample/path"}}}, []int{0}},
		{"C.2.3", []string{"1008 7061 7373 776f 7264 0673 6563 7265 74"}, [][]pair{{{"password", "secret"}}}, []int{0}},
		{"C.2.4", []string{"82"}, [][]pair{{{":method", "GET"}}}, []int{0}},
		{"C.3", []string{"8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", "8286 84be 5808 6e6f 2d63 6163 6865",
			"8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65"}, req, []int{57, 110, 164}},
		{"C.4", []string{"8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", "8286 84be 5886 a8eb 1064 9cbf",
			"8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"}, req, []int{57, 110, 164}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d hpack.Decoder
			d.Init(4096)
			for i, b := range tt.blocks {
				a := newArena()
				got, err := block(&d, unhex(b), a)
				if err != nil {
					t.Fatal(err)
				}
				a.Release()
				if diff := cmp.Diff(tt.want[i], got); diff != "" {
					t.Errorf("block %d: %s", i, diff)
				}
				if d.TableSize() != tt.size[i] {
					t.Errorf("block %d: table size %d, want %d", i, d.TableSize(), tt.size[i])
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	long := func(n int) string { return "00" + "0161" + hex.EncodeToString(lenPrefix(n)) + strings.Repeat("62", n) }
	tests := []struct {
		name, block, err string
	}{
		{"index zero", "80", "hpack: no such table entry"},
		{"index past the table", "be", "hpack: no such table entry"},
		{"literal name past the table", "7f00 0161", "hpack: no such table entry"},
		{"integer overflow", "ffffffffffff", "hpack: integer is too large"},
		{"update at the limit", "3fe11f 82", ""},
		{"update above the limit", "3fe21f 82", "hpack: table size update above the limit or not at the start"},
		{"two updates", "20 3fe11f 82", ""},
		{"three updates", "20 20 20 82", ""},
		{"update after a field", "82 20", "hpack: table size update above the limit or not at the start"},
		{"eos in huffman", "0085 ffffffffff 0161", "hpack: invalid huffman code"},
		{"padding of eight bits", "0082 1fff 0161", "hpack: invalid huffman code"},
		{"padding with zero bits", "0081 18 0161", "hpack: invalid huffman code"},
		{"string at the limit", long(hpack.MaxString), ""},
		{"string above the limit", long(hpack.MaxString + 1), "hpack: string is too long"},
		{"Huffman code at the limit", huffmanZeros(hpack.MaxString - 1), ""},
		{"Huffman code above the limit", huffmanZeros(hpack.MaxString + 4), "hpack: string is too long"},
		{"truncated", "0005 61", "hpack: field is not complete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d hpack.Decoder
			d.Init(4096)
			_, err := block(&d, unhex(tt.block), newArena())
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.err {
				t.Errorf("got %q, want %q", got, tt.err)
			}
		})
	}
}

// huffmanZeros is a field whose value takes n bytes, a multiple of 5, and becomes 8/5 of that.
func huffmanZeros(n int) string {
	length := lenPrefix(n)
	length[0] |= 0x80
	return "00" + "0161" + hex.EncodeToString(length) + strings.Repeat("00", n)
}

func lenPrefix(n int) []byte {
	if n < 127 {
		return []byte{byte(n)}
	}
	b := []byte{127}
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

func TestBadCharacters(t *testing.T) {
	tests := []struct {
		name, value string
		want        hpack.Bad
	}{
		{"x-a", "plain", 0}, {"x-a", "", 0}, {"x-a", "tab\tis fine, and this is long", 0}, {"x-a", "caf\xc3\xa9 \x80\xff", 0},
		{"x-a", "nul\x00", hpack.BadValue}, {"x-a", "a much longer value\r\nwith a line", hpack.BadValue},
		{"x-a", "a much longer value\x7f", hpack.BadValue}, {"x-a", "\x1f1234567", hpack.BadValue},
		{"x-a", "1234567\x7f", hpack.BadValue}, {"x-a", "1234567\t", 0}, {"x-a", "\t\t\t\t\t\t\t\t\t", 0},
		{"X-Upper", "a", hpack.BadName}, {"", "a", hpack.BadName}, {"a b", "a", hpack.BadName}, {"a:b", "a", hpack.BadName},
		{":unknown", "a", 0}, {":", "a", hpack.BadName}, {"x\x80", "a", hpack.BadName}, {"X", "\x00", hpack.BadName | hpack.BadValue},
	}
	for _, tt := range tests {
		var buf bytes.Buffer
		e := xhpack.NewEncoder(&buf)
		// Twice: as a literal and from the dynamic table.
		for range 2 {
			e.WriteField(xhpack.HeaderField{Name: tt.name, Value: tt.value})
		}
		var d hpack.Decoder
		d.Init(4096)
		a := newArena()
		for b := buf.Bytes(); len(b) > 0; {
			var f hpack.Field
			n, err := d.Next(b, a, &f)
			if err != nil {
				t.Fatal(err)
			}
			b = b[n:]
			if f.Bad != tt.want || f.Name != tt.name || f.Value != tt.value {
				t.Errorf("%q: %q: got bad %d, want %d", tt.name, tt.value, f.Bad, tt.want)
			}
		}
	}
}

// names and values are drawn from small sets, so that fields repeat, and from random bytes.
func randomField(r *rand.Rand) pair {
	names := []string{":status", ":path", ":method", ":authority", "server", "date", "cookie", "x-custom", "x-other", "accept",
		"content-type", "x-envoy-upstream-service-time", "authorization", "age", "retry-after"}
	f := pair{names[r.IntN(len(names))], fmt.Sprint(r.IntN(4))}
	switch r.IntN(6) {
	case 0:
		f.Value = strings.Repeat("v", r.IntN(300))
	case 1:
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Value = string(b)
	case 2:
		f.Name = fmt.Sprintf("x-n%d", r.IntN(30))
	case 3:
		if r.IntN(20) == 0 {
			f.Value = strings.Repeat("long", r.IntN(3000))
		}
	}
	return f
}

// TestPeerDecodes: what our encoder writes is what x/net reads, with table sizes that change.
func TestPeerDecodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var e hpack.Encoder
		e.Init(4096)
		var got []pair
		d := xhpack.NewDecoder(4096, func(f xhpack.HeaderField) { got = append(got, pair{f.Name, f.Value}) })
		d.SetMaxStringLength(1 << 20)
		own := newDecoder(4096)
		for range 200 {
			for r.IntN(10) == 0 {
				n := r.IntN(5000)
				e.SetLimit(n)
				d.SetAllowedMaxDynamicTableSize(uint32(n))
			}
			var want []pair
			size := 0
			got = got[:0]
			b := e.Begin(nil)
			for range r.IntN(20) {
				f := randomField(r)
				want = append(want, f)
				b = e.Append(b, http.Lookup(f.Name), f.Name, f.Value)
				size += len(f.Name) + len(f.Value) + hpack.FieldMax
			}
			if len(b) > size+hpack.BlockMax {
				t.Fatalf("block of %d bytes, bound %d", len(b), size+hpack.BlockMax)
			}
			if _, err := d.Write(b); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpEmpty); diff != "" {
				t.Fatal(diff)
			}
			a := newArena()
			mine, err := block(own, b, a)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, mine, cmpEmpty); diff != "" {
				t.Fatal(diff)
			}
			a.Release()
		}
	}
}

var cmpEmpty = cmp.Transformer("empty", func(p []pair) []pair {
	if len(p) == 0 {
		return nil
	}
	return append([]pair{}, p...)
})

func newDecoder(limit int) *hpack.Decoder {
	d := new(hpack.Decoder)
	d.Init(limit)
	return d
}

// TestReadsPeer: what x/net writes is what our decoder reads; a second decoder that wants nothing keeps the same table.
func TestReadsPeer(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		var buf bytes.Buffer
		e := xhpack.NewEncoder(&buf)
		d, blind := newDecoder(8192), newDecoder(8192)
		e.SetMaxDynamicTableSizeLimit(8192)
		for range 200 {
			if r.IntN(10) == 0 {
				e.SetMaxDynamicTableSize(uint32(r.IntN(8192)))
			}
			buf.Reset()
			var want []pair
			for range r.IntN(20) {
				f := randomField(r)
				want = append(want, f)
				e.WriteField(xhpack.HeaderField{Name: f.Name, Value: f.Value, Sensitive: r.IntN(5) == 0})
			}
			a := newArena()
			got, err := block(d, buf.Bytes(), a)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpEmpty); diff != "" {
				t.Fatal(diff)
			}
			a.Release()
			blind.Begin()
			for b := buf.Bytes(); len(b) > 0; {
				var f hpack.Field
				n, err := blind.Next(b, nil, &f)
				if err != nil {
					t.Fatal(err)
				}
				b = b[n:]
			}
			if d.TableSize() != blind.TableSize() {
				t.Fatalf("table sizes differ: %d, %d", d.TableSize(), blind.TableSize())
			}
			// Swap now and then: the blind one must know all strings.
			if r.IntN(3) == 0 {
				d, blind = blind, d
			}
		}
	}
}

func TestShortInput(t *testing.T) {
	var buf bytes.Buffer
	e := xhpack.NewEncoder(&buf)
	e.WriteField(xhpack.HeaderField{Name: "x-some-name", Value: strings.Repeat("value", 60)})
	whole := buf.Bytes()
	d := newDecoder(4096)
	d.Begin()
	var f hpack.Field
	a := newArena()
	for i := range whole {
		if n, err := d.Next(whole[:i], a, &f); n != 0 || err != hpack.ErrShort {
			t.Fatalf("%d bytes: %d, %v", i, n, err)
		}
	}
	if n, err := d.Next(whole, a, &f); n != len(whole) || err != nil || d.TableSize() != 32+11+300 {
		t.Fatalf("%d, %v", n, err)
	}
}

func TestSizeUpdateIsRequired(t *testing.T) {
	d := newDecoder(1000)
	if _, err := block(d, unhex("82"), newArena()); err != nil {
		t.Fatal(err)
	}
	d.SetLimit(1000)
	if _, err := block(d, unhex("82"), newArena()); err == nil {
		t.Fatal("a block without the update was taken")
	}
	if _, err := block(d, unhex("3fca07 82"), newArena()); err == nil {
		t.Fatal("an update to 1001 was taken")
	}
	if _, err := block(d, unhex("3fc907 82"), newArena()); err != nil {
		t.Fatal(err)
	}
	if _, err := block(d, unhex("82"), newArena()); err != nil {
		t.Fatal(err)
	}
}

func TestNeverIndexed(t *testing.T) {
	var e hpack.Encoder
	e.Init(4096)
	var first []byte
	for i := range 5 {
		b := e.Append(nil, http.Authorization, "authorization", "Bearer abc")
		b = e.Append(b, http.Cookie, "cookie", "a=b")
		b = e.Append(b, http.Path, ":path", "/some/path")
		b = e.Append(b, http.Date, "date", "now")
		if i == 0 {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Fatal("the table was used")
		}
	}
	want := "1f08" + "0a" + hex.EncodeToString([]byte("Bearer abc")) + "1f11" + "03" + hex.EncodeToString([]byte("a=b"))
	if got := hex.EncodeToString(first); !strings.HasPrefix(got, want) {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestRepeatedFieldTakesOneByte(t *testing.T) {
	var e hpack.Encoder
	e.Init(4096)
	for i, want := range []int{0, 0, 2, 2} {
		b := e.Append(nil, http.Server, "server", "envoy")
		b = e.Append(b, http.None, "x-custom", "some value")
		if want != 0 && len(b) != want {
			t.Errorf("round %d: %d bytes, want %d", i, len(b), want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(unhex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"))
	f.Add(unhex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572 be"))
	f.Add(unhex("20 3fe11f 82"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var want []pair
		x := xhpack.NewDecoder(4096, func(f xhpack.HeaderField) { want = append(want, pair{f.Name, f.Value}) })
		x.SetMaxStringLength(hpack.MaxString)
		_, xerr := x.Write(b)
		if xerr == nil {
			xerr = x.Close()
		}
		d, blind := newDecoder(4096), newDecoder(4096)
		d.Begin()
		blind.Begin()
		a := newArena()
		var got []pair
		var err error
		for in := b; len(in) > 0; {
			var f, g hpack.Field
			var n, m int
			n, err = d.Next(in, a, &f)
			m, errBlind := blind.Next(in, nil, &g)
			if err == nil && (m != n || errBlind != nil || d.TableSize() != blind.TableSize()) {
				t.Fatalf("blind decoder differs: %d %d %v", n, m, errBlind)
			}
			if err != nil {
				break
			}
			if in[0]&0xe0 != 0x20 {
				got = append(got, pair{f.Name, f.Value})
			}
			in = in[n:]
		}
		if d.TableSize() > 4096 {
			t.Fatalf("table size %d", d.TableSize())
		}
		// x/net allows any number of size updates at the start, and integers up to 64 bits.
		if err == nil && xerr != nil {
			t.Fatalf("taken, but x/net says %v", xerr)
		}
		if err == nil {
			if diff := cmp.Diff(want, got, cmpEmpty); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("x-a", "value", uint8(3), uint16(100))
	f.Add("server", "envoy", uint8(5), uint16(4096))
	f.Add("cookie", "", uint8(0), uint16(0))
	f.Fuzz(func(t *testing.T, name, value string, times uint8, limit uint16) {
		if len(name) > hpack.MaxString || len(value) > hpack.MaxString {
			return
		}
		var e hpack.Encoder
		e.Init(4096)
		d := newDecoder(4096)
		for i := range int(times%8) + 1 {
			if i == 3 {
				e.SetLimit(int(limit))
			}
			b := e.Begin(nil)
			b = e.Append(b, http.Lookup(name), name, value)
			b = e.Append(b, http.None, name+"x", value+"y")
			b = hpack.AppendStateless(b, http.Lookup(name), name, value)
			a := newArena()
			d.Begin()
			k := 0
			for len(b) > 0 {
				var f hpack.Field
				update := b[0]&0xe0 == 0x20
				n, err := d.Next(b, a, &f)
				if err != nil {
					if len(value)+1 > hpack.MaxString || len(name)+1 > hpack.MaxString {
						return
					}
					t.Fatal(err)
				}
				b = b[n:]
				if update {
					continue
				}
				wantN, wantV := name, value
				if k == 1 {
					wantN, wantV = name+"x", value+"y"
				}
				if f.Name != wantN || f.Value != wantV {
					t.Fatalf("got %q %q", f.Name, f.Value)
				}
				k++
			}
			a.Release()
		}
	})
}

var reqFields = []pair{{":method", "GET"}, {":scheme", "https"}, {":path", "/1k"}, {":authority", "www.example.com"},
	{"user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}, {"accept", "text/html,application/xhtml+xml"},
	{"accept-encoding", "gzip, deflate, br"}, {"cookie", "session=0123456789abcdef0123456789abcdef"}, {"x-custom", "abc"}}

var respFields = []pair{{":status", "200"}, {"content-type", "text/plain"}, {"content-length", "1024"},
	{"date", "Tue, 01 Sep 2026 10:00:00 GMT"}, {"server", "envoy"}, {"x-envoy-upstream-service-time", "3"}, {"x-custom", "abc"}}

func TestNoAllocations(t *testing.T) {
	var e hpack.Encoder
	e.Init(4096)
	d := newDecoder(4096)
	a, pool := new(http.Arena), &http.ArenaPool{}
	a.Init(pool)
	var m http.HeaderMap
	m.Init(a)
	for _, f := range reqFields {
		m.AddName(f.Name, f.Value)
	}
	b := make([]byte, 0, 4096)
	i := 0
	f := func() {
		b = e.Begin(b[:0])
		for _, h := range m.All() {
			b = e.Append(b, h.ID, h.Name, h.Value)
		}
		// Something new in each block, so that entries are inserted and evicted.
		i++
		v := [4]byte{byte('a' + i/2%26), byte('a' + i/52%26), byte('a' + i/1352%26), 'x'}
		b = e.Append(b, http.None, "x-changing", string(v[:]))
		var fresh http.Arena
		fresh.Init(pool)
		d.Begin()
		for in := b; len(in) > 0; {
			var f hpack.Field
			n, err := d.Next(in, &fresh, &f)
			if err != nil {
				t.Fatal(err)
			}
			in = in[n:]
		}
		fresh.Release()
	}
	for range 2000 {
		f()
	}
	if n := testing.AllocsPerRun(1000, f); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, huffman := range []bool{false, true} {
		b.Run(fmt.Sprintf("literals=%v", huffman), func(b *testing.B) {
			var buf bytes.Buffer
			e := xhpack.NewEncoder(&buf)
			var blocks [][]byte
			for range 2 {
				buf.Reset()
				for _, f := range reqFields {
					e.WriteField(xhpack.HeaderField{Name: f.Name, Value: f.Value, Sensitive: huffman})
				}
				blocks = append(blocks, bytes.Clone(buf.Bytes()))
			}
			d := newDecoder(4096)
			var a http.Arena
			a.Init(&http.ArenaPool{})
			if _, err := block(d, blocks[0], &a); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(blocks[1])))
			for b.Loop() {
				d.Begin()
				var f hpack.Field
				for in := blocks[1]; len(in) > 0; {
					n, err := d.Next(in, &a, &f)
					if err != nil {
						b.Fatal(err)
					}
					in = in[n:]
				}
				a.Release()
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	var e hpack.Encoder
	e.Init(4096)
	var a http.Arena
	a.Init(&http.ArenaPool{})
	var m http.HeaderMap
	m.Init(&a)
	for _, f := range respFields {
		m.AddName(f.Name, f.Value)
	}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = e.Begin(dst[:0])
		for i := range m.All() {
			h := &m.All()[i]
			dst = e.Append(dst, h.ID, h.Name, h.Value)
		}
	}
}
