package xds_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

func TestOnlyWhatChangedIsTold(t *testing.T) {
	r := newRig(t)
	r.disk["c"] = clusters("1", "a=1", "b=1", "c=1")
	m := &mirror{}
	_, stat := r.subscribe("c", clusterType, m)
	if m.updates != 0 {
		t.Fatal("told from within Subscribe")
	}
	r.settle()
	for _, x := range []struct {
		name, file string
		told       []string
		same       int
		have       map[string]string
	}{
		{"at first", "", []string{"a", "b", "c"}, 0, map[string]string{"a": "1", "b": "1", "c": "1"}},
		{"nothing", clusters("2", "a=1", "b=1", "c=1"), nil, 3, map[string]string{"a": "1", "b": "1", "c": "1"}},
		{"another order", clusters("3", "c=1", "b=1", "a=1"), nil, 3, map[string]string{"a": "1", "b": "1", "c": "1"}},
		{"one", clusters("4", "a=1", "b=2", "c=1"), []string{"b"}, 2, map[string]string{"a": "1", "b": "2", "c": "1"}},
		{"one more, one less", clusters("5", "a=1", "b=2", "d=1"), []string{"d", "c-"}, 2, map[string]string{"a": "1", "b": "2", "d": "1"}},
		{"back again", clusters("6", "a=1", "b=2", "c=1"), []string{"c", "d-"}, 2, map[string]string{"a": "1", "b": "2", "c": "1"}},
		{"all gone", clusters("7"), []string{"a-", "b-", "c-"}, 0, map[string]string{}},
		{"new", clusters("8", "a=9"), []string{"a"}, 0, map[string]string{"a": "9"}},
	} {
		if x.file != "" {
			r.put("c", x.file)
		}
		if diff := cmp.Diff(x.told, m.told); diff != "" || m.same != x.same {
			t.Errorf("%s: %d the same, want %d\n%s", x.name, m.same, x.same, diff)
		}
		if diff := cmp.Diff(x.have, m.have); diff != "" {
			t.Errorf("%s: %s", x.name, diff)
		}
	}
	if a, s := stat("update_attempt"), stat("update_success"); a != 8 || s != 8 {
		t.Errorf("%d attempts, %d successes, want 8", a, s)
	}
	if len(r.warns) != 0 {
		t.Errorf("warnings: %q", r.warns)
	}
}

func TestGoodSiblingsAreTold(t *testing.T) {
	r := newRig(t)
	r.disk["c"] = clusters("1", "a=1", "b=1")
	m := &mirror{}
	_, stat := r.subscribe("c", clusterType, m)
	r.settle()
	for _, x := range []struct {
		name, file string
		told       []string
		have       map[string]string
		rejected   uint64
	}{
		{"refused by the consumer", clusters("2", "a=2", "b=bad"), []string{"a", "b"}, map[string]string{"a": "2", "b": "1"}, 1},
		{"still", clusters("3", "a=2", "b=bad", "c=1"), []string{"a", "b", "c"}, map[string]string{"a": "2", "b": "1", "c": "1"}, 2},
		{"good again", clusters("4", "a=2", "b=3", "c=1"), []string{"a", "b", "c"}, map[string]string{"a": "2", "b": "3", "c": "1"}, 2},
		{"cannot be read", clusters("5", "a=2", "b?", "c=2"), []string{"b!", "c"}, map[string]string{"a": "2", "b": "3", "c": "2"}, 3},
		{"gone after that", clusters("6", "a=2", "c=2"), []string{"c", "b-"}, map[string]string{"a": "2", "c": "2"}, 3},
		{"one without a name hides who is missing", clusters("7", "a=2", "?"), []string{"!"}, map[string]string{"a": "2", "c": "2"}, 4},
		{"another type hides it too", clusters("7", "a=2", "x!"), []string{"!"}, map[string]string{"a": "2", "c": "2"}, 5},
		{"until it can be read", clusters("8", "a=2"), []string{"c-"}, map[string]string{"a": "2"}, 5},
		{"twice", clusters("9", "a=3", "a=4"), []string{"a", "a!"}, map[string]string{"a": "3"}, 6},
		{"the second alone", clusters("10", "a=4"), []string{"a"}, map[string]string{"a": "4"}, 6},
		{"twice the same", clusters("11", "a=4", "a=4"), []string{"a!"}, map[string]string{"a": "4"}, 7},
	} {
		r.put("c", x.file)
		if diff := cmp.Diff(x.told, m.told); diff != "" {
			t.Errorf("%s: told\n%s", x.name, diff)
		}
		if diff := cmp.Diff(x.have, m.have); diff != "" {
			t.Errorf("%s: has\n%s", x.name, diff)
		}
		if n := stat("update_rejected"); n != x.rejected {
			t.Errorf("%s: %d rejected, want %d", x.name, n, x.rejected)
		}
	}
	if len(r.warns) != 7 || r.warns[0] != "Filesystem config update rejected: refused: b" {
		t.Errorf("%q", r.warns)
	}
}

