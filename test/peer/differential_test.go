//go:build peers

package peer_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHTTP1Differential writes the same bytes, most of them broken requests, to ours and to a real Envoy, in the same pieces. Both must
// answer the same bytes, end alike, and forward the same requests.
//
// $DIFF_INPUTS is how many streams there are, $DIFF_SEED where they begin, and $DIFF_ONE the number of the only one.
func TestHTTP1Differential(t *testing.T) {
	inputs, seed := number(t, "DIFF_INPUTS", 3000), number(t, "DIFF_SEED", 1)
	pair := judges(t)
	if file := os.Getenv("DIFF_SAY"); file != "" {
		say(t, pair, file)
		return
	}
	first := uint64(0)
	if one := os.Getenv("DIFF_ONE"); one != "" {
		first = number(t, "DIFF_ONE", 0)
		inputs = first + 1
	}
	var next atomic.Uint64
	next.Store(first)
	found := &findings{t: t, kinds: map[string][]finding{}}
	var all sync.WaitGroup
	for range 96 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < inputs; i = next.Add(1) - 1 {
				in := newStream(seed, i, diffListeners())
				found.judge(pair, i, &in)
			}
		})
	}
	all.Wait()
	found.hearAgain(pair)
	found.report(inputs - first)
	found.same.compare(t, pair)
}

// say writes the streams of a file, a line each: listener, bytes as Go writes them, places where they are cut.
func say(t *testing.T, pair [2]*judged, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			continue
		}
		text, _ := strconv.Unquote(quoted)
		in := byteStream{listener: name, bytes: []byte(text)}
		for _, c := range strings.Fields(rest[len(quoted):]) {
			n, _ := strconv.Atoi(c)
			in.cuts = append(in.cuts, n)
		}
		said := both(pair, &in, paces[1])
		mark := "SAME"
		if said[0].String() != said[1].String() {
			mark = "DIFFER"
		}
		t.Logf("%s %.200s\n  envoy    %q\n  dragoman %q", mark, line, said[0].String(), said[1].String())
	}
}

func number(t *testing.T, env string, def uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(env), fmt.Sprint(def)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// judged is a proxy with the upstream that only it has.
type judged struct {
	*proxy
	upstream *recorder
	log      string
}

func judges(t *testing.T) (pair [2]*judged) {
	t.Helper()
	for i, command := range [][]string{realEnvoy(t), dragoman(t)} {
		up := newRecorder(t)
		log := filepath.Join(t.TempDir(), "access.log")
		command = append(command, "--file-flush-interval-msec", "200")
		pair[i] = &judged{startProxy(t, command, diffBootstrap(up.addr, log)), up, log}
	}
	return pair
}

// finding is a stream about which the two do not agree.
type finding struct {
	number uint64
	in     byteStream
	said   [2]talk
	// original is the stream before anything was left away.
	original byteStream
}

// findings collects them by their kind. owner: its mutex.
type findings struct {
	t     *testing.T
	mu    sync.Mutex
	kinds map[string][]finding
	known map[string]int
	slow  int
	same  ledger
}

// judge compares, again and with more patience if there is a difference, and makes the stream as small as it can be.
func (f *findings) judge(pair [2]*judged, i uint64, in *byteStream) {
	for k, p := range paces {
		said := both(pair, in, p)
		if said[0].String() == said[1].String() && said[0].failed == nil {
			f.same.add(entry{i, in, [2]string{said[0].from, said[1].from}})
			if k > 0 {
				f.mu.Lock()
				f.slow++
				f.mu.Unlock()
			}
			return
		}
		if k == len(paces)-1 {
			f.add(finding{i, *in, said, *in}, pair)
		}
	}
}

func (f *findings) add(d finding, pair [2]*judged) {
	if why := explained(&d); why != "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.known == nil {
			f.known = map[string]int{}
		}
		f.known[why]++
		return
	}
	kind := kindOf(&d)
	f.mu.Lock()
	had := len(f.kinds[kind])
	f.mu.Unlock()
	if had == 0 {
		shrink(pair, &d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds[kind] = append(f.kinds[kind], d)
}

// hearAgain tries each difference once more, now that the proxies have nothing else to do: a proxy that had no time reads two pieces as one.
// On a busy machine that may happen again, so a difference counts if it is there each time.
func (f *findings) hearAgain(pair [2]*judged) {
	for kind, list := range f.kinds {
		f.kinds[kind] = slices.DeleteFunc(list, func(d finding) bool {
			for k := range hearings {
				said := both(pair, &d.original, again(k))
				if said[0].String() == said[1].String() || explained(&finding{d.number, d.original, said, d.original}) != "" {
					return true
				}
			}
			return false
		})
		if len(f.kinds[kind]) == 0 {
			delete(f.kinds, kind)
			f.slow++
		}
	}
}

// kindOf is a difference in a few words.
func kindOf(d *finding) string {
	a, b := d.said[0], d.said[1]
	out := d.in.listener
	if x, y := statuses(a.answer), statuses(b.answer); x != y {
		return out + ": answers " + x + " / " + y
	}
	if a.answer != b.answer {
		return out + ": text of answers " + firstDifference(a.answer, b.answer)
	}
	if a.closed != b.closed {
		return fmt.Sprintf("%s: closed %v / %v after %s", out, a.closed, b.closed, statuses(a.answer))
	}
	if len(a.forward) != len(b.forward) {
		return fmt.Sprintf("%s: %d / %d requests forwarded, answers %s", out, len(a.forward), len(b.forward), statuses(a.answer))
	}
	return out + ": forwarded " + firstDifference(strings.Join(a.forward, ""), strings.Join(b.forward, ""))
}

// statuses are the status codes of answers, with the details of local replies.
func statuses(answer string) string {
	var out []string
	for l := range strings.SplitSeq(answer, "\r\n") {
		if len(l) > 12 && strings.HasPrefix(l, "HTTP/1.") {
			out = append(out, l[9:12])
		} else if i := strings.LastIndex(l, "HTTP/1."); i > 0 && len(l) > i+12 {
			out = append(out, l[:i], l[i+9:i+12])
		} else if strings.HasPrefix(l, "details ") {
			out = append(out, l)
		}
	}
	return strings.Join(out, ",")
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\r\n"), strings.Split(b, "\r\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%.60q / %.60q", x[i], y[i])
		}
	}
	return "of different length"
}

