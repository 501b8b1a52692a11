package pool

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// The functions of this file are for health checks, whose connections are made as the cluster's others are, but stand outside of its
// pools, breakers and statistics, as in Envoy.

// DialCheck connects c to a host at an address, for hd. secure tells whether the connection has a transport of its own (TLS).
func DialCheck(c *conn.Conn, w *event.Worker, s *Settings, h *host.Host, at network.Address, hd conn.Handler) (secure bool) {
	tr := transport(w, s, h, nil, Names{})
	c.Dial(w, &event.ConnectSpec{Address: at, Source: s.Source, Options: s.Sockets}, tr, hd)
	c.SetLimit(int(s.BufferLimit))
	c.EnableHalfClose() // a response may end with the connection
	return tr != nil
}

// NewCodec makes the codec of a connection that DialCheck made, for HTTP/1 or HTTP/2.
func NewCodec(c *conn.Conn, w *event.Worker, s *Settings, two bool, hd codec.ClientHandler) codec.ClientConn {
	pools := workerCodecs.Get(w)
	if two {
		o := *s.H2
		o.Stats = stats.Cluster.Block(s.Stats, stats.ClusterHTTP2)
		return h2.NewClient(hd, c, &pools.h2, &o)
	}
	c.SetMaxUnread(s.H1.MaxHeadBytes)
	return h1.NewClient(hd, c, s.H1, &pools.h1)
}

// DrainExisting closes the connections that there are: idle ones now, the others after their last stream. Unlike after Drain, new ones
// stay.
func (p *Pool) DrainExisting() {
	for _, l := range []*list{&p.ready, &p.busy} {
		for c := l.head; c != nil; {
			next := c.next
			c.drain("")
			c = next
		}
	}
}
