package pool

import "github.com/dragoman-proxy/dragoman/proxy/internal/host"

// maxPreconnects bounds the connections that one request opens ahead of those to come. With ratios of at most 3 no more are needed in a
// steady state; a host that has come back must not be flooded.
const maxPreconnects = 3

// preconnect opens connections for streams to come, if the cluster asks for it: so many that there is room for the ratio times the
// streams that there are and wait. Hosts that are not healthy get none. (Envoy's preconnect_policy.)
func (p *Pool) preconnect() {
	ratio := p.s.Preconnect
	if ratio <= 1 || p.leaving() || p.host.Health() != host.Healthy {
		return
	}
	for range maxPreconnects {
		streams := p.waiting + p.active
		if float64(streams)*ratio <= float64(p.capacity()+p.active) || !p.mayConnect() {
			return
		}
		p.open()
	}
}

// Ahead opens a connection for a stream that is likely to come next, unless there is room for the ratio times the streams that there are,
// that wait, and that one. false: none was opened.
func (p *Pool) Ahead(ratio float64) bool {
	if p == nil || p.leaving() || p.host.Health() != host.Healthy || !Short(p.waiting, p.active, p.capacity(), ratio) || !p.mayConnect() {
		return false
	}
	p.open()
	return true
}

// Load is what waits in the pool, what is under way, and how many more streams its connections have room for.
func (p *Pool) Load() (waiting, active, capacity int) { return p.waiting, p.active, p.capacity() }

// Short tells whether pools with so much on them need another connection for one more stream.
func Short(waiting, active, capacity int, ratio float64) bool {
	return float64(waiting+active+1)*ratio > float64(capacity+active)
}

// capacity is how many more streams there is room for, on connections that are being made too.
func (p *Pool) capacity() int {
	n := p.room
	for c := p.ready.head; c != nil; c = c.next {
		n += c.capacity()
	}
	return n
}
