package event

import (
	"cmp"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// The wheel must fire every timer once, never early, and never later than one tick after its deadline once time has passed it;
// a plain sorted list is the model.
func TestWheelAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wheel
		const n = 40
		timers := make([]Timer, n)
		model := map[int]int64{}
		now := int64(0)
		for step := 0; step < 200; step++ {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0, 1:
				scale := rapid.SampledFrom([]int64{1, 1e3, 1e6, 1e9, 1e11, 3e13}).Draw(t, "scale")
				d := now + 1 + rapid.Int64Range(0, 100).Draw(t, "d")*scale
				w.arm(&timers[i], d)
				model[i] = d
			case 2:
				timers[i].deadline = 0
				delete(model, i)
			case 3:
				if timers[i].queued {
					w.unlink(&timers[i])
				}
				timers[i].deadline = 0
				delete(model, i)
			case 4:
				scale := rapid.SampledFrom([]int64{1e5, 1e7, 1e9, 1e12}).Draw(t, "tscale")
				now += rapid.Int64Range(0, 50).Draw(t, "dt") * scale
				due := w.advance(now>>tickShift, now, nil)
				if !slices.IsSortedFunc(due, func(a, b *Timer) int { return cmp.Compare(a.deadline, b.deadline) }) {
					t.Fatal("not in the order of deadlines")
				}
				for _, x := range due {
					k := -1
					for j := range timers {
						if x == &timers[j] {
							k = j
						}
					}
					d, ok := model[k]
					if !ok || d > now {
						t.Fatalf("timer %d fired early or twice: deadline %d, now %d", k, d, now)
					}
					timers[k].deadline = 0
					delete(model, k)
				}
				var late []int
				for k, d := range model {
					if d <= now-(1<<tickShift) {
						late = append(late, k)
					}
				}
				sort.Ints(late)
				if len(late) > 0 {
					t.Fatalf("timers %v did not fire; now %d, first deadline %d", late, now, model[late[0]])
				}
				if nt := w.nextTick(); len(model) > 0 {
					for k, d := range model {
						if nt < 0 || nt > (d+(1<<tickShift)-1)>>tickShift {
							t.Fatalf("nextTick %d is after timer %d at tick %d (cur %d)", nt, k, d>>tickShift, w.cur)
						}
					}
				}
			}
		}
	})
}

func BenchmarkRearm(b *testing.B) {
	var w wheel
	var t Timer
	now := int64(0)
	for b.Loop() {
		now += 1000
		w.arm(&t, now+15e9)
	}
}

// A duration that is longer than the clock can say does not end at once.
func TestArmForEver(t *testing.T) {
	w := &Worker{}
	w.now = 1 << 62
	var x Timer
	w.Arm(&x, 1<<63-1)
	if x.Deadline() <= w.now {
		t.Errorf("due at %d, and it is %d", x.Deadline(), w.now)
	}
	w.Arm(&x, -1)
	if x.Deadline() != w.now+1 {
		t.Errorf("a negative duration is due at %d", x.Deadline())
	}
}

// Timers of one deadline fire as they were armed; one that was put off within a late pass fires in its turn.
func TestTimersFireInOrder(t *testing.T) {
	var w wheel
	timers := make([]Timer, 4)
	const ms = int64(1e6)
	w.arm(&timers[0], 5*ms)
	for i := range timers[1:] {
		w.arm(&timers[i+1], 20*ms)
	}
	w.arm(&timers[0], 40*ms) // stays in its slot, which comes first
	var got []int
	for _, x := range w.advance(50*ms>>tickShift, 50*ms, nil) {
		for i := range timers {
			if x == &timers[i] {
				got = append(got, i)
			}
		}
	}
	if !slices.Equal(got, []int{1, 2, 3, 0}) {
		t.Error(got)
	}
}