// shrink leaves away what is not needed for a difference of the same kind.
func shrink(pair [2]*judged, d *finding) {
	kind := kindOf(d)
	tries := 120
	same := func(in byteStream) bool {
		if tries--; tries < 0 {
			return false
		}
		said := both(pair, &in, paces[1])
		x := finding{d.number, in, said, d.original}
		if said[0].failed != nil || said[1].failed != nil || said[0].String() == said[1].String() || kindOf(&x) != kind || explained(&x) != "" {
			return false
		}
		*d = x
		return true
	}
	if v := *d.in.varied(); len(v.cuts) > 0 {
		v.cuts = nil
		same(d.in.with(v))
	}
	for size := len(d.in.varied().bytes) / 2; size > 0 && tries > 0; size /= 2 {
		for at := 0; at+size <= len(d.in.varied().bytes); {
			if !same(d.in.with(without(*d.in.varied(), at, size))) {
				at += size
			}
		}
	}
}

// with is a stream with something else varied.
func (s *byteStream) with(v byteStream) byteStream {
	if s.answer == nil {
		return v
	}
	out := *s
	out.answer = &v
	return out
}

// without is a stream without some bytes.
func without(in byteStream, at, n int) byteStream {
	out := byteStream{listener: in.listener, answer: in.answer, bytes: slices.Concat(in.bytes[:at], in.bytes[at+n:])}
	for _, c := range in.cuts {
		if c > at {
			c = max(at, c-n)
		}
		if c > 0 && c < len(out.bytes) && !slices.Contains(out.cuts, c) {
			out.cuts = append(out.cuts, c)
		}
	}
	return out
}

func (f *findings) report(inputs uint64) {
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		list := f.kinds[kind]
		total += len(list)
		d := list[0]
		f.t.Errorf("%s: %d, such as number %d\n%q %v%s\nenvoy    %q closed=%v\n  %q\ndragoman %q closed=%v\n  %q %v", kind, len(list), d.number, d.in.bytes, d.in.cuts, d.in.says(),
			d.said[0].answer, d.said[0].closed, d.said[0].forward, d.said[1].answer, d.said[1].closed, d.said[1].forward, d.said[1].failed)
	}
	f.t.Logf("%d streams, %d unexplained differences, %d explained %v, %d settled by patience", inputs, total, sum1(f.known), f.known, f.slow)
}

// says is the answer in words.
func (s *byteStream) says() string {
	if s.answer == nil {
		return ""
	}
	return fmt.Sprintf(" answer %q %v %s", s.answer.bytes, s.answer.cuts, s.answer.listener)
}

func sum1(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}
