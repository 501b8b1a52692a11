package xds

import (
	"slices"
	"strings"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// mux is one stream of discovery requests and responses, in state of the world or in deltas, and those who want something of it. That
// of ADS carries all types, another one the type of a single subscription. owner: main loop.
type mux struct {
	s    *Streams
	link link
	// kinds are the types in the order in which they were first subscribed to, which is that of requests on a new stream.
	kinds []*kind
	byURL map[string]*kind
	// queue are the types whose requests wait to be sent, in order (state of the world).
	queue []*kind
	// acks are the answers that wait to be sent, in order (delta).
	acks  []ack
	first bool // nothing was sent on this stream yet
	// inbox are responses that wait for their turn, intake is the one that is taken in; nil: none.
	inbox    []arrival
	intake   *intake
	draining bool
	closed   bool
}

// arrival is a response as it came, and on which stream, or names of resources whose time is over.
type arrival struct {
	b       []byte
	gen     int
	url     string
	expired []string
}

// ack is the answer to a delta response; err is that of a NACK.
type ack struct {
	k     *kind
	nonce string
	err   *xdstype.Status
}

// kind is what a mux has of one type of resources. owner: main loop, and have the goroutine that reads a response while it does.
type kind struct {
	m   *mux
	url string
	// all want every resource, byName those that they name; order holds these in the order of subscription.
	all    []*streamSub
	byName map[string][]*streamSub
	order  []*streamSub

	// have is what was taken or refused before, by name. forget are names that go from it as soon as
	// it is the main loop's.
	have      map[string]held
	forget    []string
	forgetAll bool

	version, nonce string
	nack           *xdstype.Status
	paused         int
	pending        bool // a request waits for the end of the pause (state of the world)
	asked          bool // a request was sent on this stream
	// added and removed are names that the control plane is to be told of (delta).
	added, removed names
	lives          lives
}

// held is what is known of a resource: the hash of its bytes, 0 if it was refused, and its version (delta).
type held struct {
	hash    uint64
	version string
}

// names is a set in the order in which its members came.
type names struct {
	list []string
	set  map[string]bool
}

func (n *names) add(name string) {
	if n.set == nil {
		n.set = map[string]bool{}
	}
	if !n.set[name] {
		n.set[name] = true
		n.list = append(n.list, name)
	}
}

func (n *names) drop(name string) {
	if n.set[name] {
		delete(n.set, name)
		n.list = slices.DeleteFunc(n.list, func(x string) bool { return x == name })
	}
}

func (n *names) clear() { n.list, n.set = nil, nil }

func newMux(s *Streams, to target, path string, scope apistats.Scope) *mux {
	m := &mux{s: s, byURL: map[string]*kind{}}
	m.link.init(m, to, path, scope)
	return m
}

// kind returns a type, which has its place among the others from the first time on.
func (m *mux) kind(url string) *kind {
	k := m.unplaced(url)
	if !slices.Contains(m.kinds, k) {
		m.kinds = append(m.kinds, k)
	}
	return k
}

// unplaced is kind for one that nobody has asked for yet.
func (m *mux) unplaced(url string) *kind {
	k := m.byURL[url]
	if k == nil {
		k = &kind{m: m, url: url, byName: map[string][]*streamSub{}, have: map[string]held{}}
		k.lives.init(k)
		m.byURL[url] = k
	}
	return k
}

// close ends the stream and all that it has brought about. Subscriptions hear nothing more.
func (m *mux) close() {
	m.closed = true
	m.link.close()
	m.inbox = nil
	for _, k := range m.byURL {
		k.lives.close()
		for _, x := range k.order {
			m.s.Main.Remove(&x.timer)
		}
	}
}

// wildcard tells whether somebody wants all resources of the type.
func (k *kind) wildcard() bool { return len(k.all) > 0 }

// busy tells whether a response of the type is being taken in: then have is not the main loop's, or not yet what it will be.
func (k *kind) busy() bool { return k.m.intake != nil && k.m.intake.k == k }

// add takes a subscription in and asks for what it wants.
func (k *kind) add(w *streamSub) {
	k.order = append(k.order, w)
	if len(w.names) == 0 {
		k.all = append(slices.Clip(k.all), w)
		if k.forgetAll = true; !k.busy() { // it has seen nothing yet
			k.forgetNow()
		}
	}
	for _, n := range w.names {
		k.addName(w, n)
	}
	k.interest()
}

func (k *kind) addName(w *streamSub, name string) {
	list := k.byName[name]
	// The newest is told first: a cluster that it makes warm takes the place of the one that has waited for the same longer.
	k.byName[name] = append([]*streamSub{w}, list...)
	k.drop(name)
	k.removed.drop(name)
	k.added.add(name) // also if it is wanted already: who wants it now has nothing yet, and asking again brings it again
}

// remove takes a subscription out.
func (k *kind) remove(w *streamSub) {
	without := func(list []*streamSub) []*streamSub {
		return slices.DeleteFunc(slices.Clone(list), func(x *streamSub) bool { return x == w })
	}
	if i := slices.Index(k.order, w); i >= 0 {
		k.order = slices.Delete(k.order, i, i+1)
	}
	k.all = without(k.all)
	for _, n := range w.names {
		k.removeName(n, without(k.byName[n]))
	}
	if len(w.names) > 0 {
		k.interest()
	}
}

func (k *kind) removeName(name string, left []*streamSub) {
	if len(left) > 0 {
		k.byName[name] = left
		return
	}
	delete(k.byName, name)
	k.drop(name)
	k.lives.end(name)
	k.added.drop(name)
	k.removed.add(name)
}

// drop forgets what is known of a name, now or when that is possible.
func (k *kind) drop(name string) {
	if k.busy() {
		k.forget = append(k.forget, name)
		return
	}
	delete(k.have, name)
}

// forgetNow forgets what was to be forgotten.
func (k *kind) forgetNow() {
	if k.forgetAll {
		clear(k.have)
	}
	for _, n := range k.forget {
		delete(k.have, n)
	}
	k.forget, k.forgetAll = nil, false
}

// interest says that what is wanted has changed.
func (k *kind) interest() {
	if k.m.link.to.delta {
		k.m.drain()
		return
	}
	k.request()
}

// request queues a request (state of the world).
func (k *kind) request() {
	m := k.m
	switch {
	case !m.link.up():
		return // the new stream asks for everything
	case k.paused > 0:
		k.pending = true
		return
	}
	m.queue = append(m.queue, k)
	m.drain()
}

// pause keeps requests of the type back until the call of resume.
func (k *kind) pause() { k.paused++ }

func (k *kind) resume() {
	if k.paused--; k.paused > 0 {
		return
	}
	if k.pending {
		k.pending = false
		k.request()
	}
	if k.m.link.to.delta {
		k.m.drain()
	}
}

// connected is the link's call: a new stream asks for everything.
func (m *mux) connected() {
	m.first, m.queue, m.acks = true, nil, nil
	for _, k := range m.kinds {
		k.nonce, k.nack, k.asked, k.pending = "", nil, false, false
		if !m.link.to.delta && len(k.order) > 0 {
			k.request()
		}
	}
	m.drain()
}

// down is the link's call: there is no stream.
func (m *mux) down() {
	m.queue, m.acks = nil, nil
	for _, k := range m.kinds {
		for _, w := range slices.Clone(k.order) {
			w.unreachable()
		}
	}
}

// drain sends what waits, as far as the rate limit allows.
func (m *mux) drain() {
	if m.draining {
		return
	}
	m.draining = true
	for m.link.up() {
		send := m.nextRequest
		if m.link.to.delta {
			send = m.nextDelta
		}
		if !send() {
			break
		}
	}
	m.draining = false
	m.link.gauge(stats.ControlPlanePendingRequests, len(m.queue)+len(m.acks))
}

// nextRequest sends one request of state of the world.
func (m *mux) nextRequest() bool {
	if len(m.queue) == 0 || !m.link.allow() {
		return false
	}
	k := m.queue[0]
	m.queue = m.queue[1:]
	r := xdstype.Request{Version: k.version, Names: k.wanted(), TypeURL: k.url, Nonce: k.nonce, Error: k.nack, Node: m.node()}
	k.nack, k.asked = nil, true
	m.link.g.Send(r.Append(nil))
	return true
}

// node is who we are, where that is to be said.
func (m *mux) node() []byte {
	if m.link.to.nodeOnce && !m.first {
		return nil
	}
	m.first = false
	return m.s.Node
}

// wanted are the names that somebody wants, each once, none if somebody wants all.
func (k *kind) wanted() []string {
	if k.wildcard() {
		return nil
	}
	all := make([]string, 0, len(k.byName))
	for _, w := range k.order {
		for _, n := range w.names {
			if list := k.byName[n]; list[len(list)-1] == w {
				all = append(all, n)
			}
		}
	}
	return all
}

// nextDelta sends one delta request: answers first, then what is wanted anew or no more.
func (m *mux) nextDelta() bool {
	at := slices.IndexFunc(m.acks, func(a ack) bool { return a.k.paused == 0 })
	var k *kind
	if at >= 0 {
		k = m.acks[at].k
	} else if i := slices.IndexFunc(m.kinds, (*kind).news); i >= 0 {
		k = m.kinds[i]
	}
	if k == nil || !m.link.allow() {
		return false
	}
	r := xdstype.DeltaRequest{TypeURL: k.url, Node: m.node()}
	if at >= 0 {
		r.Nonce, r.Error = m.acks[at].nonce, m.acks[at].err
		m.acks = slices.Delete(m.acks, at, at+1)
	}
	if k.asked {
		r.Subscribe, r.Unsubscribe = k.added.list, k.removed.list
	} else {
		r.Subscribe, r.Initial = k.wanted(), k.initial()
	}
	k.added.clear()
	k.removed.clear()
	k.asked = true
	m.link.g.Send(r.Append(nil))
	return true
}

// news tells whether a delta request is to say what is wanted.
func (k *kind) news() bool {
	switch {
	case k.paused > 0:
		return false
	case !k.asked:
		return len(k.order) > 0
	}
	return len(k.added.list)+len(k.removed.list) > 0
}

// initial are the resources that a new stream need not bring again.
func (k *kind) initial() []xdstype.Versioned {
	var list []xdstype.Versioned
	for n, h := range k.have {
		if h.hash != 0 {
			list = append(list, xdstype.Versioned{Name: n, Version: h.version})
		}
	}
	slices.SortFunc(list, func(a, b xdstype.Versioned) int { return strings.Compare(a.Name, b.Name) })
	return list
}
