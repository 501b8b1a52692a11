package bench_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"

	"github.com/dragoman-proxy/dragoman/api/buffer"
)

// farm are upstreams that misbehave by the path that is asked for, and that can be restarted.
type farm struct {
	tb      testing.TB
	addrs   []string
	mu      sync.Mutex
	servers []*http.Server
}

func startFarm(tb testing.TB, n int) *farm {
	f := &farm{tb: tb, servers: make([]*http.Server, n)}
	for i := range n {
		f.addrs = append(f.addrs, "127.0.0.1:0")
		f.start(i)
	}
	tb.Cleanup(f.close)
	return f
}

func (f *farm) upstreams() upstreams { return upstreams{f.addrs} }

// start lets upstream i listen, where it did before.
func (f *farm) start(i int) {
	var l net.Listener
	var err error
	for range 100 {
		if l, err = net.Listen("tcp", f.addrs[i]); err == nil {
			break
		}
		pause(10 * time.Millisecond) // its old connections may still hold the address
	}
	if err != nil {
		f.tb.Error(err)
		return
	}
	f.addrs[i] = l.Addr().String()
	s := &http.Server{Handler: h2c.NewHandler(http.HandlerFunc(misbehave), &http2.Server{})}
	f.mu.Lock()
	f.servers[i] = s
	f.mu.Unlock()
	go func() { _ = s.Serve(l) }()
}

func (f *farm) stop(i int) {
	f.mu.Lock()
	s := f.servers[i]
	f.servers[i] = nil
	f.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

func (f *farm) close() {
	for i := range f.addrs {
		f.stop(i)
	}
}

// misbehave answers as the path says.
func misbehave(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch kind {
	case "hang", "forever":
		_ = rc.EnableFullDuplex()
		if kind == "forever" {
			_, _ = io.WriteString(w, "begun")
			_ = rc.Flush()
		}
		<-r.Context().Done()
	case "reset", "retry":
		if kind == "retry" && rand.IntN(3) == 0 {
			_, _ = io.WriteString(w, body)
			return
		}
		if c, _, err := rc.Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	case "cut":
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, body)
		panic(http.ErrAbortHandler)
	case "early":
		w.WriteHeader(http.StatusForbidden)
	case "big":
		chunk := strings.Repeat("x", 32<<10)
		for range 16 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	default:
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, body)
	}
}

// capacity is how many requests a second the proxy answers to clients that do not wait, as this machine is now.
func capacity(t *testing.T, c *http.Client) float64 {
	t.Helper()
	const d = 2 * time.Second
	var n atomic.Int64
	var first atomic.Pointer[error]
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for range 8 {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				path, content := "/1k", ""
				switch i % 50 {
				case 0:
					path = "/big"
				case 10, 20, 30, 40:
					content = strings.Repeat("u", 25_000)
				}
				r, err := c.Post("http://h1"+path, "text/plain", strings.NewReader(content))
				if err != nil {
					first.CompareAndSwap(nil, &err)
					continue
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if err := first.Load(); n.Load() == 0 {
		t.Fatal(*err)
	}
	return float64(n.Load()) / d.Seconds()
}

// soak is the load of a TestSoak.
type soak struct {
	p        *proxyProcess
	w        *world
	farm     *farm
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	clients  []*http.Client
	sent, ok atomic.Int64
	faults   atomic.Int64
	held     atomic.Int64
	pushes   int
	restarts int
}

// tally is what a soak has done.
type tally struct {
	sent, ok, held, faults int64
	pushes, restarts       int
}

func (t tally) String() string {
	return fmt.Sprintf("%d requests, %d answered with 200, %d not sent as too many were under way; %d connections broken by clients; %d pushes, %d restarts of upstreams", t.sent, t.ok, t.held, t.faults, t.pushes, t.restarts)
}

// Shares of a soak's requests: the rest are plain.
var soakPaths = []struct {
	path  string
	share float64
}{{"/hang", 0.01}, {"/reset", 0.02}, {"/retry", 0.03}, {"/cut", 0.02}, {"/early", 0.02}, {"/big", 0.01}, {"/forever", 0.005}, {"/direct", 0.02}}

func startSoak(p *proxyProcess, w *world, f *farm, plain, secure string, rate float64) *soak {
	s := &soak{p: p, w: w, farm: f}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	const each = 8
	for i := range each {
		for _, c := range []struct {
			client *http.Client
			scheme string
			share  float64
		}{{http1Client(plain), "http", 0.5}, {http2Client(plain), "http", 0.45}, {tlsClient(secure), "https", 0.05}} {
			s.clients = append(s.clients, c.client)
			rnd := rand.New(rand.NewPCG(uint64(i), uint64(len(s.clients))))
			s.wg.Go(func() { s.ask(c.client, c.scheme, rate*c.share/each, rnd) })
		}
		rnd := rand.New(rand.NewPCG(uint64(i), 77))
		s.wg.Go(func() { s.spoil(plain, secure, rnd) })
	}
	s.wg.Go(s.change)
	s.wg.Go(s.restart)
	return s
}

// every calls f at a rate until the soak ends.
func (s *soak) every(d time.Duration, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
			f()
		}
	}
}

