package proxy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/server"
)

// Problem is one thing that is wrong with a configuration: where it stands (File, Line, Col, from 1; 0 without a place), the full path
// of the field, what sort of mistake it is, what Envoy says of it, what was found, what may stand there, the nearest valid name, and what to do. It
// is an error, and has a JSON form.
type Problem = config.Error

// Kind sorts problems.
type Kind = config.Kind

// The kinds of problems, with their JSON names.
const (
	Unreadable   = config.Unreadable   // "syntax": no file, or no YAML, JSON or protobuf
	UnknownField = config.UnknownField // "unknown_field"
	UnknownType  = config.UnknownType  // "unknown_type": @type or an extension's name
	WrongType    = config.WrongType    // "wrong_type": of a value, or a word that its enum does not have
	BrokenRule   = config.BrokenRule   // "rule": a range, a length, a field that is required
	Invalid      = config.Invalid      // "invalid": in itself right, and wrong together with the rest
	NotHere      = config.NotHere      // "machine": right in itself, and a file, folder or variable that it names is not on this machine
	Unsupported  = config.Unsupported  // "unsupported": Envoy has it, this build does not; Extension names it if it is one
	Deprecated   = config.Deprecated   // "deprecated": only in Report.Notes
	Doubtful     = config.Doubtful     // "doubtful": Envoy takes it, and nobody means it; package configfile/doubt finds these
)

// Report is what there is to say of a configuration.
type Report struct {
	// Problems keep a proxy from running it, in the order of the file.
	Problems []Problem `json:"problems"`
	// More counts the problems beyond LoadOptions.MaxProblems.
	More int `json:"more,omitempty"`
	// Notes are unknown fields that were let pass, deprecated ones, what is not used because it stands twice, and a listener at the
	// address of the admin interface: it is right until one of them cannot listen.
	Notes []Problem `json:"notes,omitempty"`
}

// OK tells whether a proxy would run the configuration.
func (r *Report) OK() bool { return len(r.Problems) == 0 && r.More == 0 }

// Problems returns what is wrong according to an error of Load or New; nil for none.
func Problems(err error) []Problem { return config.List(err) }

// Check reads a bootstrap as LoadWith does, builds of it what New builds, and tells everything that is wrong with it at once. Nothing
// listens and nothing stays behind, but for files of access logs, which are created as Envoy's --mode validate creates them, unless
// WithoutLogFiles is among the options.
func Check(path string, o LoadOptions, opts ...Option) *Report {
	r := &Report{Problems: []Problem{}}
	most := o.MaxProblems
	if most <= 0 {
		most = config.DefaultMaxErrors
	}
	old := map[string]*repeated{} // by what is said of a deprecated field
	defer func() {
		for _, x := range old {
			if x.times > 0 {
				r.Notes[x.at].Msg += fmt.Sprintf("; so in %d places", x.times+1)
			}
		}
	}()
	o.note = func(p Problem) {
		p.Classify()
		if p.Kind == Deprecated && old[p.Msg] != nil {
			old[p.Msg].times++
			return
		}
		if p.Kind == Deprecated && len(r.Notes) < most {
			old[p.Msg] = &repeated{at: len(r.Notes)}
		}
		if len(r.Notes) < most {
			r.Notes = append(r.Notes, p)
		}
	}
	b, err := LoadWith(path, o)
	if err == nil {
		var p *Proxy
		if p, err = New(b, opts...); err == nil {
			p.Discard()
			return r
		}
	}
	r.Problems, r.More = config.List(err), config.More(err)
	return r
}

// Has returns a function that tells whether a proxy with the given options has the extension of Envoy's that a message type configures,
// such as envoy.extensions.filters.http.router.v3.Router; of a message that configures none it tells true.
func Has(opts ...Option) (func(message string) bool, error) {
	c := settings{}
	for _, o := range opts {
		o(&c)
	}
	return server.Has(c.Extensions)
}

// repeated is a note at r.Notes[at] that holds for more places.
type repeated struct{ at, times int }

// WithoutLogFiles is for Check: an access log's file that does not exist is not created, only its folder is looked at.
func WithoutLogFiles() Option {
	return func(c *settings) { c.OpenLog = lookAtLog }
}

// lookAtLog fails where opening the file would.
func lookAtLog(path string) (io.WriteCloser, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		return f, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return nowhere{io.Discard}, nil
}

// nowhere is a file that is not written.
type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// Discard gives a proxy up that is not to run, in place of Run.
func (p *Proxy) Discard() {
	p.s.Discard()
	p.e.close()
}
