package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/configfile/doubt"
)

// watchInterval is how often the file is looked at. A file is taken once it is the same twice, so that one that is being written is
// left alone.
const watchInterval = 500 * time.Millisecond

// watch keeps a running proxy to its configuration file (--watch). It belongs to the goroutine of run.
type watch struct {
	f    *flags
	p    *proxy.Proxy
	l    *appLog
	log  *slog.Logger
	now  chan struct{}
	tick func() <-chan time.Time

	seen    []byte // the file when it was last looked at
	settled []byte // the last one that was taken or refused
	serving []byte // what the proxy serves, but for what is outstanding; as text, which takes less than what it is parsed into

	outstanding []string // what could not be applied of serving
	restart     []string // what of serving waits for a restart
	pause, left int      // looks between two tries of what is outstanding, and until the next one
}

// The shortest and the longest pause between two tries of what could not be applied, in looks: a second, a bit more than a minute.
const (
	shortestPause = 2
	longestPause  = 128
)

func newWatch(f *flags, l *appLog, p *proxy.Proxy) *watch {
	return &watch{f: f, p: p, l: l, log: l.set.Logger("config"), now: make(chan struct{}, 1),
		tick: func() <-chan time.Time { return time.After(watchInterval) }}
}

// look makes run look at the file at once. Safe from any goroutine.
func (w *watch) look() {
	select {
	case w.now <- struct{}{}:
	default:
	}
}

// run looks at the file until ctx ends.
func (w *watch) run(ctx context.Context) {
	if !w.f.watch {
		return
	}
	w.serving = w.f.text
	w.seen, w.settled = w.serving, w.serving
	select {
	case <-w.p.Ready():
	case <-ctx.Done():
		return
	}
	w.log.Info("watching " + w.f.configPath)
	for {
		at := w.tick()
		select {
		case <-at:
			w.check(ctx, false)
		case <-w.now:
			w.check(ctx, true)
		case <-ctx.Done():
			return
		}
	}
}

// check takes the file over if it has changed; at once, or if it was the same at the last look.
func (w *watch) check(ctx context.Context, atOnce bool) {
	data, err := os.ReadFile(w.f.configPath)
	if err != nil {
		if w.seen != nil {
			w.log.Warn("the configuration file cannot be read; the proxy goes on with what it has", "error", err)
		}
		w.seen = nil
		return
	}
	same := bytes.Equal(data, w.seen)
	w.seen = data
	if bytes.Equal(data, w.settled) {
		w.again(ctx, atOnce)
		return
	}
	if !same && !atOnce {
		return
	}
	w.settled = data
	w.apply(ctx)
}

// again is for a file that is as it was: what could not be applied of it is tried again, when somebody asks and from time to time.
func (w *watch) again(ctx context.Context, asked bool) {
	serves := bytes.Equal(w.settled, w.serving)
	if serves && len(w.outstanding) > 0 {
		if w.left--; asked || w.left <= 0 {
			w.serve(ctx, asked)
		}
		return
	}
	switch {
	case !asked:
	case !serves:
		w.log.Info("the configuration file has not changed since it was refused; the proxy goes on with what it has")
	case len(w.restart) > 0:
		w.log.Info("the configuration file has not changed: it is what serves, but for what waits for a restart: " + strings.Join(w.restart, ", "))
	default:
		w.log.Info("the configuration file has not changed: it is what serves")
	}
}

// apply checks the file, tells what it changes, and makes the proxy serve that.
func (w *watch) apply(ctx context.Context) {
	next, err := w.parse(w.settled)
	if err == nil {
		err = w.refusal()
	}
	if err != nil {
		w.p.ReloadRefused()
		w.log.Error("the changed configuration is refused; the proxy goes on with what it has:\n" + err.Error())
		return
	}
	if old, err := w.parse(w.serving); err == nil {
		changes := configfile.Diff(old, next)
		switch {
		case len(changes) == 0 && len(w.outstanding) > 0:
			w.log.Info("the configuration file has changed, what it says has not; what could not be applied is tried again")
		case len(changes) == 0:
			w.log.Info("the configuration file has changed, what it says has not")
			w.serving = w.settled
			return
		default:
			w.log.Info("the configuration has changed:\n" + strings.TrimRight(diffText(changes, false), "\n"))
		}
	}
	warnOfDoubts(w.log, next)
	w.pause = 0
	w.serve(ctx, true)
}