// inFlight bounds what one user of a soak waits for at a time: more of it is no half load.
const inFlight = 8

// ask sends requests at a rate, each on its own: one that hangs holds up no other.
func (s *soak) ask(c *http.Client, scheme string, rate float64, rnd *rand.Rand) {
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, inFlight)
	s.every(time.Duration(float64(time.Second)/rate), func() {
		select {
		case room <- struct{}{}:
		default:
			s.held.Add(1)
			return
		}
		path, x := "/1k", rnd.Float64()
		for _, p := range soakPaths {
			if x -= p.share; x < 0 {
				path = p.path
				break
			}
		}
		ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
		if rnd.IntN(50) == 0 { // one that does not wait
			ctx, cancel = context.WithTimeout(s.ctx, time.Duration(rnd.IntN(3000))*time.Microsecond)
		}
		var content io.Reader
		method := "GET"
		if rnd.IntN(10) == 0 {
			method, content = "POST", strings.NewReader(strings.Repeat("u", rnd.IntN(50_000)))
		}
		r, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("%s://h%d%s", scheme, rnd.IntN(s.hosts()), path), content)
		if err != nil {
			panic(err)
		}
		s.sent.Add(1)
		wg.Go(func() {
			defer func() { cancel(); <-room }()
			a, err := c.Do(r)
			if err != nil {
				return
			}
			_, err = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			if err == nil && a.StatusCode == http.StatusOK {
				s.ok.Add(1)
			}
		})
	})
}

func (s *soak) hosts() int { return 40 }

// spoil makes connections that go wrong, one after the other.
func (s *soak) spoil(plain, secure string, rnd *rand.Rand) {
	s.every(20*time.Millisecond, func() {
		s.faults.Add(1)
		addr := plain
		if rnd.IntN(4) == 0 {
			addr = secure
		}
		n, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return
		}
		defer n.Close()
		_ = n.SetDeadline(time.Now().Add(2 * time.Second))
		var c io.ReadWriteCloser = n
		if addr == secure && rnd.IntN(3) > 0 {
			c = tls.Client(n, &tls.Config{InsecureSkipVerify: true})
		}
		s.misuse(n, c, rnd)
	})
}

// misuse does something with a connection that ends badly.
func (s *soak) misuse(n net.Conn, c io.ReadWriter, rnd *rand.Rand) {
	reset := func() { _ = n.(*net.TCPConn).SetLinger(0) }
	say := func(format string, a ...any) { _, _ = fmt.Fprintf(c, format, a...) }
	host := rnd.IntN(s.hosts())
	switch rnd.IntN(8) {
	case 0: // nothing is said
	case 1: // garbage
		say("\x16\x03\x01garbage\r\n\r\n")
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 1000))
	case 2: // a head that ends in its middle
		say("GET /1k HTTP/1.1\r\nhost: h%d\r\nx-a", host)
		reset()
	case 3: // a body that ends in its middle
		say("POST /1k HTTP/1.1\r\nhost: h%d\r\ncontent-length: 100000\r\n\r\n%s", host, strings.Repeat("x", 20000))
		if rnd.IntN(2) == 0 {
			reset()
		}
	case 4: // half closed, and the answer is read
		say("GET /big HTTP/1.1\r\nhost: h%d\r\n\r\n", host)
		_ = n.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	case 5: // a slow reader, which then goes
		say("GET /big HTTP/1.1\r\nhost: h%d\r\n\r\n", host)
		buf := make([]byte, 4096)
		for range 10 {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			pause(5 * time.Millisecond) // it is slow
		}
		reset()
	case 6: // a slow sender
		for _, b := range []byte(fmt.Sprintf("GET /1k HTTP/1.1\r\nhost: h%d\r\nconnection: close\r\n\r\n", host)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			pause(time.Millisecond) // it is slow
		}
		_, _ = io.Copy(io.Discard, c)
	case 7: // a pipeline that is not read to its end
		for range 20 {
			say("GET /1k HTTP/1.1\r\nhost: h%d\r\n\r\n", host)
		}
		_, _ = bufio.NewReader(c).ReadString('\n')
	}
}

