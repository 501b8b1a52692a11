package h2_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	nethttp "net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

// drive runs a codec over a connection until that is closed. Writing has a goroutine of its own: net.Pipe has no buffer.
func drive(c net.Conn, dispatch func([]byte) (int, error), out *sink, mu *sync.Mutex) (flush func(), done chan error) {
	writes := make(chan []byte, 10000)
	go func() {
		for b := range writes {
			if _, err := c.Write(b); err != nil {
				c.Close()
				for range writes {
				}
				return
			}
		}
	}()
	flush = func() {
		if b := out.take(); len(b) > 0 {
			writes <- b
		}
	}
	done = make(chan error, 1)
	go func() {
		defer close(writes)
		defer c.Close()
		var rest []byte
		buf := make([]byte, 8<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				done <- nil
				return
			}
			mu.Lock()
			rest = append(rest, buf[:n]...)
			k, err := dispatch(rest)
			rest = append([]byte(nil), rest[k:]...)
			flush()
			mu.Unlock()
			if err != nil {
				done <- err
				return
			}
		}
	}()
	return flush, done
}

// mirror is a handler that sends back what it gets.
type mirror struct {
	mem *mem
	out sink
	all []*mirrorStream
}

type mirrorStream struct {
	m     *mirror
	x     codec.ServerStream
	h     http.HeaderMap
	arena http.Arena
	body  buffer.Buffer
	head  bool
}

func (m *mirror) OnGoAway() {}
func (m *mirror) NewStream(x codec.ServerStream) (codec.RequestDecoder, *http.HeaderMap) {
	s := &mirrorStream{m: m, x: x}
	s.arena.Init(&m.mem.arenas)
	s.h.Init(&s.arena)
	s.body.Init(&m.mem.buffers)
	m.all = append(m.all, s)
	return s, &s.h
}

func (s *mirrorStream) DecodeHeaders(h *http.HeaderMap, end bool) {
	var r http.HeaderMap
	r.Init(&s.arena)
	if h.Get(http.Path) == "/early" {
		r.Add(http.Status, "103")
		r.AddName("link", "x")
		s.x.Encode1xx(&r)
		r.Init(&s.arena)
	}
	r.Add(http.Status, "200")
	for _, f := range h.All() {
		if strings.HasPrefix(f.Name, "x-") || f.ID == http.Cookie {
			r.AddName("x-got-"+f.Name, f.Value)
		}
	}
	if h.Get(http.Method) == "HEAD" {
		r.Add(http.ContentLength, "12345")
	}
	s.head = h.Get(http.Method) == "HEAD"
	s.x.EncodeHeaders(&r, end || s.head)
}

func (s *mirrorStream) DecodeData(d *buffer.Buffer, end bool) {
	if s.head {
		return
	}
	s.body.Move(d)
	s.x.EncodeData(&s.body, end)
}

func (s *mirrorStream) DecodeTrailers(h *http.HeaderMap) {
	var r http.HeaderMap
	r.Init(&s.arena)
	for _, f := range h.All() {
		r.AddName("x-got-"+f.Name, f.Value)
	}
	s.x.EncodeTrailers(&r)
}
func (s *mirrorStream) DecodeError(err *codec.Err)                {}
func (s *mirrorStream) OnReset(reason http.ResetReason, d string) {}
func (s *mirrorStream) OnAboveHighWatermark()                     { s.x.ReadDisable(true) }
func (s *mirrorStream) OnBelowLowWatermark()                      { s.x.ReadDisable(false) }
func (s *mirrorStream) OnEncodeComplete()                         {}

func (m *mirror) free() {
	for _, s := range m.all {
		s.body.Reset()
		s.arena.Release()
	}
	m.out.buf.Reset()
}

func pattern(n int, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i*7+seed)
	}
	return b
}

