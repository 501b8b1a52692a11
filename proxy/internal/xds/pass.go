package xds

import (
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// pass shows the content of a file to its subscriptions, a step at a time. owner: main loop.
type pass struct {
	r    result
	late bool // only to those that came late
	at   int  // the subscription that is next
	// u is the update of that subscription, from the entries behind its resources. Callbacks do not keep it.
	u    sub.Update
	from []*entry
	// step and finish are under way if the subscription takes steps.
	step   func() (refused int, more bool)
	finish func() error
	warned bool
}

// reset forgets a pass, but for a little memory.
func (p *pass) reset() {
	clear(p.u.Resources)
	clear(p.from)
	if cap(p.from) > maxKept {
		p.u.Resources, p.from = nil, nil
	}
	*p = pass{u: sub.Update{Resources: p.u.Resources[:0]}, from: p.from[:0]}
}

// maxKept is how many resources of an update a file keeps room for.
const maxKept = 256

// begin begins a pass.
func (x *file) begin(r result, late bool) {
	x.state = applying
	x.pass.r, x.pass.late = r, late
	x.run()
}

// run goes on with the pass until it is over, or until something else should have a turn.
func (x *file) run() {
	main := x.f.Main
	for start := main.Clock().Mono(); !x.closed && x.next(); {
		if main.Clock().Mono()-start >= int64(applyBudget) {
			main.Post(x.goOn)
			return
		}
	}
	x.end()
}

// end is the end of a pass. Bodies go; bytes stay only for those who may come late.
func (x *file) end() {
	named := false
	subs := x.subs[:0]
	for _, s := range x.subs {
		if s != nil {
			subs = append(subs, s)
			named = named || len(s.names) > 0
		}
	}
	clear(x.subs[len(subs):])
	x.subs = subs
	for _, e := range x.pass.r.fresh {
		e.body, e.packed = nil, nil
		if !named {
			e.value, x.bare = nil, true
		}
	}
	if named && x.pass.r.whole {
		x.bare = false
	}
	x.pass.reset()
	x.rested()
}

// rested is the end of a reading and what came of it.
func (x *file) rested() {
	x.state = idle
	x.f.Main.Arm(&x.rest, keepScratch)
	x.release()
	switch {
	case x.closed:
	case x.again:
		x.again = false
		x.load()
	default:
		x.catchUp()
	}
}

// next does one step. It tells whether there is more.
func (x *file) next() bool {
	p := &x.pass
	if p.step != nil {
		s := x.subs[p.at]
		if s != nil {
			refused, more := p.step()
			if refused >= 0 && len(s.names) == 0 {
				x.refuse(p.from[refused])
			}
			if more {
				return true
			}
			x.settle(s, p.finish())
		}
		p.step, p.finish = nil, nil
		p.at++
		return true
	}
	for ; p.at < len(x.subs); p.at++ {
		s := x.subs[p.at]
		if s == nil || p.late && !s.due {
			continue
		}
		if s.due = p.r.err == nil && !p.r.whole && x.needsAll(s); s.due {
			continue // it has its turn when this pass is over
		}
		if x.show(s); p.step == nil {
			p.at++
		}
		return true
	}
	return false
}

// show gives one subscription its update.
func (x *file) show(s *fileSub) {
	p, st := &x.pass, x.f.Main.Stats
	st.Inc(s.stats.Attempt)
	if err := p.r.err; err != nil {
		st.Inc(s.stats.Failure)
		if !p.warned {
			p.warned = true
			x.f.warn("Filesystem config update failure: " + err.Error())
		}
		s.cb.OnFailure(sub.Rejected, err)
		return
	}
	s.seen = true
	p.u = sub.Update{Version: x.version, Resources: p.u.Resources[:0]}
	p.from = p.from[:0]
	if len(s.names) > 0 {
		x.named(s)
	} else {
		for _, e := range p.r.fresh {
			x.put(s, e)
		}
		p.u.Same, p.u.Removed = len(x.order)-len(p.r.fresh), p.r.gone
	}
	if c, ok := s.cb.(sub.Stepper); ok {
		p.step, p.finish = c.Begin(&p.u)
		return
	}
	err := s.cb.OnUpdate(&p.u)
	if err != nil && len(s.names) == 0 {
		for _, e := range p.from {
			x.refuse(e)
		}
	}
	x.settle(s, err)
}

// named makes the update of a subscription to the resources that it has named. If the file holds one resource only, which is another,
// it gets that: who wrote the file is to be told.
func (x *file) named(s *fileSub) {
	p := &x.pass
	p.u.Full = true
	for _, n := range s.names {
		if e := x.byName[n]; e != nil {
			x.put(s, e)
		}
	}
	if len(p.from) == 0 && len(x.order) == 1 {
		x.put(s, x.order[0])
	}
}

// put adds a resource to the update of s.
func (x *file) put(s *fileSub, e *entry) {
	p := &x.pass
	r := sub.Resource{Name: e.name, Version: e.version, TTL: e.ttl, Placer: x, Index: len(p.from)}
	switch {
	case e.err == nil && s.applied(e):
		r.Unchanged = true
	default:
		if e.err == nil && e.body == nil {
			e.unpack(x.key.typeURL, x.f.Options.Resolver)
			p.r.fresh = append(p.r.fresh, e) // its body goes at the end
		}
		r.Body, r.Packed, r.Err = e.body, e.packed, e.err
		if r.Err != nil {
			r.Body = nil
		}
	}
	p.u.Resources, p.from = append(p.u.Resources, r), append(p.from, e)
}

// Place gives an error about a resource of the update that is being shown its place in the file.
func (x *file) Place(r *sub.Resource, err error) error {
	if r.Index >= len(x.pass.from) {
		return err
	}
	e := x.pass.from[r.Index]
	path := "resources[" + strconv.Itoa(e.index) + "]"
	if e.wrapped {
		path += ".resource"
	}
	return x.places.AttachIn(x.key.path, path, err)
}

// settle counts how an update went.
func (x *file) settle(s *fileSub, err error) {
	st := x.f.Main.Stats
	if len(s.names) > 0 {
		for _, e := range x.pass.from {
			if err != nil {
				s.forget(e)
			} else {
				s.keep(e)
			}
		}
	}
	if err != nil {
		st.Inc(s.stats.Rejected)
		x.f.warn("Filesystem config update rejected: " + err.Error())
		return
	}
	st.Inc(s.stats.Success)
	x.f.Store.SetGauge(s.stats.Time, uint64(x.f.Main.Wall()/1e6))
	x.f.Store.SetGauge(s.stats.Version, xxhash.Sum64String(x.version))
	x.f.Store.SetText(s.stats.VersionText, x.version)
}