// serve makes the proxy serve the settled file. If tell is false, it tells nothing that it has told before.
func (w *watch) serve(ctx context.Context, tell bool) {
	w.pause = min(max(2*w.pause, shortestPause), longestPause)
	w.left = w.pause
	b, err := proxy.LoadWith(w.f.configPath, w.load())
	if err != nil {
		w.p.ReloadRefused()
		w.log.Error("the changed configuration is not applied", "error", err)
		return
	}
	r, err := w.p.Reload(ctx, b)
	if err != nil {
		w.p.ReloadRefused()
		w.log.Error("the changed configuration is not applied", "error", err)
		return
	}
	w.serving = w.settled
	before := w.outstanding
	w.outstanding, w.restart = nil, r.NeedRestart
	for _, err := range r.Errors {
		w.outstanding = append(w.outstanding, err.Error())
	}
	if !tell && slices.Equal(before, w.outstanding) {
		return
	}
	if len(r.NeedRestart) > 0 {
		w.log.Warn("what is set at the start only stays as it was, until a restart: " + strings.Join(r.NeedRestart, ", "))
	}
	if len(r.Errors) > 0 {
		w.log.Error("not all of the changed configuration could be applied; the old serves on there, and it is tried again from time to time and at a SIGHUP:\n" + strings.Join(w.outstanding, "\n"))
		w.log.Warn(fmt.Sprintf("the changed configuration serves in part; clusters, listeners and secrets that were added, replaced or removed: %d", r.Changed))
		return
	}
	w.log.Info(fmt.Sprintf("the changed configuration serves; clusters, listeners and secrets that were added, replaced or removed: %d", r.Changed))
}

// load says how the settled file is read: what is checked, compared and applied is the same, whatever becomes of the file meanwhile.
func (w *watch) load() proxy.LoadOptions {
	o := loadOptions(w.f, w.l)
	o.Data = w.settled
	return o
}

func (w *watch) parse(data []byte) (*configfile.File, error) { return parseFile(w.f, data) }

// parseFile reads data, which the configuration file holds, as data.
func parseFile(f *flags, data []byte) (*configfile.File, error) {
	o := configfile.Options{ConfigYAML: f.configYAML, AllowUnknownFields: f.allowUnknown || f.allowUnknownStatic}
	if f.configEnv {
		o.Env = os.LookupEnv
	}
	return configfile.Of(f.configPath, data, o)
}

// mostWarnings is how many doubts the log has of a file; `dragoman check` has them all.
const mostWarnings = 10

// warnOfDoubts logs what of a file Envoy takes and nobody means.
func warnOfDoubts(log *slog.Logger, f *configfile.File) {
	list := doubt.Of(f, nil, mostWarnings+1)
	for i := range list[:min(len(list), mostWarnings)] {
		log.Warn(list[i].Error())
	}
	if len(list) > mostWarnings {
		log.Warn("there is more of the kind: dragoman check " + f.Path)
	}
}

// largestWarned is how large a file may be that is looked at at the start: it is parsed once more for it.
const largestWarned = 1 << 20

// warnAtStart is warnOfDoubts for a proxy that starts. Envoy does not say it.
func warnAtStart(f *flags, l *appLog) {
	st, err := os.Stat(f.configPath)
	if !f.own || err != nil || !st.Mode().IsRegular() || st.Size() > largestWarned {
		return
	}
	data, err := os.ReadFile(f.configPath)
	if err != nil {
		return
	}
	if file, err := parseFile(f, data); err == nil {
		warnOfDoubts(l.set.Logger("config"), file)
	}
}

// refusal says why a proxy would not run the file, nil if it would.
func (w *watch) refusal() error {
	set, _ := withoutExtensions(standard.All(), w.f.disabledExtensions)
	r := proxy.Check(w.f.configPath, w.load(), checkOptions(w.f, set)...)
	var list []error
	for i := range r.Problems {
		list = append(list, &r.Problems[i])
	}
	if r.More > 0 {
		list = append(list, fmt.Errorf("and %d more", r.More))
	}
	return errors.Join(list...)
}
