package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/internal/guard"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/runtime"
	"github.com/dragoman-proxy/dragoman/proxy/internal/spill"
)

// buildRuntime makes the runtime layers and the switches that they set. It comes before everything that asks them.
func (s *Server) buildRuntime() error {
	table, err := guard.Builtin()
	if err != nil {
		return err
	}
	s.guards = table.NewSet()
	if s.runtime, err = runtime.New(s.boot.GetLayeredRuntime(), s.node().GetCluster(), s.store); err != nil {
		return s.located("layered_runtime", err)
	}
	s.cfg.Boot.LimitRegexes(s.maxRegexSize)
	s.runtime.OnChange = s.runtimeChanged
	s.runtimeChanged(s.runtime.Snapshot())
	s.spill = spill.New(spill.Config{Total: int64(s.runtime.Uint(maxSpillKey, spill.DefaultTotal)), Inline: s.cfg.Inline})
	return nil
}

// maxRegexSize is how large the program of a regular expression may be. owner: main loop, after buildRuntime.
func (s *Server) maxRegexSize() uint64 {
	return s.runtime.Uint("re2.max_program_size.error_level", config.DefaultMaxRegexSize)
}

// maxSpillKey is the runtime key of how many bytes of request bodies may be in files together. It is read at the start.
const maxSpillKey = "dragoman.retry_buffer.max_file_bytes"

func (s *Server) runtimeChanged(r *runtime.Snapshot) {
	for _, name := range s.guards.Update(r.Features()) {
		s.logger("runtime").Warn("there is no such switch", "key", name)
	}
	s.overloadFromRuntime(r)
	if s.clusters == nil {
		return
	}
	var maintained []string
	for _, k := range r.Keys() {
		if name, ok := strings.CutPrefix(k, cluster.MaintenanceKey); ok {
			maintained = append(maintained, name)
		}
	}
	s.clusters.RuntimeChanged(maintained)
}

// watchRuntime reads disk layers again when what they hang from is replaced, as ConfigMaps and `mv -T` do.
func (s *Server) watchRuntime() {
	for _, link := range s.runtime.Watched() {
		_, err := s.dynamic.files.Watcher.Watch(link, false, func(bool) { s.main.Post(s.runtime.Reload) })
		if err != nil {
			s.logger("runtime").Warn("a disk layer cannot be watched", "path", link, "error", err)
		}
	}
}

// finishBuild ends the building: what only it needed goes.
func (s *Server) finishBuild() error {
	l := s.logger("config")
	l.Info("loading " + itoa(s.clusters.Len()+s.clusters.Warming()) + " cluster(s)")
	l.Info("loading " + itoa(len(s.order)) + " listener(s)")
	l.Info("loading stats configuration")
	if f := s.cfg.UnknownFields; f != nil {
		s.countUnknown(f())
	}
	return s.keepBootstrap()
}

// clustersInitialized is the moment after which listeners may come.
func (s *Server) clustersInitialized() {
	s.logger("upstream").Info("cm init: all clusters initialized")
	s.warnOfConnections()
	s.logger("main").Info("all clusters initialized. initializing init manager")
	s.runtime.Reload()
}

// itoa is for log lines, which are sentences.
func itoa(n int) string { return strconv.Itoa(n) }

const dayLength = 24 * time.Hour
