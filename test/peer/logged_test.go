//go:build peers

package peer_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// logFormat is what both proxies log of a request: whose it is, then what is said of it.
const logFormat = `%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %PROTOCOL% ` +
	`%REQ(:METHOD)% %REQ(:AUTHORITY)% %REQ(:PATH)% %BYTES_RECEIVED% %BYTES_SENT% %UPSTREAM_REQUEST_ATTEMPT_COUNT%\n`

// ledger remembers which clients said the same, to compare later what was logged of them. owner: its mutex.
type ledger struct {
	mu   sync.Mutex
	list []entry
}

type entry struct {
	number uint64
	in     *byteStream
	from   [2]string
}

func (l *ledger) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

// compare reads the logs once they are written, and reports how many clients have other lines in one than in the other. Who has is heard
// again, now that the proxies have nothing else to do: what is logged of a client that leaves depends on when it does.
func (l *ledger) compare(t *testing.T, pair [2]*judged) {
	t.Helper()
	lines := readLogs(t, pair)
	left := l.unlike(lines)
	first := len(left)
	for k := range hearings {
		if len(left) == 0 {
			break
		}
		var next ledger
		for _, e := range left {
			said := both(pair, e.in, again(k))
			next.add(entry{e.number, e.in, [2]string{said[0].from, said[1].from}})
		}
		lines = readLogs(t, pair)
		left = next.unlike(lines)
	}
	kinds := map[string]int{}
	sample := map[string]entry{}
	for _, e := range left {
		_, kind := e.logged(lines)
		if kinds[kind]++; kinds[kind] == 1 {
			sample[kind] = e
		}
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		e := sample[k]
		t.Errorf("log %s: %d, such as number %d, %s %.700q %v%s", k, kinds[k], e.number, e.in.listener, e.in.bytes, e.in.cuts, e.in.says())
	}
	t.Logf("%d clients' logs compared, %d again", len(l.list), first)
}

// hearings is how often those are heard again whose lines differ: on a busy machine a proxy may read two pieces as one.
const hearings = 3

// again is the pace of the hearing k, each slower than the one before.
func again(k int) pace {
	if 3+k < len(paces) {
		return paces[3+k]
	}
	return pace{120 * time.Millisecond, 5 * time.Second}
}

// unlike are the clients whose lines differ.
func (l *ledger) unlike(lines [2]map[string][]string) (out []entry) {
	for _, e := range l.list {
		if same, _ := e.logged(lines); !same {
			out = append(out, e)
		}
	}
	return out
}

// logged compares a client's lines, and tells the first difference in a few words.
func (e *entry) logged(lines [2]map[string][]string) (same bool, kind string) {
	a, b := lines[0][e.from[0]], lines[1][e.from[1]]
	if n := len(b); len(a) == n+1 && a[n] == nothingCame && emptyLine.Match(e.in.bytes) {
		a = a[:n] // an empty line behind the last request
	}
	if e.in.answer != nil && explainedAnswer(*e.in, "HTTP/1.1 502 ") != "" {
		return true, ""
	}
	if strings.HasPrefix("PRI * HTTP/2.0", string(e.in.bytes)) || slices.Equal(a, b) || crInFraming.Match(e.in.bytes) || chunkedAndEmpty.Match(e.in.bytes) {
		return true, ""
	}
	for i := range min(len(a), len(b)) {
		if a[i] == nothingCame && strings.Contains(b[i], tooMany) || b[i] == nothingCame && strings.Contains(a[i], tooMany) {
			return true, "" // responses that wait: which of them the client has by then is a matter of time
		}
		if a[i] != b[i] {
			return false, fmt.Sprintf("%.90q / %.90q", a[i], b[i])
		}
	}
	return false, fmt.Sprintf("%d lines / %d", len(a), len(b))
}

// emptyLine is what of one may stand at the end.
var emptyLine = regexp.MustCompile(`(^|\n)\r*$`)

// tooMany is in the line of a client that has not taken the responses to its last requests.
const tooMany = "codec_error:Too_many_responses_queued"

// nothingCame is the line of a request of which nothing came.
const nothingCame = "0 DC downstream_remote_disconnect HTTP/1.1 - - - 0 0 0"

// readLogs waits until nothing is written any more.
func readLogs(t *testing.T, pair [2]*judged) (lines [2]map[string][]string) {
	t.Helper()
	size := -1
	eventually(t, "logs are written", func() bool {
		<-time.After(time.Second) // five times as long as it takes until a line is written
		before := size
		size = 0
		for i, j := range pair {
			lines[i] = readLog(t, j.log)
			for _, l := range lines[i] {
				size += len(l)
			}
		}
		return size == before
	})
	return lines
}

func readLog(t *testing.T, path string) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for l := range strings.Lines(string(b)) {
		from, rest, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		out[from] = append(out[from], rest)
	}
	return out
}