// TestGoClient: the client of net/http talks to our server.
func TestGoClient(t *testing.T) {
	for _, window := range []uint32{65535, h2.DefaultInitialStreamWindow} {
		t.Run(fmt.Sprint(window), func(t *testing.T) { testGoClient(t, window) })
	}
}

func testGoClient(t *testing.T, window uint32) {
	near, far := net.Pipe()
	m := &mirror{mem: newMem(t)}
	m.out.buf.Init(&m.mem.buffers)
	opts := h2.DefaultOptions()
	opts.InitialStreamWindow, opts.InitialConnWindow = window, max(window, 70000)
	c := h2.NewServer(m, &m.out, &m.mem.streams, &opts)
	var mu sync.Mutex
	_, done := drive(far, c.Dispatch, &m.out, &mu)
	tr := &http2.Transport{AllowHTTP: true}
	cc, err := tr.NewClientConn(near)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			roundTrip(t, cc, i)
		}()
	}
	wg.Wait()
	cc.Close()
	near.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	mu.Lock()
	if c.Active() != 0 {
		t.Errorf("%d streams left", c.Active())
	}
	c.Destroy()
	m.free()
	mu.Unlock()
}

func roundTrip(t *testing.T, cc *http2.ClientConn, i int) {
	body := pattern(i*i*1500, i)
	var rd io.Reader
	if i > 0 {
		rd = bytes.NewReader(body)
	}
	path := "/"
	if i%3 == 0 {
		path = "/early"
	}
	req, _ := nethttp.NewRequest("POST", "http://host"+path, rd)
	req.Header.Set("x-a", strconv.Itoa(i))
	req.Header.Add("Cookie", "a=1; b=2")
	if i%5 == 0 {
		req.Header.Set("x-long", strings.Repeat("z", 20000+i))
	}
	if i%4 == 1 {
		req.Trailer = nethttp.Header{"X-T": {"end"}}
	}
	if i == 7 {
		req.Method = "HEAD"
	}
	resp, err := cc.RoundTrip(req)
	if err != nil {
		t.Errorf("%d: %v", i, err)
		return
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%d: %v", i, err)
		return
	}
	if i != 7 && sha256.Sum256(got) != sha256.Sum256(body) {
		t.Errorf("%d: body differs: %d bytes, want %d", i, len(got), len(body))
	}
	if resp.Header.Get("x-got-x-a") != strconv.Itoa(i) || resp.Header.Get("x-got-cookie") != "a=1; b=2" ||
		len(resp.Header.Get("x-got-x-long")) != len(req.Header.Get("x-long")) {
		t.Errorf("%d: %v", i, resp.Header)
	}
	if i%4 == 1 && resp.Trailer.Get("x-got-x-t") != "end" {
		t.Errorf("%d: trailers %v", i, resp.Trailer)
	}
}

// TestGoServer: our client talks to the server of net/http.
func TestGoServer(t *testing.T) {
	near, far := net.Pipe()
	go (&http2.Server{MaxUploadBufferPerStream: 100000}).ServeConn(far, &http2.ServeConnOpts{
		Handler: nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("x-path", r.URL.Path)
			w.Header().Set("Trailer", "x-sum")
			if r.URL.Path == "/early" {
				w.WriteHeader(103)
			}
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			w.Write(b)
			w.Header().Set("x-sum", fmt.Sprintf("%x %s", sha256.Sum256(b), r.Trailer.Get("x-t")))
		})})
	c := newClient(t, h2.DefaultOptions())
	var mu sync.Mutex
	flush, done := drive(near, c.c.Dispatch, &c.out, &mu)
	var wg sync.WaitGroup
	mu.Lock()
	c.quiet = true
	c.on = func(x *clientStream, e string) {
		if strings.HasPrefix(e, "trailers") || strings.HasPrefix(e, "reset") {
			wg.Done()
		}
	}
	for i := range 20 {
		wg.Add(1)
		x := c.request(false, ":method=POST", ":scheme=http", ":path=/early", ":authority=a", "te=trailers", "trailer=x-t")
		x.body(string(pattern(i*i*1500, i)), false)
		var h http.HeaderMap
		h.Init(&x.arena)
		h.AddName("x-t", "end"+strconv.Itoa(i))
		x.x.EncodeTrailers(&h)
	}
	flush()
	mu.Unlock()
	wg.Wait()
	mu.Lock()
	for i := range 20 {
		sum := fmt.Sprintf("%x end%d", sha256.Sum256(pattern(i*i*1500, i)), i)
		if !strings.Contains(strings.Join(c.events, "\n"), sum) {
			t.Errorf("request %d has no right answer", i)
		}
	}
	if c.c.Active() != 0 {
		t.Errorf("%d streams left", c.c.Active())
	}
	mu.Unlock()
	near.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRandomPair: our client and our server exchange random messages over windows and pipes of random size, from a seed.
