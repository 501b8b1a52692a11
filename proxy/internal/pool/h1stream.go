package pool

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// h1Stream is the stream of an HTTP/1 connection: it does what the codec leaves to the connection's owner. A connection has one
// stream at a time, so this is a part of it.
type h1Stream struct {
	codec.ClientStream
	c *Conn
}

// Reset implements codec.ClientStream.
func (x *h1Stream) Reset(reason http.ResetReason) {
	x.c.broken = x.c.broken || x.c.active > 0
	x.ClientStream.Reset(reason)
}

// ReadDisable implements codec.ClientStream.
func (x *h1Stream) ReadDisable(disable bool) {
	switch {
	case disable:
		x.c.paused++
	case x.c.paused > 0:
		x.c.paused--
	default:
		return
	}
	x.c.nc.ReadDisable(disable)
}

// end undoes what the user left, and makes sure that it does no harm with a stream that is over.
func (x *h1Stream) end() {
	for ; x.c.paused > 0; x.c.paused-- {
		x.c.nc.ReadDisable(false)
	}
	x.ClientStream = over{}
}

// over is a stream that has ended.
type over struct{}

func (over) EncodeHeaders(*http.HeaderMap, bool) error { return nil }
func (over) EncodeData(data *buffer.Buffer, _ bool)    { data.Reset() }
func (over) EncodeTrailers(*http.HeaderMap)            {}
func (over) Reset(http.ResetReason)                    {}
func (over) ReadDisable(bool)                          {}
func (over) ID() uint32                                { return 0 }
func (over) WireBytes() *codec.Bytes                   { return &codec.Bytes{} }
