package xds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// maxNackBytes bounds the text of a NACK, as in Envoy.
const maxNackBytes = 4096

// intake shows a response to the subscriptions of its type, a step at a time. owner: main loop.
type intake struct {
	k   *kind
	gen int // of the stream that the response came on
	response
	begun int64

	errs []string

	stage stage
	at    int          // what is next in a stage
	subs  []*streamSub // that are next
	u     sub.Update
	from  []int // the items behind the resources of u
	// step and finish are under way if the subscription takes steps.
	step   func() (refused int, more bool)
	finish func() error
	many   []*streamSub // subscriptions to several names, which come last
	goOn   func()
}

// stage is what an intake is at.
type stage uint8

const (
	toAll  stage = iota // subscriptions to all resources
	toOne               // those to one, resource by resource
	toMany              // those to several
	noting              // what was taken is noted
	done
)

// receive is the link's call: a response has come.
func (m *mux) receive(b []byte) {
	url, _ := xdstype.StringField(b, 4)
	m.enqueue(arrival{b: b, gen: m.link.gen, url: url})
}

func (m *mux) enqueue(a arrival) {
	m.inbox = append(m.inbox, a)
	if m.intake != nil {
		m.link.hold(true)
		return
	}
	m.takeNext()
}

// takeNext begins with the response that has waited longest.
func (m *mux) takeNext() {
	for m.intake == nil && len(m.inbox) > 0 && !m.closed {
		a := m.inbox[0]
		m.inbox[0] = arrival{}
		m.inbox = m.inbox[1:]
		if len(m.inbox) == 0 {
			m.inbox = nil
			m.link.hold(false)
		}
		m.take(a)
	}
}

// take begins with a response: it is read away from the main loop.
func (m *mux) take(a arrival) {
	k := m.byURL[a.url]
	switch {
	case k == nil:
		return // nobody has ever asked for the type
	case len(k.order) == 0:
		k.unwanted(a)
		return
	}
	x := &intake{k: k, gen: a.gen, begun: m.s.Main.Now()}
	x.goOn = x.run
	m.intake = x
	k.pause()
	if a.expired != nil {
		x.gone, x.version = a.expired, k.version
		for _, n := range a.expired {
			delete(k.have, n)
		}
		x.subs = k.all
		x.run()
		return
	}
	d := &reader{url: k.url, delta: m.link.to.delta, wildcard: k.wildcard(), have: k.have, opts: m.s.Options}
	if m.s.Inline {
		x.response = d.read(a.b)
		x.arrive()
		return
	}
	m.s.reads.Go(func() {
		r := d.read(a.b)
		m.s.Main.Post(func() {
			x.response = r
			x.arrive()
		})
	})
}

// unwanted answers a response that nobody wants any more.
func (k *kind) unwanted(a arrival) {
	if k.m.link.to.delta || a.gen != k.m.link.gen || a.expired != nil {
		if r, err := xdstype.ParseDeltaResponse(a.b); err == nil && a.expired == nil && a.gen == k.m.link.gen {
			k.m.acks = append(k.m.acks, ack{k: k, nonce: r.Nonce})
			k.m.drain()
		}
		return
	}
	r, err := xdstype.ParseResponse(a.b)
	if err != nil {
		return
	}
	k.nonce = r.Nonce
	if len(r.Resources) == 0 {
		k.version = r.Version
		return
	}
	k.m.s.warn("Ignoring unwatched type URL " + k.url)
	k.request()
}

// arrive goes on when a response was read.
func (x *intake) arrive() {
	k := x.k
	m := k.m
	if m.closed {
		return
	}
	k.forgetNow()
	for _, e := range x.notes {
		m.s.Options.Tell(e)
	}
	if x.err != nil {
		for _, w := range append([]*streamSub(nil), k.order...) {
			x.reject(w, x.err)
		}
		x.errs = []string{x.err.Error()}
		x.stage = done
		x.end()
		return
	}
	if x.identifier != "" && m.link.scope != nil {
		m.s.Store.SetText(m.link.identifier, x.identifier)
	}
	for _, l := range x.leases {
		k.lives.set(l.name, l.ttl)
	}
	x.subs = k.all
	x.run()
}

// run goes on until all is done, or until something else should have a turn.
func (x *intake) run() {
	main := x.k.m.s.Main
	for start := main.Clock().Mono(); !x.k.m.closed && x.next(); {
		if main.Clock().Mono()-start >= int64(applyBudget) {
			main.Post(x.goOn)
			return
		}
	}
	if !x.k.m.closed {
		x.end()
	}
}

// next does one step and tells whether there is more.
func (x *intake) next() bool {
	if x.step != nil {
		x.goStep()
		return true
	}
	if len(x.subs) > 0 {
		w := x.subs[0]
		x.subs = x.subs[1:]
		if !w.closed {
			x.show(w)
		}
		return true
	}
	switch x.stage {
	case toAll:
		x.stage = toOne
		if len(x.k.byName) == 0 {
			x.stage = noting
		}
	case toOne:
		x.nextOne()
	case toMany:
		x.stage, x.at = noting, 0
	case noting:
		x.note()
	case done:
		return false
	}
	return true
}

// nextOne looks who wants the next resource, or the next name that is gone.
func (x *intake) nextOne() {
	n := len(x.items)
	name := ""
	switch {
	case x.at < n:
		name = x.items[x.at].name
	case x.at-n < len(x.gone):
		name = x.gone[x.at-n]
	default:
		x.stage, x.subs = toMany, x.many
		return
	}
	for _, w := range x.k.byName[name] {
		if len(w.names) == 1 {
			x.subs = append(x.subs[:len(x.subs):len(x.subs)], w)
		} else if !w.noted {
			w.noted = true
			x.many = append(x.many, w)
		}
	}
	x.at++
}

