package fault

import (
	"math"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// slices is into how many pieces a second is cut, as by Envoy: what may pass in one of them is a token.
const slices = 16

// throttle lets a response's bytes go at a rate. The bytes are held by the engine, with its flow control; the throttle counts them,
// and passes them on when there are tokens. The bucket begins with one.
type throttle struct {
	cb      filter.Callbacks
	timer   network.Timer
	perTick int // bytes of one token
	tokens  float64
	last    int64
	waiting int // bytes that are held
	ended   bool
	armed   bool
	out     buffer.Buffer
}

func newThrottle(cb filter.Callbacks, kibPerSec uint64) *throttle {
	t := &throttle{cb: cb, tokens: 1, last: cb.Now()}
	t.perTick = int(max(min(kibPerSec, math.MaxInt32)*1024/slices, 1))
	t.timer = cb.NewTimer(t.tick)
	return t
}

// add takes note of bytes that the filter holds now, in the callback that got them.
func (t *throttle) add(n int, end bool) {
	t.waiting += n
	t.ended = t.ended || end
	if !t.armed {
		t.armed = true
		t.timer.Arm(1) // after the callback
	}
}

// tick passes on what there are tokens for.
func (t *throttle) tick() {
	t.armed = false
	now := t.cb.Now()
	t.tokens = min(t.tokens+float64(now-t.last)/float64(time.Second)*slices, slices)
	t.last = now
	wanted := (t.waiting + t.perTick - 1) / t.perTick
	got := min(wanted, int(t.tokens))
	t.tokens -= float64(got)
	n := min(got*t.perTick, t.waiting)
	t.waiting -= n
	if t.waiting > 0 {
		t.armed = true
		t.timer.Arm(t.next())
	}
	if t.waiting == 0 && t.ended {
		t.cb.ContinueEncoding() // with the end, or the trailers
		return
	}
	if n > 0 {
		held := t.cb.BufferedEncodeData()
		if t.out.Pool() == nil {
			t.out.Init(held.Pool())
		}
		t.out.MoveN(held, n)
		t.cb.InjectEncodedData(&t.out, false)
	}
}

// next is when there may be another token.
func (t *throttle) next() time.Duration {
	if t.tokens >= 1 {
		return 1
	}
	return time.Second / slices
}
