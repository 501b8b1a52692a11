package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/server"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
)

// settings are what Options change.
type settings struct {
	server.Config
	listeners server.Given
	sockets   server.Bound
	upstreams map[string]http.Handler
}

// WithListener makes the listener of that name accept from ln, whatever its address says. The proxy takes ln over: nobody else may
// accept from it, and it is closed when Run returns. With the epoll driver it must be one of package net's, over TCP or a Unix
// socket; the std driver takes any.
func WithListener(name string, ln net.Listener) Option {
	return func(c *settings) {
		if c.listeners == nil {
			c.listeners = server.Given{}
		}
		c.listeners[name] = ln
	}
}

// WithSockets makes each listener whose address one of lns is bound to accept from that one, instead of opening a socket: what a
// service manager has opened keeps its queue while the proxy is restarted. The address must be the listener's, port and all; what no
// listener has is left alone. Otherwise it is as with WithListener, which goes first.
func WithSockets(lns ...net.Listener) Option {
	return func(c *settings) { c.sockets = append(c.sockets, lns...) }
}

// WithUpstream makes h the only host of a static cluster: HTTP/1 or HTTP/2, as the cluster's configuration says, without TLS and health
// checks. h is called on goroutines of its own, over a loopback socket that exists from New until Run returns.
func WithUpstream(cluster string, h http.Handler) Option {
	return func(c *settings) {
		if c.upstreams == nil {
			c.upstreams = map[string]http.Handler{}
		}
		c.upstreams[cluster] = h
	}
}

// embedded is what belongs to the program around a proxy, and lives and ends with it.
type embedded struct {
	listeners server.Given
	sockets   server.Bound
	upstreams []upstream
	running   sync.WaitGroup
}

type upstream struct {
	ln  net.Listener
	srv *http.Server
}

// embed prepares what the program brings.
func (c *settings) embed() (*embedded, error) {
	e := &embedded{listeners: c.listeners, sockets: c.sockets}
	if len(c.listeners)+len(c.sockets) > 0 {
		next := c.Sockets
		if next == nil {
			next = socket.Kernel{}
		}
		c.Sockets = socket.First{c.listeners, c.sockets, next}
	}
	for name, h := range c.upstreams {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			e.close()
			return nil, fmt.Errorf("upstream %s: %w", name, err)
		}
		srv := &http.Server{Handler: h, Protocols: &http.Protocols{}}
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
		e.upstreams = append(e.upstreams, upstream{ln, srv})
		if c.Upstreams == nil {
			c.Upstreams = map[string]network.Address{}
		}
		c.Upstreams[name] = network.AddrFrom(ln.Addr().(*net.TCPAddr).AddrPort())
	}
	return e, nil
}

// serve begins to serve the upstreams.
func (e *embedded) serve() {
	for _, u := range e.upstreams {
		e.running.Add(1)
		go func() { //ban:allow nakedgo the program's own handlers: net/http gives them goroutines
			defer e.running.Done()
			if err := u.srv.Serve(u.ln); !errors.Is(err, http.ErrServerClosed) {
				_ = u.ln.Close()
			}
		}()
	}
}

// close ends all of it.
func (e *embedded) close() {
	for _, u := range e.upstreams {
		_ = u.srv.Close()
		_ = u.ln.Close()
	}
	e.running.Wait()
	for _, ln := range e.listeners {
		_ = ln.Close()
	}
	for _, ln := range e.sockets {
		_ = ln.Close()
	}
}