func TestRandomPair(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		opts := h2.DefaultOptions()
		opts.InitialStreamWindow = 65535 + r.Uint32N(100000)
		opts.InitialConnWindow = 65535 + r.Uint32N(100000)
		opts.HpackTableSize = r.Uint32N(5000)
		m := &mirror{mem: newMem(t)}
		m.out.buf.Init(&m.mem.buffers)
		s := h2.NewServer(m, &m.out, &m.mem.streams, &opts)
		c := newClient(t, opts)
		// Poisoning costs more than all the rest.
		m.mem.buffers.Poison, c.mem.buffers.Poison = seed%8 == 0, seed%8 == 0
		want := map[*clientStream][]byte{}
		c.quiet = true
		dones := 0
		var up, down []byte
		for step := 0; dones < 30; step++ {
			if step > 100000 {
				t.Fatalf("SEED=%d: stuck with %d of 30 done\n%s", seed, dones, c.drain())
			}
			if len(want) < 30 && c.c.Active() < 8 && r.IntN(3) == 0 {
				x := c.request(false, ":method=POST", ":scheme=http", ":path=/"+strconv.Itoa(r.IntN(9)), ":authority=a",
					fmt.Sprintf("x-r=%d", r.IntN(5)))
				b := pattern(r.IntN(r.IntN(200000)+1), len(want))
				want[x] = b
				x.body(string(b), r.IntN(2) == 0)
				var h http.HeaderMap
				h.Init(&x.arena)
				h.AddName("x-t", "1")
				x.x.EncodeTrailers(&h)
			}
			if r.IntN(20) == 0 {
				s.OnHighWatermark()
			} else if r.IntN(10) == 0 {
				s.OnLowWatermark()
			}
			if step > 50000 {
				s.OnLowWatermark()
			}
			up = append(up, c.out.take()...)
			down = append(down, m.out.take()...)
			up = move(t, r, up, s.Dispatch)
			down = move(t, r, down, c.c.Dispatch)
			for _, e := range c.events {
				if strings.HasPrefix(e, "done") {
					dones++
				} else if strings.Contains(e, "reset") {
					t.Fatalf("SEED=%d: %s", seed, e)
				}
			}
			c.events = c.events[:0]
		}
		if s.Active() != 0 || c.c.Active() != 0 {
			t.Errorf("SEED=%d: %d and %d streams left", seed, s.Active(), c.c.Active())
		}
		for x, b := range want {
			if !bytes.Equal(b, x.got) {
				t.Errorf("SEED=%d: stream %d: got %d bytes, want %d", seed, x.x.ID(), len(x.got), len(b))
			}
		}
		s.Destroy()
		m.free()
	}
}

func move(t *testing.T, r *rand.Rand, b []byte, dispatch func([]byte) (int, error)) []byte {
	n := min(len(b), 1+r.IntN(1<<(r.IntN(18))))
	k, err := dispatch(bytes.Clone(b[:n]))
	if err != nil {
		t.Fatal(err)
	}
	return b[k:]
}
