// Package stats is the contract through which the engine and its extensions name and count things.
//
// It owns the ids, the templates (static lists of stat names) and the two interfaces of the subject: a Scope gives ids
// out, on the main loop, while configuration is built; a Recorder counts, on the thread that owns it, while traffic
// runs. It never holds a value: values live in the store behind the interfaces.
//
// Names are Envoy's: dot-separated, "cluster.<name>.upstream_rq_total".
package stats

// CounterID names one counter. The zero id, and every id that was not given out by a Scope, counts into nothing.
type CounterID uint32

// GaugeID names one gauge.
type GaugeID uint32

// HistogramID names one histogram.
type HistogramID uint32

// CodesID names a block of response-code counters: one counter a class (2xx) and one a code (200).
type CodesID uint32

// TextID names one text readout.
type TextID uint32

// Unit says what a histogram's values measure. It does not change how they are kept or printed by the admin pages, except
// for Percent, whose values are recorded in millionths (PercentScale).
type Unit uint8

// Units of histograms, as in Envoy's Histogram::Unit.
const (
	Unspecified Unit = iota
	Bytes
	Microseconds
	Milliseconds
	Percent
)

// PercentScale is the value that a histogram of unit Percent prints as 1.
const PercentScale = 1_000_000

// Scope gives ids for names under one prefix. It belongs to the main loop: ids are taken when configuration is built
// and used later from any thread, in any order. Asking twice for a name or a group gives the same ids.
type Scope interface {
	// Prefix returns the scope's prefix with its trailing dot, or "" for the root.
	Prefix() string

	// Scope returns the scope below this one. Characters that Envoy does not allow in a stat name (':', NUL) are replaced
	// by '_'. A trailing dot is added unless name is empty or has one.
	Scope(name string) Scope

	// Counter, Gauge and Histogram register one stat. Use a Group for anything that exists once per cluster, listener or
	// route: single stats keep their whole name, groups share their names.
	Counter(name string) CounterID
	Gauge(name string) GaugeID
	Histogram(name string, unit Unit) HistogramID

	// Text registers a text readout. Only the main loop sets its value. Each call counts as one holder; ReleaseText gives one hold
	// up, and with the last one the readout vanishes.
	Text(name string) TextID
	ReleaseText(name string)

	// Group registers all stats of a template under this scope and returns where they begin. Each call counts as one
	// holder of the group.
	Group(t *Template) GroupBase

	// Release gives one hold of the group up. With the last one its stats vanish from the output, and the ids come back
	// into use once every thread has cleared them and every gauge of the group has returned to zero. The caller promises
	// that no new work starts to count into the group; work that is already under way may still finish.
	Release(t *Template)
}

// Recorder counts for one thread. It must be used by that thread only: nothing in it is atomic.
type Recorder interface {
	// Inc adds one to a counter, Add adds n.
	Inc(id CounterID)
	Add(id CounterID, n uint64)

	// GaugeAdd and GaugeSub move a gauge. The value that is shown is the sum over all threads, so one thread may add what
	// another takes away.
	GaugeAdd(id GaugeID, n int64)
	GaugeSub(id GaugeID, n int64)

	// Record adds a value to a histogram.
	Record(id HistogramID, v uint64)

	// IncCode counts a response code and its class. A code outside 100..599 counts as "unknown".
	IncCode(id CodesID, code int)
}

// Setter sets what only the main loop knows. It must be used there only.
type Setter interface {
	// SetGauge gives a gauge a value; what threads add to the same gauge comes on top.
	SetGauge(id GaugeID, v uint64)

	// SetText gives a text readout its value.
	SetText(id TextID, value string)
}

// GroupBase is where the stats of one registered group begin. The zero value is valid and counts into nothing.
type GroupBase struct {
	Cell uint32 // first counter or gauge
	Hist uint32 // first histogram
}

// Counter returns the id of the group's counter at i.
func (g GroupBase) Counter(i CounterIndex) CounterID { return CounterID(g.Cell + uint32(i)) }

// Gauge returns the id of the group's gauge at i.
func (g GroupBase) Gauge(i GaugeIndex) GaugeID { return GaugeID(g.Cell + uint32(i)) }

// Histogram returns the id of the group's histogram at i.
func (g GroupBase) Histogram(i HistogramIndex) HistogramID { return HistogramID(g.Hist + uint32(i)) }

// Codes returns the id of the group's response-code block at i.
func (g GroupBase) Codes(i CodesIndex) CodesID { return CodesID(g.Cell + uint32(i)) }
