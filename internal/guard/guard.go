// Package guard is for changes of behaviour that users can switch back for a while.
//
// A change that a peer can see on the wire comes with a guard: a name, a default, and the date at which the old behaviour
// is removed. Operators turn it off through the runtime layers, as they do with Envoy's reloadable features.
//
// The package owns the table of guards (table.go) and the type that holds one proxy's settings of them. Set.On may be
// called from any goroutine and costs one load; Set.Update belongs to the main loop. Nothing here reads configuration.
package guard

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Prefixes of guard names. A guard that Envoy has too carries Envoy's name, so that a runtime layer written for Envoy
// works; one of our own carries our prefix.
const (
	PrefixEnvoy = "envoy.reloadable_features."
	PrefixOwn   = "dragoman.reloadable_features."
)

// MaxAge is how long a guard may live: longer, and both ways have to be kept and tested for ever.
const MaxAge = 18 * 30 * 24 * time.Hour

// dateFormat is that of Added and Remove.
const dateFormat = "2006-01-02"

// Guard is one switch.
type Guard struct {
	// Name is the runtime key, with one of the prefixes.
	Name string
	// Default is what holds where no runtime layer says otherwise.
	Default bool
	// Added and Remove are dates, YYYY-MM-DD: when the guard came, and when it and the old behaviour go.
	Added, Remove string
	// Why says in one sentence what differs with the guard on and off.
	Why string
}

// Table is a fixed list of guards; a guard's ID is its place in it.
type Table struct {
	guards []Guard
	byName map[string]ID
}

// ID names a guard of a table.
type ID int

// NewTable makes a table, or says which guard is wrong: a name without prefix or used twice, a date that is none, a
// life longer than MaxAge, a missing reason.
func NewTable(guards ...Guard) (*Table, error) {
	t := &Table{guards: slices.Clone(guards), byName: make(map[string]ID, len(guards))}
	for i, g := range t.guards {
		if err := g.check(); err != nil {
			return nil, fmt.Errorf("guard %q: %w", g.Name, err)
		}
		if _, dup := t.byName[g.Name]; dup {
			return nil, fmt.Errorf("guard %q: listed twice", g.Name)
		}
		t.byName[g.Name] = ID(i)
	}
	return t, nil
}

// All returns the guards in their order.
func (t *Table) All() []Guard { return slices.Clone(t.guards) }

// Overdue returns the names of the guards whose day of removal is past.
func (t *Table) Overdue(now time.Time) []string {
	var names []string
	for _, g := range t.guards {
		if day, err := time.Parse(dateFormat, g.Remove); err == nil && now.After(day) {
			names = append(names, g.Name)
		}
	}
	return names
}

// NewSet returns the settings of one proxy, all at their defaults.
func (t *Table) NewSet() *Set {
	s := &Set{table: t, on: make([]atomic.Bool, len(t.guards))}
	for i, g := range t.guards {
		s.on[i].Store(g.Default)
	}
	return s
}

func (g Guard) check() error {
	short := strings.TrimPrefix(strings.TrimPrefix(g.Name, PrefixEnvoy), PrefixOwn)
	if short == g.Name || short == "" {
		return fmt.Errorf("the name must begin with %s or %s", PrefixEnvoy, PrefixOwn)
	}
	if g.Why == "" {
		return fmt.Errorf("no reason is given")
	}
	added, err := time.Parse(dateFormat, g.Added)
	if err != nil {
		return fmt.Errorf("added: %w", err)
	}
	remove, err := time.Parse(dateFormat, g.Remove)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	if life := remove.Sub(added); life <= 0 || life > MaxAge {
		return fmt.Errorf("from %s to %s is not a life of at most %d days", g.Added, g.Remove, int(MaxAge.Hours()/24))
	}
	return nil
}

// Set holds the settings of one proxy.
type Set struct {
	table *Table
	on    []atomic.Bool
}

// On says whether a guard is on. A request that asks more than once must ask once and remember: the setting may change
// between two calls.
func (s *Set) On(id ID) bool { return s.on[id].Load() }

// Update takes the settings that the runtime layers give, by name, and puts every guard that they leave out back to its
// default. It returns the names with our own prefix that are no guards, sorted, so that a misspelt one can be reported;
// names with Envoy's prefix that we lack are features of Envoy that we have no old behaviour of, and are left alone.
func (s *Set) Update(settings map[string]bool) (unknown []string) {
	for i, g := range s.table.guards {
		v, set := settings[g.Name]
		if !set {
			v = g.Default
		}
		s.on[i].Store(v)
	}
	for name := range settings {
		if _, known := s.table.byName[name]; !known && strings.HasPrefix(name, PrefixOwn) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
