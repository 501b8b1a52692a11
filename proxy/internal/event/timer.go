package event

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// A tick is 2^20 ns, about a millisecond. Timers never fire early and at most about one tick late (plus the pass's length).
const tickShift = 20

// maxTimer is longer than any process lives, and can be added to any time.
const maxTimer = int64(100 * 365 * 24 * time.Hour)

const (
	wheelLevels = 4
	wheelSlots  = 64 // per level; one uint64 says which are not empty
	// wheelSpan is the furthest tick that the wheel can hold (4.9 hours); later timers wait at its end and move on.
	wheelSpan = 1 << (6 * wheelLevels)
)

// Timer calls Fn on its worker when it expires. It is intrusive: embed it, set Fn once, and arm it as often as needed without
// allocating. owner: worker. It must not be copied, and its memory must not be reused for something else before Remove.
type Timer struct {
	Fn         func()
	next, prev *Timer
	deadline   int64 // ns of Worker.Now, 0: disarmed
	tick       int64 // where it is queued
	queued     bool
	level      uint8
	slot       uint8
}

// Armed tells whether t will fire.
func (t *Timer) Armed() bool { return t.deadline != 0 }

// Deadline returns when t fires, in ns of Worker.Now; 0 if disarmed.
func (t *Timer) Deadline() int64 { return t.deadline }

// wheel is a hierarchical timing wheel (Varghese and Lauck). Re-arming to a later time and disarming do not touch the lists:
// the timer stays where it is and is looked at again when that slot comes.
type wheel struct {
	cur      int64 // the tick that was expired last
	occupied [wheelLevels]uint64
	slots    [wheelLevels][wheelSlots]*Timer
	// expired holds timers that were due when they were armed.
	count int
}

func (w *wheel) arm(t *Timer, deadline int64) {
	t.deadline = deadline
	tick := (deadline + (1 << tickShift) - 1) >> tickShift
	if t.queued {
		if t.tick <= tick {
			return
		}
		w.unlink(t)
	}
	w.insert(t, tick)
}

func (w *wheel) insert(t *Timer, tick int64) {
	if tick <= w.cur {
		tick = w.cur + 1
	}
	d := tick - w.cur
	if d >= wheelSpan {
		tick, d = w.cur+wheelSpan-1, wheelSpan-1
	}
	level := uint8(0)
	// The level is that of the highest group of six bits in which tick and cur differ, so that a slot is never passed unseen.
	if x := uint64(tick ^ w.cur); x != 0 {
		level = uint8((bits.Len64(x) - 1) / 6)
	}
	if level >= wheelLevels {
		level = wheelLevels - 1
	}
	slot := uint8(tick >> (6 * level) & (wheelSlots - 1))
	t.tick, t.level, t.slot, t.queued = tick, level, slot, true
	head := w.slots[level][slot]
	t.prev, t.next = nil, head
	if head != nil {
		head.prev = t
	}
	w.slots[level][slot] = t
	w.occupied[level] |= 1 << slot
	w.count++
}

func (w *wheel) unlink(t *Timer) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		w.slots[t.level][t.slot] = t.next
		if t.next == nil {
			w.occupied[t.level] &^= 1 << t.slot
		}
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.next, t.prev, t.queued = nil, nil, false
	w.count--
}

// nextTick returns the next tick at which something must be looked at, -1 if there is none.
func (w *wheel) nextTick() int64 {
	best := int64(-1)
	for l := 0; l < wheelLevels; l++ {
		if w.occupied[l] == 0 {
			continue
		}
		shift := uint(6 * l)
		pos := uint(w.cur >> shift & (wheelSlots - 1))
		// Slots after pos in this round, then (top level only, it wraps) the others.
		rot := bits.RotateLeft64(w.occupied[l], -int(pos))
		if rot&1 != 0 && l > 0 || l == 0 {
			rot &^= 1
		}
		var ahead int64
		if rot != 0 {
			ahead = int64(bits.TrailingZeros64(rot))
		} else {
			ahead = wheelSlots
		}
		tick := (w.cur>>shift + ahead) << shift
		if best < 0 || tick < best {
			best = tick
		}
	}
	return best
}

// advance moves to tick and returns what is due at or before it, the earliest deadline first, in the memory of due. Of a pass that comes
// late a timer that was put off may lie in an earlier slot than one that is due before it.
func (w *wheel) advance(tick, now int64, due []*Timer) []*Timer {
	due = w.collect(tick, now, due[:0])
	for i := 1; i < len(due); i++ {
		if due[i].deadline < due[i-1].deadline {
			slices.SortStableFunc(due, func(a, b *Timer) int { return cmp.Compare(a.deadline, b.deadline) })
			break
		}
	}
	return due
}

// collect is advance in order of slots.
func (w *wheel) collect(tick, now int64, due []*Timer) []*Timer {
	for w.cur < tick {
		if w.count == 0 {
			w.cur = tick
			return due
		}
		next := w.nextTick()
		if next < 0 || next > tick {
			w.cur = tick
			return due
		}
		w.cur = next
		// Cascade from the top, as far as lower positions are zero.
		for l := wheelLevels - 1; l > 0; l-- {
			shift := uint(6 * l)
			if w.cur&(1<<shift-1) == 0 {
				w.relink(l, int(w.cur>>shift&(wheelSlots-1)), now)
			}
		}
		due = w.expire(int(w.cur&(wheelSlots-1)), now, due)
	}
	return due
}

// relink spreads a slot of an upper level over the levels below.
func (w *wheel) relink(level, slot int, now int64) {
	t := w.slots[level][slot]
	w.slots[level][slot] = nil
	w.occupied[level] &^= 1 << slot
	for t != nil {
		next := t.next
		t.next, t.prev, t.queued = nil, nil, false
		w.count--
		if t.deadline != 0 {
			tick := (t.deadline + (1 << tickShift) - 1) >> tickShift
			if tick <= w.cur {
				// Due right at this boundary: into the slot that expire looks at next.
				w.place(t, w.cur)
			} else {
				w.insert(t, tick)
			}
		}
		t = next
	}
}

// place puts t into level 0 at tick, which must be within the current round.
func (w *wheel) place(t *Timer, tick int64) {
	slot := uint8(tick & (wheelSlots - 1))
	t.tick, t.level, t.slot, t.queued = tick, 0, slot, true
	head := w.slots[0][slot]
	t.prev, t.next = nil, head
	if head != nil {
		head.prev = t
	}
	w.slots[0][slot] = t
	w.occupied[0] |= 1 << slot
	w.count++
}

func (w *wheel) expire(slot int, now int64, due []*Timer) []*Timer {
	t, first := w.slots[0][slot], len(due)
	w.slots[0][slot] = nil
	w.occupied[0] &^= 1 << slot
	for t != nil {
		next := t.next
		t.next, t.prev, t.queued = nil, nil, false
		w.count--
		switch {
		case t.deadline == 0:
		case t.deadline > now && (t.deadline+(1<<tickShift)-1)>>tickShift > w.cur:
			w.insert(t, (t.deadline+(1<<tickShift)-1)>>tickShift)
		default:
			due = append(due, t)
		}
		t = next
	}
	slices.Reverse(due[first:]) // the last one that was armed stands first in a slot
	return due
}