// change pushes configuration, twice a second.
func (s *soak) change() {
	up := s.farm.upstreams()
	s.every(500*time.Millisecond, func() {
		s.w.change(s.pushes, up)
		s.pushes++
	})
}

// restart takes an upstream away for a moment, every other second.
func (s *soak) restart() {
	s.every(2*time.Second, func() {
		i := s.restarts % len(s.farm.addrs)
		s.restarts++
		s.farm.stop(i)
		pause(200 * time.Millisecond) // it is away
		s.farm.start(i)
	})
}

// sample is the proxy's memory at a time, in bytes.
type sample struct{ at, rss, live float64 }

// watch takes samples for a time.
func (s *soak) watch(d time.Duration) (all []sample) {
	start := time.Now()
	t := time.NewTicker(max(d/240, 100*time.Millisecond))
	defer t.Stop()
	for now := range t.C {
		r := s.p.ask("figures")
		if at := now.Sub(start); at > d/4 {
			all = append(all, sample{at.Seconds(), float64(r.RSS), float64(r.Live) - float64((r.SlabsKept+r.SlabsInUse)*buffer.SlabSize)})
		}
		if now.Sub(start) >= d {
			return all
		}
	}
	return all
}

// end stops the load and closes what clients hold.
func (s *soak) end() tally {
	s.cancel()
	s.wg.Wait()
	for _, c := range s.clients {
		c.CloseIdleConnections()
	}
	return tally{s.sent.Load(), s.ok.Load(), s.held.Load(), s.faults.Load(), s.pushes, s.restarts}
}

// line is the line through samples (least squares).
type line struct {
	// perSecond is its slope in bytes, sigma the slope's standard error; rise what it rises over the samples; mean their mean.
	perSecond, sigma, rise, mean float64
}

func (l line) String() string {
	return fmt.Sprintf("%.2f MiB on average, slope %+.1f KiB/min +- %.1f, %+.2f MiB in all", l.mean/(1<<20), l.perSecond*60/1024, l.sigma*60/1024, l.rise/(1<<20))
}

// slopeOf draws the line through the means of blocks of samples.
func slopeOf(samples []sample, get func(sample) float64) (l line) {
	type point struct{ at, v float64 }
	var all []point
	for b := range soakBlocks {
		from, to := b*len(samples)/soakBlocks, (b+1)*len(samples)/soakBlocks
		var p point
		for _, s := range samples[from:to] {
			p.at, p.v = p.at+s.at/float64(to-from), p.v+get(s)/float64(to-from)
		}
		if to > from {
			all = append(all, p)
		}
	}
	n := float64(len(all))
	if n < 3 {
		return l
	}
	var mx, my float64
	for _, p := range all {
		mx, my = mx+p.at/n, my+p.v/n
	}
	var sxx, sxy, rest float64
	for _, p := range all {
		sxx += (p.at - mx) * (p.at - mx)
		sxy += (p.at - mx) * (p.v - my)
	}
	l.mean, l.perSecond = my, sxy/sxx
	for _, p := range all {
		e := p.v - my - l.perSecond*(p.at-mx)
		rest += e * e
	}
	l.sigma = math.Sqrt(rest / (n - 2) / sxx)
	l.rise = l.perSecond * (all[len(all)-1].at - all[0].at)
	return l
}
