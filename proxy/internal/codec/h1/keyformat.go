package h1

import (
	"github.com/dragoman-proxy/dragoman/api/http"
)

// properCase writes names as Proper-Case-Words: a letter is upper-case at the start and after anything but a letter or digit.
type properCase struct{}

func (properCase) ProcessKey(string) {}
func (properCase) SetReason(string)  {}
func (properCase) Reason() string    { return "" }

// Format allocates for names it has not a table for; proper case is not for the fast path.
func (properCase) Format(name string) string { return ProperCase(name) }

// ProperCase returns name as Proper-Case-Words.
func ProperCase(name string) string {
	if id := http.Lookup(name); id != http.None {
		return properNames[id]
	}
	return properName(name)
}

func properName(name string) string {
	b := []byte(name)
	up := true
	for i, c := range b {
		letter := c >= 'a' && c <= 'z'
		if up && letter {
			b[i] = c - 'a' + 'A'
		}
		up = !letter && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')
	}
	return string(b)
}

var properNames = func() (t [http.NumIDs]string) {
	for id := http.None + 1; id < http.NumIDs; id++ {
		t[id] = properName(id.Name())
	}
	return t
}()

// PreserveCase is the formatter of Envoy's preserve_case: names are written as they were received.
type PreserveCase struct {
	// ProperEnvoy writes names that were not received, those that the proxy adds, as Proper-Case-Words
	// (formatter_type_on_envoy_headers: PROPER_CASE).
	ProperEnvoy bool
	// ForwardReason keeps a response's reason phrase.
	ForwardReason bool

	keys   []string
	reason string
}

// ProcessKey remembers how a name was written. The first spelling counts.
func (p *PreserveCase) ProcessKey(name string) { p.keys = append(p.keys, name) }

// Format returns the received spelling of name.
func (p *PreserveCase) Format(name string) string {
	for _, k := range p.keys {
		if equalFold(k, name) {
			return k
		}
	}
	if p.ProperEnvoy {
		return ProperCase(name)
	}
	return name
}

// SetReason keeps a reason phrase if ForwardReason is set.
func (p *PreserveCase) SetReason(reason string) {
	if p.ForwardReason {
		p.reason = reason
	}
}

// Reason returns the phrase kept.
func (p *PreserveCase) Reason() string { return p.reason }
