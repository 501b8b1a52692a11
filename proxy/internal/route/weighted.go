package route

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// chooser chooses among entries that share all that the route says and differ in their cluster. nil from it: the request has no
// route after all.
type chooser interface{ pick(r *Request) *Entry }

// Weighted is a choice between entries by weight.
type Weighted struct {
	// RuntimePrefix is runtime_key_prefix; weights may be changed under it.
	RuntimePrefix string
	// HeaderName takes the random value from a request header, UseHash from the hash policy.
	HeaderName string
	UseHash    *HashPolicy
	total      uint64
	choices    []choice
}

type choice struct {
	weight uint64
	key    string // of the runtime
	entry  *Entry
}

func (w *Weighted) pick(r *Request) *Entry {
	total := w.total
	runtime := w.RuntimePrefix != "" && r.Runtime != nil
	if runtime {
		total = 0
		for i := range w.choices {
			total += w.weight(r, &w.choices[i])
		}
	}
	if total == 0 {
		return nil
	}
	v := w.value(r) % total
	var sum uint64
	for i := range w.choices {
		c := &w.choices[i]
		if runtime {
			sum += w.weight(r, c)
		} else {
			sum += c.weight
		}
		if v < sum {
			return c.entry
		}
	}
	return w.choices[len(w.choices)-1].entry
}

// value is what the choice depends on.
func (w *Weighted) value(r *Request) uint64 {
	if w.HeaderName != "" {
		if s, ok := r.Headers.GetName(w.HeaderName); ok {
			if n, ok := parseUint(s); ok {
				return n
			}
		}
	}
	if w.UseHash != nil {
		// The cookies are made when a host is chosen.
		cookies := len(r.SetCookies)
		h, ok := w.UseHash.Hash(r)
		r.SetCookies = r.SetCookies[:cookies]
		if ok {
			return h
		}
	}
	return r.Random
}

// weight is a choice's weight as the runtime has it.
func (w *Weighted) weight(r *Request, c *choice) uint64 { return r.Runtime.Uint(c.key, c.weight) }

// parseUint reads an unsigned number of 64 bits.
func parseUint(s string) (n uint64, ok bool) {
	if s == "" || len(s) > 20 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		d := uint64(s[i] - '0')
		if d > 9 || n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// byMatcher chooses by a matcher tree; an entry without a cluster is for requests that match nothing.
type byMatcher struct {
	tree *match.Tree[*Entry]
	none *Entry
}

func (m *byMatcher) pick(r *Request) *Entry {
	r.data = match.Data{Request: r.Headers, Info: r.Info, Runtime: r.Runtime}
	e, o := m.tree.Match(&r.data)
	r.data = match.Data{}
	if o != match.Match {
		return m.none
	}
	return e
}

// nowhere is a specifier that is optional and not there.
type nowhere struct{}

func (nowhere) pick(*Request) *Entry { return nil }