// TestSteppersForgetOnlyWhatTheyRefuse: what was taken is not told again because of a sibling.
func TestSteppersForgetOnlyWhatTheyRefuse(t *testing.T) {
	r := newRig(t)
	r.disk["c"] = clusters("1", "a=1", "b=bad")
	m := &stepper{}
	r.subscribe("c", clusterType, m)
	r.settle()
	m.told = nil
	r.put("c", clusters("2", "a=1", "b=bad", "c=1"))
	if diff := cmp.Diff([]string{"b", "c"}, m.told); diff != "" {
		t.Error(diff)
	}
}

func TestBrokenFilesChangeNothing(t *testing.T) {
	r := newRig(t)
	r.disk["c"] = clusters("1", "a=1")
	m := &mirror{}
	_, stat := r.subscribe("c", clusterType, m)
	r.settle()
	whole := clusters("2", "a=1", "b=1")
	for i := range len(whole) {
		r.put("c", whole[:i])
		if diff := cmp.Diff(map[string]string{"a": "1"}, m.have); diff != "" {
			t.Fatalf("%q: %s", whole[:i], diff)
		}
	}
	if n := stat("update_failure"); n != uint64(len(whole)) || m.failures != len(whole) {
		t.Errorf("%d failures counted, %d told, want %d", n, m.failures, len(whole))
	}
	delete(r.disk, "c")
	r.watch["c"](true)
	r.settle()
	if m.lastErr == nil || !strings.Contains(m.lastErr.Error(), "unable to read file") {
		t.Errorf("a file that is gone: %v", m.lastErr)
	}
	r.put("c", whole)
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1"}, m.have); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b"}, m.told); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(r.warns[0], "Filesystem config update failure: ") {
		t.Errorf("%q", r.warns[0])
	}
}

func TestNamedSubscriptionsShareOneReading(t *testing.T) {
	r := newRig(t)
	const n = 1000
	list := map[string]int{}
	for i := range n {
		list[fmt.Sprint("c", i)] = 1
	}
	r.disk["e"] = endpoints("1", list)
	var all []*mirror
	for i := range n {
		m := &mirror{}
		all = append(all, m)
		r.subscribe("e", endpointType, m, fmt.Sprint("c", i))
	}
	r.settle()
	if r.reads != 1 {
		t.Errorf("the file was read %d times for %d subscriptions", r.reads, n)
	}
	list["c7"] = 2
	r.put("e", endpoints("2", list))
	for i, m := range all {
		told, value := "=", "1"
		if i == 7 {
			told, value = "", "2"
		}
		name := fmt.Sprint("c", i)
		if m.updates != 2 || !slices.Equal(m.told, []string{name + told}) || m.have[name] != value {
			t.Fatalf("%s: %d updates, the last %q, has %v", name, m.updates, m.told, m.have)
		}
	}
	late := &mirror{}
	r.subscribe("e", endpointType, late, "c7")
	r.settle()
	if late.have["c7"] != "2" || r.reads != 2 || all[0].updates != 2 {
		t.Errorf("one that comes late has %v; %d readings; others were told %d times", late.have, r.reads, all[0].updates)
	}
}

