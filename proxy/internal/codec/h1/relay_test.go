package h1_test

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
)

// relay passes a request on to an upstream, as a router does, and remembers what it was.
type relay struct {
	*userStream
	r                       *router
	method, path, authority string
	body                    []byte
	complete, refused       bool
}

func (p *relay) DecodeHeaders(h *http.HeaderMap, end bool) {
	p.method, p.path, p.authority = string([]byte(h.Get(http.Method))), string([]byte(h.Get(http.Path))), string([]byte(h.Get(http.Authority)))
	// What every proxy does with what concerns one connection only.
	hop := http.MakeSet(http.Connection, http.KeepAlive, http.ProxyConnection, http.Upgrade)
	h.RemoveSet(&hop)
	p.r.stream = p.r.c.NewStream(p.r, &p.r.h)
	if err := p.r.stream.EncodeHeaders(h, end); err != nil {
		p.refused = true
		return
	}
	p.complete = end
}

func (p *relay) DecodeData(d *buffer.Buffer, end bool) {
	if p.refused {
		return
	}
	p.body = d.AppendTo(p.body)
	p.r.stream.EncodeData(d, end)
	p.complete = end
}

func (p *relay) DecodeTrailers(h *http.HeaderMap) {
	if p.refused {
		return
	}
	p.r.stream.EncodeTrailers(h)
	p.complete = true
}