// noteAtOnce is how many resources are noted in one step.
const noteAtOnce = 64

// note keeps what was taken, by its hash, so that it need not be read again while it stays the same.
func (x *intake) note() {
	k := x.k
	for n := 0; n < noteAtOnce; n++ {
		if x.at >= len(x.items) {
			x.stage = done
			return
		}
		i := &x.items[x.at]
		x.at++
		if i.name == "" || !k.wildcard() && k.byName[i.name] == nil {
			continue
		}
		h := held{hash: i.hash, version: i.version}
		if i.refused {
			h.hash = 0
		}
		if old, ok := k.have[i.name]; i.refused && ok {
			h.version = old.version
		}
		k.have[i.name] = h
	}
}

// show gives one subscription its update.
func (x *intake) show(w *streamSub) {
	w.noted = false
	x.u, x.from = sub.Update{Version: x.version}, nil
	switch {
	case len(w.names) > 0:
		x.allOf(w)
	case w.seen || len(x.fresh) == len(x.items):
		x.u.Resources, x.from = x.told, x.fresh
		x.u.Removed, x.u.Same = x.gone, len(x.items)-len(x.fresh)
	default:
		for i := range x.items {
			x.put(w, i)
		}
		x.u.Removed = x.gone
	}
	w.seen = true
	w.answered()
	if c, ok := w.cb.(sub.Stepper); ok {
		x.step, x.finish = c.Begin(&x.u)
		x.subs = append([]*streamSub{w}, x.subs...) // it stays the first until it is through
		return
	}
	err := w.cb.OnUpdate(&x.u)
	if err != nil {
		for _, i := range x.from {
			x.items[i].refused = true
		}
	}
	x.settle(w, err)
}

// allOf puts the resources into the update that a subscription names.
func (x *intake) allOf(w *streamSub) {
	if len(w.names) == 1 && x.stage == toOne {
		if x.at <= len(x.items) {
			x.put(w, x.at-1)
			if w.m.link.to.delta {
				x.u.Version = x.items[x.at-1].version
			}
		} else {
			x.u.Removed = append(x.u.Removed, w.names[0])
		}
		return
	}
	for i := range x.items {
		if slices.Contains(w.names, x.items[i].name) {
			x.put(w, i)
		}
	}
	for _, n := range x.gone {
		if slices.Contains(w.names, n) {
			x.u.Removed = append(x.u.Removed, n)
		}
	}
}

// put adds a resource to the update of w. One that w sees for the first time has a body, even if others have had it before.
func (x *intake) put(w *streamSub, n int) {
	i := &x.items[n]
	if i.same && !w.seen {
		i.unpack(x.k.url, x.k.m.s.Options.Resolver)
	}
	x.u.Resources, x.from = append(x.u.Resources, i.resource()), append(x.from, n)
}

// goStep is one step of a subscription that takes steps.
func (x *intake) goStep() {
	w := x.subs[0]
	if !w.closed {
		refused, more := x.step()
		if refused >= 0 {
			x.items[x.from[refused]].refused = true
		}
		if more {
			return
		}
	}
	finish := x.finish
	x.step, x.finish = nil, nil
	x.subs = x.subs[1:]
	if !w.closed {
		x.settle(w, finish())
	}
}

// settle counts how an update went.
func (x *intake) settle(w *streamSub, err error) {
	s := w.s
	if err != nil {
		x.errs = append(x.errs, err.Error())
		x.count(w, err)
		return
	}
	st := s.Main.Stats
	st.Inc(w.stats.Success)
	st.Inc(w.stats.Attempt)
	s.Store.SetGauge(w.stats.Time, uint64(s.Main.Wall()/1e6))
	s.Store.SetGauge(w.stats.Version, xxhash.Sum64String(x.version))
	s.Store.SetText(w.stats.VersionText, x.version)
	st.Record(w.stats.Duration, uint64(s.Main.Now()-x.begun)/1e6)
}

// reject tells a subscription that the response cannot be taken at all.
func (x *intake) reject(w *streamSub, err error) {
	if w.closed {
		return
	}
	w.answered()
	x.count(w, err)
	w.cb.OnFailure(sub.Rejected, err)
}

func (x *intake) count(w *streamSub, err error) {
	st := w.s.Main.Stats
	st.Inc(w.stats.Rejected)
	st.Inc(w.stats.Attempt)
	how := "gRPC"
	if w.m.link.to.delta {
		how = "delta"
	}
	w.s.warn(fmt.Sprintf("%s config for %s rejected: %s", how, x.k.url, err))
}

// end is the end of an intake: the answer is sent.
func (x *intake) end() {
	k := x.k
	m := k.m
	m.intake = nil
	k.forgetNow()
	var nack *xdstype.Status
	if len(x.errs) > 0 {
		nack = &xdstype.Status{Code: async.GRPCInternal, Message: nackText(x.errs)}
	} else if !m.link.to.delta {
		k.version = x.version
	}
	if x.nonce != "" && x.gen == m.link.gen && m.link.up() {
		if m.link.to.delta {
			m.acks = append(m.acks, ack{k: k, nonce: x.nonce, err: nack})
		} else {
			k.nonce, k.nack, k.pending = x.nonce, nack, true
		}
	}
	k.resume()
	m.takeNext()
}

// nackText is what the control plane is told of what was wrong.
func nackText(errs []string) string {
	text := strings.Join(errs, "; ")
	if len(text) > maxNackBytes {
		text = strings.ToValidUTF8(text[:maxNackBytes], "") + "...(truncated)"
	}
	return text
}
