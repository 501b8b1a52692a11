package server

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// problems is what is wrong with the bootstrap: all of it is looked for before the proxy is refused. owner: main loop.
type problems struct {
	errs config.Errors
	// loaded are those of errs that were found while the bootstrap was read.
	loaded []*config.Error
	// broken: something besides the static clusters and listeners breaks a rule of the API.
	broken bool
	// clusters are the names of static clusters that could not be built: who names them makes no mistake.
	clusters map[string]bool
	// unread: static clusters stand under a field that is misspelt, so nobody knows which there are.
	unread bool
	// listeners are the names of static listeners.
	listeners map[string]bool
	// later are sources of static clusters, which are looked at when all of these are known.
	later []sourceAt
	// nearest counts the clusters that were looked for by a name like theirs.
	nearest int
}

// sourceAt is a source and where it stands.
type sourceAt struct {
	path string
	from *corev3.ConfigSource
}

// notice looks for what makes other mistakes follow from one.
func (p *problems) notice() {
	for _, e := range p.errs.List {
		if e.Suggestion == "clusters" && strings.HasPrefix(e.Path, "static_resources.") ||
			e.Elsewhere == "static_resources" && (e.Path == "clusters" || strings.HasSuffix(e.Path, ".clusters")) {
			p.unread = true
		}
	}
}

// nameOfCluster tells whether a path is that of the name of a static cluster.
func nameOfCluster(path string) bool {
	rest, ok := strings.CutPrefix(path, "static_resources.clusters[")
	_, field, _ := strings.Cut(rest, "]")
	return ok && field == ".name"
}

// forget takes out what was said of unknown clusters before it was known that some stand at the wrong place, or that as many lack a name
// of their own: that of another was copied with it, or there is none.
func (p *problems) forget() {
	unknown, unnamed := map[string]bool{}, 0
	for _, e := range p.errs.List {
		if e.NoCluster != "" {
			unknown[e.NoCluster] = true
		} else if nameOfCluster(e.Path) {
			unnamed++
		}
	}
	if p.notice(); p.unread || len(unknown) <= unnamed {
		p.errs.List = slices.DeleteFunc(p.errs.List, func(e *config.Error) bool { return e.NoCluster != "" })
	}
}

// nameNode leaves one of the problems that only say that the proxy does not know who it is: none, if the node is written and has a
// mistake itself.
func (p *problems) nameNode() {
	told := slices.ContainsFunc(p.loaded, func(e *config.Error) bool {
		return e.Path == "node" || e.Suggestion == "node" || strings.HasPrefix(e.Path, "node.")
	})
	p.errs.List = slices.DeleteFunc(p.errs.List, func(e *config.Error) bool {
		was := told && e.NoNode
		told = told || e.NoNode
		return was
	})
}

// part builds one part of the proxy, and keeps what is wrong with it.
func (s *Server) part(build func() error) {
	s.problems.errs.CollectBut(s.problems.loaded, attempt(s.problems.broken, build))
}

// attempt runs build. A broken configuration is one that is known not to hold a rule of the API, so that values may be missing that
// are there otherwise: it is built only to find what else is wrong, and what breaks for want of a value says nothing new.
func attempt(broken bool, build func() error) (err error) {
	if broken {
		defer func() {
			if recover() != nil {
				err = nil
			}
		}()
	}
	return build()
}

// located gives an error, or each of several, its place in the file.
func (s *Server) located(path string, err error) error {
	return s.cfg.Boot.Positions().Attach(path, err)
}

// discard ends a proxy that was not to be: it closes what was opened for it. It must not have run.
func (s *Server) discard() {
	for _, w := range s.workers {
		s.working.Add(1)
		s.threads.start(w, false, s.working.Done)
	}
	s.threads.start(s.main, false, nil)
	s.shutdown()
}

// Discard ends a proxy that is not wanted, in place of Run.
func (s *Server) Discard() { s.discard() }
