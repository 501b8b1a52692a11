package health

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// MaxTCPAnswer bounds, in bytes, what is looked at of a host's bytes for a match: older ones are forgotten.
const MaxTCPAnswer = 64 << 10

// TCP connects and, if there is something to receive, sends and waits for it.
type TCP struct {
	Send    []byte
	Receive [][]byte // parts that come one after the other, with anything between them; none: the connection is enough
}

// tcpInquiry is the connection for TCP checks.
type tcpInquiry struct {
	s    *session
	link *tcpLink // nil: none
	got  []byte
}

// tcpLink is one connection; p is nil once nobody cares for it any more.
type tcpLink struct {
	nc conn.Conn
	p  *tcpInquiry
}

func (p *tcpInquiry) ask() {
	if p.link == nil {
		c := p.s.c
		p.link = &tcpLink{p: p}
		p.got = p.got[:0]
		pool.DialCheck(&p.link.nc, c.Worker, c.Pools, p.s.h, p.s.h.HealthAddress(), p.link)
		return
	}
	p.send()
}

func (p *tcpInquiry) send() {
	if b := p.s.c.Options.TCP.Send; len(b) > 0 {
		p.link.nc.Out().Append(b)
	}
}

func (p *tcpInquiry) giveUp() { p.close() }

func (p *tcpInquiry) close() {
	if l := p.link; l != nil {
		p.link, l.p = nil, nil
		l.nc.Close(network.Abort, "")
	}
}

// OnConnected implements conn.Handler.
func (l *tcpLink) OnConnected() {
	p := l.p
	if p == nil {
		return
	}
	if len(p.s.c.Options.TCP.Receive) == 0 {
		p.close()
		p.s.succeeded(false)
		return
	}
	p.send()
}

// OnData implements conn.Handler.
func (l *tcpLink) OnData(b []byte) int {
	p := l.p
	if p == nil {
		return len(b)
	}
	p.got = append(p.got, b...)
	if n := len(p.got); n > MaxTCPAnswer {
		p.got = append(p.got[:0], p.got[n-MaxTCPAnswer:]...)
	}
	if !contains(p.got, p.s.c.Options.TCP.Receive) {
		return len(b)
	}
	p.got = p.got[:0]
	if p.s.c.Options.NoReuse {
		p.close()
	}
	p.s.succeeded(false)
	return len(b)
}

// OnEOF implements conn.Handler.
func (l *tcpLink) OnEOF() { l.nc.Close(network.NoFlush, "") }

// OnHighWatermark implements conn.Handler.
func (l *tcpLink) OnHighWatermark() {}

// OnLowWatermark implements conn.Handler.
func (l *tcpLink) OnLowWatermark() {}

// OnClose implements conn.Handler. A host that gives up a connection between two checks has failed as well, as in Envoy.
func (l *tcpLink) OnClose(conn.Closed) {
	p := l.p
	if p == nil {
		return
	}
	p.link, l.p = nil, nil
	p.s.failedCheck(noAnswer, verdict{})
}
