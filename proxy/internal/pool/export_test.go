package pool

import "github.com/dragoman-proxy/dragoman/proxy/internal/codec"

// SetCodec replaces a connection's codec, to measure the pool alone.
func SetCodec(c *Conn, k codec.ClientConn) { c.codec = k }