func TestNamesThatAreNotThere(t *testing.T) {
	r := newRig(t)
	r.disk["e"] = endpoints("1", map[string]int{"x": 1})
	m := &mirror{}
	s, stat := r.subscribe("e", endpointType, m, "a")
	r.settle()
	if !slices.Equal(m.told, []string{"x"}) {
		t.Errorf("the file has one resource, another one: told %q", m.told)
	}
	r.put("e", endpoints("2", map[string]int{"x": 1, "y": 1}))
	if len(m.told) != 0 || m.updates != 2 {
		t.Errorf("the file has others: told %q", m.told)
	}
	r.put("e", endpoints("3", map[string]int{"x": 1, "a": 3}))
	r.put("e", endpoints("4", map[string]int{"x": 1, "y": 1}))
	if m.have["a"] != "3" || stat("update_success") != 4 {
		t.Errorf("what is not spoken of stays: %v", m.have)
	}
	s.SetNames([]string{"y", "x"})
	r.settle()
	if !slices.Equal(m.told, []string{"y", "x"}) {
		t.Errorf("other names: told %q", m.told)
	}
}

// TestSubscriptionsOfAllKinds: one that wants all comes after others, and after a change.
func TestSubscriptionsOfAllKinds(t *testing.T) {
	r := newRig(t)
	r.disk["c"] = clusters("1", "a=1", "b=1")
	first, second, one := &mirror{}, &mirror{}, &mirror{}
	r.subscribe("c", clusterType, first)
	r.settle()
	r.put("c", clusters("2", "a=2", "b=1"))
	s, _ := r.subscribe("c", clusterType, second)
	r.settle()
	if diff := cmp.Diff(first.have, second.have); diff != "" {
		t.Error(diff)
	}
	r.subscribe("c", clusterType, one, "b")
	r.settle()
	if one.have["b"] != "1" {
		t.Errorf("a named one beside them has %v", one.have)
	}
	// While what is known is read anew, something goes.
	s.Close()
	third := &mirror{}
	r.subscribe("c", clusterType, third)
	r.put("c", clusters("3", "b=1"))
	want := map[string]string{"b": "1"}
	for name, m := range map[string]*mirror{"first": first, "third": third} {
		if diff := cmp.Diff(want, m.have); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(second.have) != 2 {
		t.Errorf("one that was closed has %v", second.have)
	}
}

func TestCloseInTheMiddle(t *testing.T) {
	r := newRig(t)
	r.disk["e"] = endpoints("1", map[string]int{"a": 1, "b": 1, "c": 1})
	subs := map[string]sub.Subscription{}
	var told []string
	for _, n := range []string{"a", "b", "c"} {
		subs[n], _ = r.subscribe("e", endpointType, callback(func() {
			told = append(told, n)
			if n == "a" {
				subs["a"].Close()
				subs["b"].Close()
			}
		}), n)
	}
	r.settle()
	if !slices.Equal(told, []string{"a", "c"}) {
		t.Errorf("told %q", told)
	}
	subs["c"].Close()
	subs["c"].Close()
	if len(r.watch) != 0 {
		t.Error("nobody is left, and it is watched still")
	}
	r.subscribe("e", endpointType, callback(func() { told = append(told, "again") }), "b")
	r.settle()
	if told[len(told)-1] != "again" {
		t.Error("a file cannot be opened again")
	}
}

type callback func()

func (f callback) OnUpdate(*sub.Update) error  { f(); return nil }
func (f callback) OnFailure(sub.Reason, error) {}

// TestLargeUpdatesGiveWay: the main loop does other things while an update is applied.
func TestLargeUpdatesGiveWay(t *testing.T) {
	r := newRig(t)
	var list []string
	for i := range 1000 {
		list = append(list, fmt.Sprint("c", i, "=1"))
	}
	r.disk["c"] = clusters("1", list...)
	m := &stepper{}
	r.subscribe("c", clusterType, m)
	r.clock.tick = 50 * time.Microsecond // what a step costs
	most, passes := 0, 0
	for last := 0; m.steps < 1000; last = m.steps {
		r.main.Step(false)
		most = max(most, m.steps-last)
		if passes++; passes > 2000 {
			t.Fatalf("%d steps in %d passes", m.steps, passes)
		}
	}
	if most > 10 {
		t.Errorf("%d steps of 50 us in one pass", most)
	}
	r.settle()
	// A change that comes meanwhile is applied afterwards.
	list[0], list[1] = "c0=2", "c1=2"
	r.disk["c"] = clusters("2", list...)
	r.watch["c"](true)
	r.main.Step(false)
	list[1] = "c1=3"
	r.put("c", clusters("3", list...))
	if m.have["c0"] != "2" || m.have["c1"] != "3" {
		t.Errorf("has %s, %s", m.have["c0"], m.have["c1"])
	}
}

// TestSettling: a file that is written in place is read when it is left alone, or when that takes too long.
func TestSettling(t *testing.T) {
	r := newRig(t)
	r.disk["c"] = clusters("1", "a=1")
	m := &mirror{}
	r.subscribe("c", clusterType, m)
	r.settle()
	quiet := func(d time.Duration) {
		r.clock.ahead += d
		r.settle()
		r.settle()
	}
	for range 5 {
		r.watch["c"](false)
		quiet(15 * time.Millisecond)
	}
	if r.reads != 1 {
		t.Errorf("read %d times while it is written", r.reads)
	}
	quiet(25 * time.Millisecond)
	if r.reads != 2 {
		t.Errorf("read %d times afterwards", r.reads)
	}
	for range 40 {
		r.watch["c"](false)
		quiet(15 * time.Millisecond)
	}
	if n := r.reads - 2; n < 2 || n > 4 {
		t.Errorf("read %d times in 600 ms of writing", n)
	}
}

// TestAgainstModel writes files at random, good ones and bad ones, and compares with what must be in force.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t)
		var steps sub.Callbacks
		m, s := &mirror{}, &stepper{}
		steps, have := m, func() map[string]string { return m.have }
		if seed%2 == 1 {
			steps, have = s, func() map[string]string { return s.have }
		}
		model := map[string]string{}
		r.disk["c"] = clusters("0")
		r.subscribe("c", clusterType, steps)
		r.settle()
		for version := range 30 {
			var list []string
			nameless := rnd.IntN(6) == 0
			next := map[string]string{}
			for i := range 5 {
				name := fmt.Sprint("c", i)
				switch v := rnd.IntN(5); v {
				case 0:
					list = append(list, name+"?")
					keep(next, model, name)
				case 1:
					list = append(list, name+"=bad")
					keep(next, model, name)
				case 2:
					if nameless {
						keep(next, model, name)
					}
				default:
					list = append(list, fmt.Sprintf("%s=%d", name, v))
					next[name] = fmt.Sprint(v)
				}
			}
			if nameless {
				list = append(list, "?")
			}
			rnd.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
			text := clusters(fmt.Sprint(version), list...)
			if rnd.IntN(5) == 0 {
				text = text[:rnd.IntN(len(text))]
				next = model
			}
			r.put("c", text)
			model = next
			if diff := cmp.Diff(model, have()); diff != "" {
				t.Fatalf("seed %d, version %d, %s\n%s", seed, version, text, diff)
			}
		}
	}
}

func keep(next, model map[string]string, name string) {
	if v, ok := model[name]; ok {
		next[name] = v
	}
}

func TestUnknownFieldsAreToldOnTheMainLoop(t *testing.T) {
	r := newRig(t)
	told := 0
	r.files.Options = config.Options{AllowUnknownFields: true, OnUnknownField: func(*config.Error) { told++ }}
	r.disk["c"] = clusters("1", "?", "a=1")
	m := &mirror{}
	r.subscribe("c", clusterType, m)
	r.settle()
	if told != 1 || m.have["a"] != "1" {
		t.Errorf("%d unknown fields, has %v", told, m.have)
	}
}
